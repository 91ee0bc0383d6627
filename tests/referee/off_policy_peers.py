"""Writes tests/fixtures/off_policy_peers.json: gradient steps of FastSAC and FlashSAC by the
peers' own agents, unmodified, out of their wheels (peers.txt).

    python off_policy_peers.py WHEELS > ../fixtures/off_policy_peers.json

Recorded with torch 2.11.0. What differs from the peers' defaults: small networks; FastSAC's
heads do not start at 0 and its temperature does not decay; FlashSAC's rewards are not scaled.
"""

import contextlib
import json
import math
import pathlib
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
WHEELS = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(WHEELS))

import absent  # noqa: E402
import torch  # noqa: E402

absent.stand_in(
    *"loguru tqdm tensordict pydantic tensorboard wandb onnx easydict hydra omegaconf rich tyro".split(),
    *"holosoma.envs holosoma.managers holosoma.simulator holosoma.utils.inference_helpers".split(),
    *"holosoma.agents.callbacks holosoma.agents.modules".split(),
)
for name in ["uni_rl", "uni_rl.algos", "uni_rl.algos.common", "uni_rl.algos.flash_sac", "uni_rl.offpolicy"]:
    absent.bare(name, WHEELS / name.replace(".", "/"))
for name in ["holosoma", "holosoma.agents", "holosoma.agents.fast_sac"]:
    absent.bare(name, WHEELS / name.replace(".", "/"))
torch.utils.tensorboard = types.ModuleType("torch.utils.tensorboard")
torch.utils.tensorboard.SummaryWriter = object
sys.modules["torch.utils.tensorboard"] = torch.utils.tensorboard

from holosoma.agents.fast_sac.fast_sac_agent import FastSACAgent, FastSACEnv  # noqa: E402
from holosoma.config_types.algo import FastSACConfig  # noqa: E402
from uni_rl.algos.flash_sac.learner import FlashSACLearner  # noqa: E402

OBS, CRITIC_OBS, ACTION, ROWS, STEPS = 5, 3, 2, 7, 4
DRAWS = []


def drawn(shape, dtype, device):
    """The numbers that the next `rsample` draws."""
    noise = DRAWS.pop(0)
    assert tuple(shape) == tuple(noise.shape)
    return noise


torch.distributions.normal._standard_normal = drawn


def batch(scale, steps):
    """Transitions; `steps`: how many each of them sums."""
    ended = torch.arange(ROWS) % 3 == 1
    return {
        "obs": torch.randn(ROWS, OBS),
        "next_obs": torch.randn(ROWS, OBS),
        "critic_obs": torch.randn(ROWS, CRITIC_OBS),
        "next_critic_obs": torch.randn(ROWS, CRITIC_OBS),
        "action": torch.tanh(torch.randn(ROWS, ACTION)) * scale,
        "reward": 2.0 * torch.randn(ROWS),
        "terminated": ended.float(),
        "truncated": (torch.arange(ROWS) % 3 == 2).float(),
        "steps": torch.arange(ROWS) % steps + 1,
        "valid": torch.ones(ROWS),
        "weights": torch.ones(ROWS),
        "next_noise": torch.randn(ROWS, ACTION),
        "noise": torch.randn(ROWS, ACTION),
    }


def disturb(modules):
    with torch.no_grad():
        for module in modules:
            for p in module.parameters():
                p.add_(0.05 * torch.randn_like(p))


def run(name, config, networks, agent):
    """Steps of an agent: `parameters()`, `step(number, batch)`."""
    start = tensors(agent.parameters())
    batches, stats = [], []
    for i in range(STEPS):
        b = batch(agent.scale, agent.steps)
        b["discount"] = torch.tensor(agent.gamma) ** b["steps"]
        batches.append(tensors(b))
        stats.append(tensors(agent.step(i, b)))
        assert not DRAWS
    return {
        "name": name,
        "own_critic_obs": True,
        "reach": getattr(agent, "reach", []),
        "config": config,
        **networks,
        "params": start,
        "batches": batches,
        "stats": stats,
        "expected": tensors(agent.parameters()),
    }


