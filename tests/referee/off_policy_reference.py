"""Writes tests/fixtures/off_policy_update.json: gradient steps of SAC and of TD3 with
distributional critics, computed by PyTorch.

Networks, distributions, gradients and AdamW are PyTorch's own. The squashed Gaussian is
`TransformedDistribution(Normal, TanhTransform)`; the projection onto the atoms follows
Bellemare et al. 2017, algorithm 1, atom by atom.

    python off_policy_reference.py > ../fixtures/off_policy_update.json

Recorded with torch 2.11.0.
"""

import json
import sys

import torch
from torch import nn
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

OBS, CRITIC_OBS, ACTION, ROWS, STEPS = 5, 3, 2, 7, 4
HIDDEN = [8, 6]


def mlp(inputs, outputs):
    layers, width = [], inputs
    for hidden in HIDDEN:
        layers += [nn.Linear(width, hidden), nn.ELU()]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def names(prefix, net):
    """Our names of a network's parameters."""
    linear = [m for m in net if isinstance(m, nn.Linear)]
    parts = {}
    for i, layer in enumerate(linear):
        name = f"{prefix}.{i}" if i + 1 < len(linear) else f"{prefix}.head"
        parts[f"{name}.weight"] = layer.weight
        parts[f"{name}.bias"] = layer.bias
    return parts


class Actor(nn.Module):
    def __init__(self, drawn):
        super().__init__()
        body = mlp(OBS, ACTION)
        self.trunk, self.head = body[:-1], body[-1]
        self.log_std = nn.Linear(HIDDEN[-1], ACTION) if drawn else None

    def named(self):
        parts = names("actor", [*self.trunk, self.head])
        if self.log_std is not None:
            parts["actor.log_std_head.weight"] = self.log_std.weight
            parts["actor.log_std_head.bias"] = self.log_std.bias
        return parts


