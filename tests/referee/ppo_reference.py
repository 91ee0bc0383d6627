"""Writes tests/fixtures/ppo_update.json: whole PPO updates computed by PyTorch.

Networks, distributions, divergences, gradients, Adam and gradient clipping are
PyTorch's own; only the permutation (Philox) and the glue are written here.

    python ppo_reference.py > ../fixtures/ppo_update.json

Recorded with torch 2.11.0, numpy 2.4.6.
"""

import json
import math
import sys

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Independent, Normal, kl_divergence

M32 = 0xFFFFFFFF


def philox(seed, stream, purpose, step, index):
    c = [index, stream, step & M32, (((step >> 32) << 8) | purpose) & M32]
    k = [seed & M32, seed >> 32]
    for r in range(10):
        if r:
            k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & M32, (p0 >> 32) ^ c[3] ^ k[1], p0 & M32]
    return c


def permutation(n, seed, update, epoch):
    """The order of `trainer/kernels/order.cuh`."""
    room = max(n, 64)
    bits = ((room - 1).bit_length() + 1) // 2
    columns = 1 << bits
    rows = -(-room // columns)
    keys = [word for i in range(3) for word in philox(seed, epoch, 5, update, i)]

    def scramble(x, key, limit):
        h = (x * ((key | 1) & 0xFFFF) + (key >> 16)) & 0xFFFF
        h ^= h >> 8
        return (h * 0x9E37 & 0xFFFF) * limit >> 16

    def through(place):
        row, column = divmod(place, columns)
        for k in range(0, 12, 2):
            row = (row + scramble(column, keys[k], rows)) % rows
            column ^= scramble(row, keys[k + 1], columns)
        return row * columns + column

    order = []
    for place in range(n):
        place = through(place)
        while place >= n:
            place = through(place)
        order.append(place)
    return order


ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh}


class Net(nn.Module):
    def __init__(self, case):
        super().__init__()
        actor, critic = case["actor"], case["critic"]
        self.discrete = "discrete" in case["action"]
        self.act = ACTIVATIONS[actor["activation"]]()
        self.critic_act = ACTIVATIONS[critic["activation"]]()
        self.bounds = (math.log(actor["min_std"]), math.log(actor["max_std"]))
        obs, out = case["obs"], next(iter(case["action"].values()))

        def trunk(dims):
            widths = [obs, *dims]
            return nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

        self.actor = trunk(actor["hidden_dims"])
        self.head = nn.Linear(actor["hidden_dims"][-1], out)
        self.state_dependent = actor["std_type"] == "state_dependent"
        if not self.discrete:
            if self.state_dependent:
                self.std_head = nn.Linear(actor["hidden_dims"][-1], out)
            else:
                self.log_std = nn.Parameter(torch.zeros(out))
        self.shared = critic["shared"]
        self.critic = trunk([] if self.shared else critic["hidden_dims"])
        dims = actor["hidden_dims"] if self.shared else critic["hidden_dims"]
        self.value_head = nn.Linear(dims[-1], 1)

    def names(self):
        """Parameters in the order and with the names of the Rust program."""
        modules = [(f"actor.{i}", m) for i, m in enumerate(self.actor)]
        modules.append(("actor.head", self.head))
        out = []
        if not self.discrete:
            if self.state_dependent:
                modules.append(("actor.log_std_head", self.std_head))
        modules += [(f"critic.{i}", m) for i, m in enumerate(self.critic)]
        modules.append(("critic.head", self.value_head))
        for name, m in modules:
            out += [(name + ".weight", m.weight), (name + ".bias", m.bias)]
        if not self.discrete and not self.state_dependent:
            out.append(("actor.log_std", self.log_std))
        return out

    def features(self, x):
        for layer in self.actor:
            x = self.act(layer(x))
        return x

    def dist(self, x):
        h = self.features(x)
        if self.discrete:
            return Categorical(logits=self.head(h))
        log_std = self.std_head(h).clamp(*self.bounds) if self.state_dependent else self.log_std
        mean = self.head(h)
        return Independent(Normal(mean, log_std.exp().expand_as(mean)), 1)

    def value(self, x):
        if self.shared:
            return self.value_head(self.features(x)).squeeze(-1)
        for layer in self.critic:
            x = self.critic_act(layer(x))
        return self.value_head(x).squeeze(-1)