class Fast:
    gamma, steps = 0.97, 2

    def __init__(self, **changed):
        values = {
            "actor_hidden_dim": 16,
            "critic_hidden_dim": 16,
            "num_atoms": 11,
            "v_min": -5.0,
            "v_max": 5.0,
            "alpha_init": 0.3,
            "target_entropy_ratio": 0.5,
            "actor_learning_rate": 3e-3,
            "critic_learning_rate": 1e-3,
            "weight_decay": 0.1,
            "policy_frequency": 2,
            "buffer_size": 1,
            "amp": False,
            "obs_normalization": False,
            "actor_obs_keys": ["actor_obs"],
            "critic_obs_keys": ["critic_obs"],
            **changed,
        }
        self.config = type("Config", (FastSACConfig,), values)
        # Joints whose target reaches the farther limit with actions of 2 and of 0.5: all
        # together, actions in these units have the density of actions.
        robot = types.SimpleNamespace(
            dof_names=["a", "b"],
            actions_dim=ACTION,
            dof_pos_lower_limit_list=[-1.0, -0.1],
            dof_pos_upper_limit_list=[0.5, 0.2],
            init_state=types.SimpleNamespace(default_joint_angles={"b": -0.05}),
            control=types.SimpleNamespace(action_scale=0.5),
        )
        groups = types.SimpleNamespace(cfg=types.SimpleNamespace(groups={}))
        groups.get_obs_dims = lambda: {"actor_obs": OBS, "critic_obs": CRITIC_OBS}
        env = types.SimpleNamespace(
            robot_config=robot, observation_manager=groups, num_envs=1, device="cpu"
        )
        self.agent = agent = FastSACAgent.__new__(FastSACAgent)
        agent.env = FastSACEnv(env, self.config.actor_obs_keys, self.config.critic_obs_keys)
        agent.config, agent.device = self.config, "cpu"
        agent.is_multi_gpu, agent.gpu_world_size = False, 1
        agent.setup()
        agent.alpha_optimizer.param_groups[0]["weight_decay"] = 0.0
        disturb([agent.actor, agent.qnet, agent.qnet_target])
        self.scale = agent.actor.action_scale
        self.reach = self.scale.tolist()

    def parameters(self):
        def net(prefix, layers, head):
            parts = {}
            for i in range(3):
                for part in ["weight", "bias"]:
                    parts[f"{prefix}.{i}.{part}"] = getattr(layers[3 * i], part)
                    parts[f"{prefix}.{i}.norm.{part}"] = getattr(layers[3 * i + 1], part)
            return parts | linear(f"{prefix}.head", head)

        agent = self.agent
        parts = net("actor", agent.actor.net, agent.actor.fc_mu[0])
        parts |= linear("actor.log_std_head", agent.actor.fc_logstd)
        for name, nets in [("critic", agent.qnet), ("target_critic", agent.qnet_target)]:
            for i, critic in enumerate(nets.qnets):
                parts |= net(f"{name}.{i + 1}", critic.net, critic.net[9])
        return parts | {"alpha.log": agent.log_alpha}

    def step(self, number, b):
        data = {
            "observations": b["obs"],
            "critic_observations": b["critic_obs"],
            "actions": b["action"],
            "next": {
                "observations": b["next_obs"],
                "critic_observations": b["next_critic_obs"],
                "rewards": b["reward"],
                # An episode that time ends is done, too.
                "dones": torch.maximum(b["terminated"], b["truncated"]),
                "truncations": b["truncated"],
                "effective_n_steps": b["steps"],
            },
        }
        agent, stats = self.agent, {}
        DRAWS.append(b["next_noise"])
        stats["critic_loss"] = agent._update_main(data)[2]
        # As `learn` does, which keeps them to itself.
        if number % self.config.policy_frequency == 1:
            DRAWS.append(b["noise"])
            _, loss, entropy, _ = agent._update_pol(data)
            stats |= {"actor_loss": loss, "entropy": entropy}
        with torch.no_grad():
            ours, slow = ([p.data for p in net.parameters()] for net in (agent.qnet, agent.qnet_target))
            torch._foreach_mul_(slow, 1.0 - self.config.tau)
            torch._foreach_add_(slow, ours, alpha=self.config.tau)
        return stats

    def table(self):
        c = self.config
        same = (
            "tau actor_learning_rate critic_learning_rate alpha_learning_rate weight_decay policy_frequency "
            "num_atoms v_min v_max max_grad_norm"
        )
        return {key: getattr(c, key) for key in same.split()} | {
            "batch_size": ROWS,
            "init_alpha": c.alpha_init,
            "target_entropy": -c.target_entropy_ratio,
            "alpha_with_critics": True,
            "use_cdq": False,
            "tanh_std": True,
            "joint_limits": True,
            "betas": [0.9, 0.95],
        }

    def networks(self):
        net = {"hidden_dims": [16, 8, 4], "activation": "silu", "layer_norm": True}
        bounds = [math.exp(self.config.log_std_min), math.exp(self.config.log_std_max)]
        return {"actor": net | deviation(*bounds), "critic": net}