class Case:
    def __init__(self, name, seed, own_critic_obs, config):
        torch.manual_seed(seed)
        self.name, self.config, self.own = name, config, own_critic_obs
        self.drawn = "target_entropy" in config
        outputs = 1 if self.drawn else config["num_atoms"]
        seen = (CRITIC_OBS if own_critic_obs else OBS) + ACTION
        self.actor = Actor(self.drawn)
        self.critics = [mlp(seen, outputs) for _ in range(2)]
        self.slow = [mlp(seen, outputs) for _ in range(2)]
        for slow, critic in zip(self.slow, self.critics):
            slow.load_state_dict(critic.state_dict())
            with torch.no_grad():
                for p in slow.parameters():
                    p.add_(0.05 * torch.randn_like(p))
        decay = config.get("weight_decay", 0.0)
        c = config
        critic_parameters = [p for net in self.critics for p in net.parameters()]
        actor_parameters = list(self.actor.parameters())
        self.critic_opt = torch.optim.AdamW(
            critic_parameters, lr=c["critic_learning_rate"], weight_decay=decay
        )
        self.actor_opt = torch.optim.AdamW(
            actor_parameters, lr=c["actor_learning_rate"], weight_decay=decay
        )
        self.log_alpha = torch.tensor([c.get("init_alpha", 1.0)]).log()
        self.log_alpha.requires_grad_(True)
        self.alpha_opt = torch.optim.Adam(
            [self.log_alpha], lr=c.get("alpha_learning_rate", 1e-3)
        )

    def parameters(self):
        parts = self.actor.named()
        for i in range(2):
            parts |= names(f"critic.{i + 1}", self.critics[i])
            parts |= names(f"target_critic.{i + 1}", self.slow[i])
        if self.drawn:
            parts["alpha.log"] = self.log_alpha
        return parts

    def batch(self):
        def normal(*shape):
            return torch.randn(*shape)

        valid = torch.ones(ROWS)
        valid[2] = 0.0
        batch = {
            "obs": normal(ROWS, OBS),
            "next_obs": normal(ROWS, OBS),
            "action": torch.tanh(normal(ROWS, ACTION)) * self.config["action_bound"],
            "reward": 2.0 * normal(ROWS),
            "terminated": (torch.arange(ROWS) % 3 == 1).float(),
            "discount": torch.where(torch.arange(ROWS) % 2 == 0, 0.99, 0.97),
            "valid": valid,
            "weights": 0.5 + torch.rand(ROWS),
            "next_noise": normal(ROWS, ACTION),
            "noise": normal(ROWS, ACTION),
        }
        if self.own:
            batch["critic_obs"] = normal(ROWS, CRITIC_OBS)
            batch["next_critic_obs"] = normal(ROWS, CRITIC_OBS)
        return batch

    def distribution(self, obs):
        features = self.actor.trunk(obs)
        std = self.actor.log_std(features).exp()
        return self.actor.head(features), std

    def draw(self, obs, noise):
        """An action in units of the bound, its log-density, and the deviation."""
        mean, std = self.distribution(obs)
        base = Independent(Normal(mean, std), 1)
        squashed = TransformedDistribution(base, [TanhTransform(cache_size=1)])
        u = mean + std * noise
        action = squashed.transforms[0](u)
        return action, squashed.log_prob(action), std

    def step(self, number, b):
        c, bound = self.config, self.config["action_bound"]
        seen = b["critic_obs"] if self.own else b["obs"]
        seen_next = b["next_critic_obs"] if self.own else b["next_obs"]
        weight = b["valid"] * b["weights"]
        weight = weight / weight.sum()
        bootstrap = b["discount"] * (1.0 - b["terminated"])
        stats = {}

        def q(nets, obs, action):
            return [net(torch.cat([obs, action], 1)) for net in nets]

        if self.drawn:
            alpha = self.log_alpha.exp().detach()
            with torch.no_grad():
                action, log_prob, _ = self.draw(b["next_obs"], b["next_noise"])
                slow = q(self.slow, seen_next, bound * action)
                value = torch.minimum(*slow)[:, 0] - alpha * log_prob
                target = b["reward"] + bootstrap * value
            values = [v[:, 0] for v in q(self.critics, seen, b["action"])]
            loss = sum(0.5 * (weight * (v - target) ** 2).sum() for v in values)
            stats["td_error"] = sum((v - target).abs() for v in values) / 2
            stats["q_mean"] = (weight * target).sum()
        else:
            atoms = torch.linspace(c["v_min"], c["v_max"], c["num_atoms"])
            with torch.no_grad():
                noise = (b["next_noise"] * c["policy_noise"]).clamp(
                    -c["noise_clip"], c["noise_clip"]
                )
                mean = torch.tanh(self.actor.head(self.actor.trunk(b["next_obs"])))
                action = bound * (mean + noise).clamp(-1.0, 1.0)
                slow = q(self.slow, seen_next, action)
                targets = [
                    self.project(logits.softmax(1), b["reward"], bootstrap, atoms)
                    for logits in slow
                ]
                if c["use_cdq"]:
                    means = [(t * atoms).sum(1, keepdim=True) for t in targets]
                    less = torch.where(means[0] < means[1], *targets)
                    targets = [less, less]
            logits = q(self.critics, seen, b["action"])
            loss = 0.0
            for x, t in zip(logits, targets):
                loss = loss - (weight * (t * x.log_softmax(1)).sum(1)).sum()
            stats["td_error"] = (
                sum(
                    ((x.softmax(1) - t) * atoms).sum(1).abs()
                    for x, t in zip(logits, targets)
                )
                / 2
            )
            stats["q_mean"] = (weight * (targets[0] * atoms).sum(1)).sum()
        self.critic_opt.zero_grad()
        loss.backward()
        parameters = [p for net in self.critics for p in net.parameters()]
        limit = c["max_grad_norm"] or float("inf")
        stats["critic_norm"] = nn.utils.clip_grad_norm_(parameters, limit)
        self.critic_opt.step()
        stats["critic_loss"] = loss

        if (number + 1) % c["policy_frequency"] == 0:
            if self.drawn:
                action, log_prob, _ = self.draw(b["obs"], b["noise"])
                value = torch.minimum(*q(self.critics, seen, bound * action))[:, 0]
                loss = (weight * (alpha * log_prob - value)).sum()
                stats["entropy"] = -(weight * log_prob).sum()
            else:
                mean = torch.tanh(self.actor.head(self.actor.trunk(b["obs"])))
                values = [
                    (x.softmax(1) * atoms).sum(1)
                    for x in q(self.critics, seen, bound * mean)
                ]
                value = torch.minimum(*values) if c["use_cdq"] else sum(values) / 2
                loss = -(weight * value).sum()
            self.actor_opt.zero_grad()
            loss.backward()
            parameters = list(self.actor.parameters())
            stats["actor_norm"] = nn.utils.clip_grad_norm_(parameters, limit)
            self.actor_opt.step()
            stats["actor_loss"] = loss
            if self.drawn and c["auto_alpha"]:
                goal = c["target_entropy"] * ACTION
                loss = -(self.log_alpha * (weight * (log_prob + goal)).sum().detach())
                self.alpha_opt.zero_grad()
                loss.sum().backward()
                self.alpha_opt.step()
        with torch.no_grad():
            for slow, critic in zip(self.slow, self.critics):
                for s, p in zip(slow.parameters(), critic.parameters()):
                    s.lerp_(p, c["tau"])
        return stats

    def project(self, p, reward, bootstrap, atoms):
        low, high, k = atoms[0].item(), atoms[-1].item(), len(atoms)
        gap = (high - low) / (k - 1)
        out = torch.zeros_like(p)
        for row in range(ROWS):
            for j in range(k):
                z = reward[row] + bootstrap[row] * atoms[j]
                place = (z.clamp(low, high) - low) / gap
                below = int(place.floor().clamp(0, k - 2))
                share = place - below
                out[row, below] += p[row, j] * (1.0 - share)
                out[row, below + 1] += p[row, j] * share
        return out

    def run(self):
        start = tensors(self.parameters())
        batches, stats = [], []
        for i in range(STEPS):
            batch = self.batch()
            batches.append(tensors(batch))
            stats.append(tensors(self.step(i, batch)))
        return {
            "name": self.name,
            "own_critic_obs": self.own,
            "config": self.config,
            "params": start,
            "batches": batches,
            "stats": stats,
            "expected": tensors(self.parameters()),
        }