def old_dist(net, roll):
    if net.discrete:
        return Categorical(logits=roll["dist"])
    return Independent(Normal(roll["dist"], roll["std"]), 1)


def make_rollout(case, net, rng):
    T, N, O = case["steps"], case["envs"], case["obs"]
    t = lambda *s: torch.tensor(rng.standard_normal(s), dtype=torch.float32)
    roll = {"obs": t(T + 1, N, O), "final_obs": t(1, N, O), "reward": t(T, N)}
    with torch.no_grad():
        d = net.dist(roll["obs"][:T])
        if net.discrete:
            roll["dist"] = d.logits + 0.3 * t(*d.logits.shape)
            roll["action"] = torch.tensor(
                rng.integers(0, d.logits.shape[-1], (T, N, 1)), dtype=torch.float32)
        else:
            roll["dist"] = d.base_dist.loc + 0.15 * t(*d.base_dist.loc.shape)
            roll["std"] = d.base_dist.scale * (0.1 * t(*d.base_dist.scale.shape)).exp()
            roll["action"] = roll["dist"] + roll["std"] * t(*roll["std"].shape)
    zeros = lambda: torch.zeros(T, N)
    roll["terminated"], roll["truncated"], roll["valid"] = zeros(), zeros(), zeros() + 1
    roll["final_slot"] = -torch.ones(T, N)
    roll["terminated"][1, 0] = 1
    roll["truncated"][2, 1] = 1
    roll["final_slot"][2, 1] = 0
    roll["valid"][2, 2] = 0
    roll["reward"][2, 2] = 0
    return roll


def returns(case, roll, value, final_value):
    c, T, N = case["ppo"], case["steps"], case["envs"]
    adv = torch.zeros(T, N)
    for n in range(N):
        trace = 0.0
        for t in reversed(range(T)):
            term, trunc = roll["terminated"][t, n] > 0, roll["truncated"][t, n] > 0
            beyond = value[t + 1, n]
            if trunc:
                beyond = final_value[int(roll["final_slot"][t, n]), n]
            if term:
                beyond = torch.zeros(())
            delta = roll["reward"][t, n] + c["gamma"] * beyond - value[t, n]
            if term or trunc:
                trace = 0.0
            trace = delta + c["gamma"] * c["gae_lambda"] * trace
            if roll["valid"][t, n] == 0:
                trace = 0.0
            adv[t, n] = trace
    return adv