class Flash:
    gamma, steps, scale = 0.99, 1, 1.0
    rates = {"learning_rate_init": 1e-3, "learning_rate_peak": 1e-3, "learning_rate_end": 2e-4}

    def __init__(self):
        self.agent = FlashSACLearner(
            obs_dim=OBS,
            action_dim=ACTION,
            critic_obs_dim=CRITIC_OBS,
            actor_hidden_dim=4,
            critic_hidden_dim=6,
            actor_num_blocks=1,
            critic_num_blocks=2,
            num_atoms=11,
            temp_initial_value=0.3,
            learning_rate_decay_steps=STEPS,
            normalize_reward=False,
            use_compile=False,
            **self.rates,
        )
        agent = self.agent
        disturb([agent.actor, agent.critic])
        for net in (agent.actor, agent.critic):
            net.normalize_parameters()
        agent.target_critic.load_state_dict(agent.critic.state_dict())
        disturb([agent.target_critic])

    def parameters(self):
        def norm(prefix, module, pick):
            parts = ["weight", "bias", "running_mean", "running_var"]
            return {f"{prefix}.norm.{part}": pick(getattr(module, part)) for part in parts}

        def weight(module):
            return module.w.weight if hasattr(module, "w") else module.weight

        def net(prefix, module, pick):
            parts = norm(f"{prefix}.0", module.embedder.norm, pick)
            parts[f"{prefix}.0.weight"] = pick(weight(module.embedder.w))
            for i, block in enumerate(module.encoder):
                for ours, k in [("in", 1), ("out", 2)]:
                    name = f"{prefix}.{i + 1}.{ours}"
                    parts[f"{name}.weight"] = pick(weight(getattr(block, f"w{k}")))
                    parts |= norm(name, getattr(block, f"norm{k}"), pick)
            return parts | {f"{prefix}.norm.weight": pick(module.post_norm.weight)}

        agent = self.agent
        head = agent.actor.predictor
        parts = net("actor", agent.actor, lambda t: t) | {
            "actor.head.weight": head.mean_w.w.weight,
            "actor.head.bias": head.mean_bias,
            "actor.log_std_head.weight": head.std_w.w.weight,
            "actor.log_std_head.bias": head.std_bias,
        }
        for name, critic in [("critic", agent.critic), ("target_critic", agent.target_critic)]:
            for i in range(2):
                one = net(f"{name}.{i + 1}", critic, lambda t, i=i: t[i])
                one[f"{name}.{i + 1}.head.weight"] = critic.predictor.logit_w.weight[i]
                one[f"{name}.{i + 1}.head.bias"] = critic.predictor.logit_bias[i]
                parts |= one
        return parts | {"alpha.log": agent.temperature.log_temp}

    def step(self, number, b):
        data = {
            "obs": b["obs"],
            "next_obs": b["next_obs"],
            "critic": b["critic_obs"],
            "next_critic": b["next_critic_obs"],
            "actions": b["action"],
            "rewards": b["reward"],
            "dones": torch.maximum(b["terminated"], b["truncated"]),
            "truncated": b["truncated"],
        }
        DRAWS.append(b["next_noise"])
        self.agent.update_critic(data)
        # Its actor passes over next observations, too; what it draws there counts nowhere.
        DRAWS.append(torch.cat([b["noise"], torch.zeros(ROWS, ACTION)]))
        said = self.agent.update_actor(data)
        self.agent.soft_update_target()
        return {"actor_loss": said["Loss/actor"], "entropy": said["Loss/entropy"]}

    def table(self):
        rate, agent = self.rates["learning_rate_peak"], self.agent
        return {
            "batch_size": ROWS,
            "tau": agent.tau,
            "actor_learning_rate": rate,
            "critic_learning_rate": rate,
            "alpha_learning_rate": rate,
            "final_lr_share": self.rates["learning_rate_end"] / rate,
            "init_alpha": 0.3,
            "target_entropy": agent.target_entropy / ACTION,
            "num_atoms": 11,
            "v_min": -5.0,
            "v_max": 5.0,
            "tanh_std": True,
        }

    def networks(self):
        def net(widths):
            return {"hidden_dims": widths, "activation": "relu", "architecture": "flash_sac"}

        head = self.agent.actor.predictor
        bounds = [math.exp(head.log_std_min), math.exp(head.log_std_max)]
        return {"actor": net([4, 4]) | deviation(*bounds), "critic": net([6, 6, 6])}


def deviation(low, high):
    return {"min_std": low, "max_std": high, "init_std": low}


def linear(name, layer):
    return {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}


def tensors(parts):
    def one(t):
        t = torch.as_tensor(t).detach()
        # Nine digits are all that a float32 has.
        data = [float(f"{float(x):.9g}") for x in t.flatten()]
        return {"shape": list(t.shape), "data": data}

    return {name: one(t) for name, t in parts.items()}


def main():
    cases = []
    for name, seed, agent in [
        ("fast_sac", 1, Fast),
        ("fast_sac, clipped", 2, lambda: Fast(max_grad_norm=0.3)),
        ("flash_sac", 3, Flash),
    ]:
        torch.manual_seed(seed)
        # They print their networks.
        with contextlib.redirect_stdout(sys.stderr):
            agent = agent()
        cases.append(run(name, agent.table(), agent.networks(), agent))
    json.dump({"cases": cases}, sys.stdout)


if __name__ == "__main__":
    main()
