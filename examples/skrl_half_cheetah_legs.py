"""skrl's MAPPO trains the half-cheetah with a policy for each leg; their critics see all.

    pip install skrl
    python examples/skrl_half_cheetah_legs.py --steps 5000

Prints the mean return of the training episodes that ended, with exploration.
"""

import argparse

import numpy as np
import torch
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.multi_agents.torch.mappo import MAPPO, MAPPO_CFG
from skrl.resources.preprocessors.torch import RunningStandardScaler
from skrl.resources.schedulers.torch import KLAdaptiveLR
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed

import ostler

#: Steps of the batch between two updates.
ROLLOUTS = 50


def network(inputs, outputs):
    """Two hidden layers."""
    layers = []
    for width in (64, 64):
        layers += [torch.nn.Linear(inputs, width), torch.nn.ELU()]
        inputs = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(inputs, outputs))


class Policy(GaussianMixin, Model):
    """From what an agent sees to its actions."""

    def __init__(self, spaces):
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self)
        self.net = network(self.num_observations, self.num_actions)
        self.log_std = torch.nn.Parameter(torch.full((self.num_actions,), np.log(0.5)))

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    """From the view of all to an agent's return."""

    def __init__(self, spaces):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = network(self.num_states, 1)

    def compute(self, inputs, role=""):
        return self.net(inputs["states"]), {}


class Learner(MAPPO):
    """MAPPO with settings near those of `configs/half_cheetah_legs.toml`."""

    def __init__(self, env, batch, rollouts):
        models, memories, sizes = {}, {}, {"observation": {}, "state": {}, "value": {}}
        for name in env.possible_agents:
            spaces = {
                "observation_space": env.observation_space(name),
                "state_space": env.state_space(name),
                "action_space": env.action_space(name),
                "device": env.device,
            }
            models[name] = {"policy": Policy(spaces), "value": Value(spaces)}
            memories[name] = RandomMemory(
                memory_size=rollouts, num_envs=env.num_envs, device=env.device
            )
            for what, size in zip(sizes, (env.observation_space(name), env.state_space(name), 1)):
                sizes[what][name] = {"size": size, "device": env.device}
        cfg = MAPPO_CFG(
            rollouts=rollouts,
            learning_epochs=5,
            mini_batches=16,
            discount_factor=0.99,
            learning_rate=1e-3,
            learning_rate_scheduler=KLAdaptiveLR,
            learning_rate_scheduler_kwargs={n: {"kl_threshold": 0.03} for n in models},
            value_loss_scale=1.0,
            # Episodes end by time alone.
            time_limit_bootstrap=True,
            observation_preprocessor=RunningStandardScaler,
            observation_preprocessor_kwargs=sizes["observation"],
            state_preprocessor=RunningStandardScaler,
            state_preprocessor_kwargs=sizes["state"],
            value_preprocessor=RunningStandardScaler,
            value_preprocessor_kwargs=sizes["value"],
        )
        cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
        super().__init__(
            possible_agents=env.possible_agents,
            models=models,
            memories=memories,
            observation_spaces=env.observation_spaces,
            state_spaces=env.state_spaces,
            action_spaces=env.action_spaces,
            device=env.device,
            cfg=cfg,
        )
        self.batch, self.returns = batch, []

    def post_interaction(self, *, timestep, timesteps):
        super().post_interaction(timestep=timestep, timesteps=timesteps)
        if (timestep + 1) % self.cfg.rollouts == 0:
            self.returns.append(self.batch.statistics()["return"])


def train(steps, num_envs=64, seed=1, **options):
    """Trains for so many steps of the batch; mean returns of the episodes of each rollout."""
    set_seed(seed)
    torch.set_num_threads(1)
    batch = ostler.make_marl("half_cheetah_legs", num_envs, seed=seed, random_ages=True, **options)
    env = wrap_env(batch, wrapper="pettingzoo")
    agent = Learner(env, batch, ROLLOUTS)
    cfg = {"timesteps": steps, "headless": True, "disable_progressbar": True}
    SequentialTrainer(env=env, agents=agent, cfg=cfg).train()
    return agent.returns


def main():
    """Trains and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    returns = train(arguments.steps, seed=arguments.seed)
    # An episode has a thousand steps: in many rollouts none ends.
    told = [(i, x) for i, x in enumerate(returns, 1) if np.isfinite(x)]
    for i, mean in told[:: max(len(told) // 20, 1)]:
        print(f"{i * ROLLOUTS:>6} steps of all environments: mean return {mean:8.1f}")
    print(f"the last ten of these: mean return {np.mean([x for _, x in told[-10:]]):8.1f}")


if __name__ == "__main__":
    main()