def tensors(parts):
    def one(t):
        t = torch.as_tensor(t).detach()
        # Nine digits are all that a float32 has.
        data = [float(f"{float(x):.9g}") for x in t.flatten()]
        return {"shape": list(t.shape), "data": data}

    return {name: one(t) for name, t in parts.items()}


def main():
    sac = {
        "batch_size": ROWS,
        "tau": 0.02,
        "actor_learning_rate": 3e-3,
        "critic_learning_rate": 1e-3,
        "alpha_learning_rate": 2e-3,
        "init_alpha": 0.3,
        "auto_alpha": True,
        "target_entropy": -1.0,
        "policy_frequency": 1,
        "action_bound": 1.0,
        "max_grad_norm": 0.0,
    }
    td3 = {
        "batch_size": ROWS,
        "tau": 0.1,
        "actor_learning_rate": 3e-3,
        "critic_learning_rate": 1e-3,
        "weight_decay": 0.1,
        "policy_frequency": 2,
        "policy_noise": 0.2,
        "noise_clip": 0.3,
        "num_atoms": 11,
        "v_min": -5.0,
        "v_max": 5.0,
        "use_cdq": True,
        "action_bound": 1.0,
        "max_grad_norm": 0.0,
    }
    clipped = {"max_grad_norm": 0.3, "action_bound": 2.5}
    cases = [
        Case("sac", 1, False, sac),
        Case("sac, clipped, own critic", 2, True, sac | clipped | {"policy_frequency": 2}),
        Case("sac, fixed alpha", 3, False, sac | {"auto_alpha": False}),
        Case("td3", 4, False, td3),
        Case("td3, clipped, own critic", 5, True, td3 | clipped),
        Case("td3, mean of critics", 6, False, td3 | {"use_cdq": False}),
    ]
    json.dump({"cases": [case.run() for case in cases]}, sys.stdout)


if __name__ == "__main__":
    main()