def update(case, net, roll):
    c = case["ppo"]
    T, N = case["steps"], case["envs"]
    M = T * N
    eps = c["clip_param"]
    with torch.no_grad():
        value, final_value = net.value(roll["obs"]), net.value(roll["final_obs"])
        adv = returns(case, roll, value, final_value)
        ret = adv + value[:T]
        ok = roll["valid"].bool()
        norm_adv = adv
        spread = ret[ok].std()
        signal = 1.0
        if c["normalize_advantage"] == "batch":
            own = adv[ok].std()
            norm_adv = (adv - adv[ok].mean()) / (own + 1e-8)
            least = torch.maximum(own, c["advantage_floor"] * spread) + 1e-8
            signal = max(float(own / least), 1e-3)
        value_clip = eps * spread
        before = old_dist(net, roll)
        log_prob = before.log_prob(roll["action"].squeeze(-1) if net.discrete else roll["action"])
        explained = 1 - (ret - value[:T])[ok].var() / ret[ok].var()
    flat = lambda x: x.reshape(M, *x.shape[2:])
    data = {k: flat(v) for k, v in [
        ("obs", roll["obs"][:T]), ("action", roll["action"]), ("dist", roll["dist"]),
        ("valid", roll["valid"]), ("adv", norm_adv), ("ret", ret), ("value", value[:T]),
        ("log_prob", log_prob)]}
    if not net.discrete:
        data["std"] = flat(roll["std"])
    actor = [p for n, p in net.names() if n.startswith("actor") or net.shared]
    critic = [p for n, p in net.names() if not (n.startswith("actor") or net.shared)]
    lr = c["learning_rate"]
    # The first update of a run: nothing has fallen yet.
    desired = c["desired_kl"] * signal ** 2
    adams = [torch.optim.Adam(actor, lr=lr * signal)]
    if critic:
        adams.append(torch.optim.Adam(critic, lr=c["critic_learning_rate"] or lr))
    sums = {k: 0.0 for k in
            ["surrogate", "value_function", "entropy", "clip_fraction", "grad_norm"]}
    count, steps = 0, 0
    first, last, stopped = None, 0.0, False
    for epoch in range(c["num_learning_epochs"]):
        order = permutation(M, case["seed"], 0, epoch)
        parts = c["num_mini_batches"]
        for i in range(parts):
            index = torch.tensor(order[M * i // parts:M * (i + 1) // parts])
            b = {k: v[index] for k, v in data.items()}
            w = b["valid"] / b["valid"].sum()
            mean = lambda x: (w * x).sum()
            dist = net.dist(b["obs"])
            action = b["action"].squeeze(-1) if net.discrete else b["action"]
            a = b["adv"]
            if c["normalize_advantage"] == "mini_batch":
                good = b["valid"].bool()
                a = (a - a[good].mean()) / (a[good].std() + 1e-8)
            ratio = (dist.log_prob(action) - b["log_prob"]).exp()
            surrogate = mean(torch.max(-a * ratio, -a * ratio.clamp(1 - eps, 1 + eps)))
            v = net.value(b["obs"])
            point = (lambda e: e.square()) if c["value_loss"] == "mse" else (
                lambda e: nn.functional.huber_loss(e, torch.zeros_like(e), reduction="none"))
            losses = point(v - b["ret"])
            if c["use_clipped_value_loss"]:
                held = b["value"] + (v - b["value"]).clamp(-value_clip, value_clip)
                losses = torch.max(losses, point(held - b["ret"]))
            value_loss = mean(losses)
            entropy = mean(dist.entropy())
            loss = surrogate + c["value_loss_coef"] * value_loss - c["entropy_coef"] * entropy
            with torch.no_grad():
                if not stopped:
                    last = float(mean(kl_divergence(old_dist(net, b), dist)))
                    first = last if first is None else first
                    stopped = c["kl_stop"] > 0 and last - first > c["kl_stop"] * desired
            count += 1
            sums["value_function"] += float(value_loss.detach())
            if critic and stopped:
                # The actor's gradient stays what it was.
                loss = c["value_loss_coef"] * value_loss
            elif stopped:
                continue
            for adam in adams[1:] if stopped else adams:
                adam.zero_grad()
            loss.backward()
            if not stopped:
                norm = nn.utils.clip_grad_norm_(actor, c["max_grad_norm"])
                adams[0].step()
                outside = mean(((ratio - 1).abs() > eps).float())
                steps += 1
                for key, x in [("surrogate", surrogate), ("entropy", entropy),
                               ("clip_fraction", outside), ("grad_norm", norm)]:
                    sums[key] += float(x.detach())
            if critic:
                nn.utils.clip_grad_norm_(critic, c["max_grad_norm"])
                adams[1].step()
            if not net.discrete and not net.state_dependent:
                net.log_std.data.clamp_(*net.bounds)
    if c["schedule"] == "adaptive":
        if stopped or last > 2 * desired:
            lr = max(c["min_learning_rate"], lr / 1.5)
        elif 0 < last < desired / 2:
            lr = min(c["max_learning_rate"], lr * 1.5)
    stats = {k: v / (count if k == "value_function" else steps) for k, v in sums.items()}
    stats["kl"] = last
    stats["learning_rate"] = lr
    stats["policy_share"] = steps / count
    stats["explained_variance"] = float(explained)
    return stats


def numbers(x):
    return [float(f"{v:.9g}") for v in x.detach().reshape(-1).tolist()]


def named(net, get=lambda p: p):
    return {n: {"shape": list(p.shape), "data": numbers(get(p))} for n, p in net.names()}


def case(name, action, seed, ppo=None, actor=None, critic=None):
    return {
        "name": name, "action": action, "seed": seed, "obs": 3, "steps": 4, "envs": 5,
        "ppo": {
            "num_learning_epochs": 1, "num_mini_batches": 1, "clip_param": 0.2,
            "use_clipped_value_loss": True, "value_loss_coef": 1.0, "value_loss": "mse",
            "entropy_coef": 0.01, "gamma": 0.97, "gae_lambda": 0.9, "learning_rate": 1e-3,
            "schedule": "fixed", "desired_kl": 0.01, "kl_stop": 1.5, "critic_learning_rate": 0.0,
            "advantage_floor": 0.02, "normalize_returns": False, "min_learning_rate": 1e-5,
            "max_learning_rate": 1e-2, "max_grad_norm": 1.0, "normalize_advantage": "batch",
            **(ppo or {})},
        "actor": {"hidden_dims": [5, 4], "activation": "elu", "init_std": 1.0,
                  "std_type": "scalar", "min_std": 1e-3, "max_std": 10.0, **(actor or {})},
        "critic": {"hidden_dims": [6], "activation": "tanh", "shared": False, **(critic or {})},
    }


CASES = [
    case("gaussian, one step", {"continuous": 2}, 1),
    case("gaussian, adaptive, uneven minibatches", {"continuous": 2}, 2,
         ppo={"num_learning_epochs": 3, "num_mini_batches": 3, "schedule": "adaptive",
              "use_clipped_value_loss": False, "learning_rate": 3e-3, "kl_stop": 20.0}),
    case("gaussian, the policy stops, little signal", {"continuous": 2}, 5,
         ppo={"num_learning_epochs": 4, "num_mini_batches": 2, "schedule": "adaptive",
              "learning_rate": 2e-2, "critic_learning_rate": 5e-3, "advantage_floor": 1.3,
              "max_grad_norm": 0.2}),
    case("state-dependent deviation, shared, huber", {"continuous": 2}, 3,
         ppo={"num_learning_epochs": 2, "num_mini_batches": 2, "value_loss": "huber",
              "normalize_advantage": "mini_batch", "max_grad_norm": 0.3, "kl_stop": 0.0},
         actor={"std_type": "state_dependent", "activation": "tanh"}, critic={"shared": True}),
    case("categorical", {"discrete": 3}, 1 << 40,
         ppo={"num_learning_epochs": 2, "num_mini_batches": 4, "entropy_coef": 0.1,
              "normalize_advantage": "none", "schedule": "adaptive"},
         critic={"activation": "relu"}),
]


def main():
    out = []
    for i, c in enumerate(CASES):
        torch.manual_seed(100 + i)
        rng = np.random.default_rng(200 + i)
        net = Net(c)
        with torch.no_grad():
            for n, p in net.names():
                if n == "actor.log_std":
                    p.copy_(torch.tensor([-0.3, 0.2]))
        start = named(net)
        roll = make_rollout(c, net, rng)
        given = {k: {"shape": list(v.shape), "data": numbers(v)} for k, v in roll.items()}
        stats = update(c, net, roll)
        out.append({**c, "params": start, "rollout": given, "expected": {
            "stats": stats, "params": named(net), "grad": named(net, lambda p: p.grad)}})
    json.dump({"torch": torch.__version__, "cases": out}, sys.stdout, separators=(",", ":"))


main()
