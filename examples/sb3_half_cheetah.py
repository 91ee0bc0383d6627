"""Stable-Baselines3's PPO trains the half-cheetah in Ostler's environments.

    pip install stable-baselines3
    python examples/sb3_half_cheetah.py --steps 2000000

Prints the mean return of training episodes over environment steps.
"""

import argparse
import time

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from ostler.sb3 import make_vec


class Curve(BaseCallback):
    """A line after every rollout."""

    def _on_training_start(self):
        self.begin = time.perf_counter()

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        ended = [episode["r"] for episode in self.model.ep_info_buffer]
        mean = np.mean(ended) if ended else float("nan")
        took = time.perf_counter() - self.begin
        print(f"{self.num_timesteps:9} steps  {took:6.1f} s  return {mean:8.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    env = make_vec("half_cheetah", num_envs=64, sim={"threads": 1, "specialize": "wait"})
    model = PPO(
        "MlpPolicy",
        VecNormalize(env, gamma=0.98),
        n_steps=256,
        batch_size=1024,
        n_epochs=5,
        learning_rate=1e-3,
        gamma=0.98,
        gae_lambda=0.92,
        policy_kwargs={"net_arch": [128, 64], "log_std_init": -1.0},
        seed=args.seed,
        device="cpu",
    )
    model.learn(args.steps, callback=Curve())


if __name__ == "__main__":
    main()
