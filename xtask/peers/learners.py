"""Learners of others, timed: what `cargo xtask peers` measures beside Ostler.

    learners.py update THREADS SECONDS     rsl_rl's PPO: 24,576 samples, networks of mjlab's Go1
    learners.py env envpool|gymnasium THREADS SECONDS        the half-cheetah, random actions
    learners.py start sb3|rsl_rl           imports, one rollout of 2,048 steps, one update

`update` and `env` print samples or steps, seconds by the clock, and seconds of processor time.
"""

import sys
import time

CLOCKS = (time.perf_counter, time.process_time)


def report(done, begin):
    print("measured", done, *(now() - then for now, then in zip(CLOCKS, begin)))


def runner(envs, steps, hidden, epochs, observed, seen, actions):
    """rsl_rl's runner over an environment that costs nothing."""
    import torch
    from rsl_rl.env import VecEnv
    from rsl_rl.runners import OnPolicyRunner
    from tensordict import TensorDict

    torch.manual_seed(1)
    obs = TensorDict({"policy": torch.randn(envs, observed), "critic": torch.randn(envs, seen)}, [envs])

    class Idle(VecEnv):
        num_envs, num_actions, max_episode_length, device, cfg = envs, actions, 1000, "cpu", {}
        episode_length_buf = torch.zeros(envs, dtype=torch.long)
        reward, done = torch.randn(envs), torch.zeros(envs, dtype=torch.bool)

        def get_observations(self):
            return obs

        def step(self, _):
            return obs, self.reward, self.done, {}

    network = dict(class_name="rsl_rl.models.MLPModel", hidden_dims=hidden, activation="elu")
    network["obs_normalization"] = True
    noise = dict(class_name="GaussianDistribution", init_std=1.0, std_type="scalar")
    algorithm = dict(class_name="PPO", num_learning_epochs=epochs, num_mini_batches=4)
    algorithm |= dict(learning_rate=1e-4, schedule="fixed", gamma=0.99, lam=0.95, entropy_coef=0.01)
    algorithm |= dict(rnd_cfg=None, symmetry_cfg=None)
    config = dict(num_steps_per_env=steps, save_interval=10**6, algorithm=algorithm, multi_gpu=None)
    config["obs_groups"] = {"actor": ["policy"], "critic": ["critic"]}
    config |= dict(actor=network | {"distribution_cfg": noise}, critic=network)
    return OnPolicyRunner(Idle(), config, log_dir=None, device="cpu")


def update(threads, seconds):
    import torch

    torch.set_num_threads(threads)
    learner = runner(1024, 24, [512, 256, 128], 5, 48, 72, 12)
    taken, updates = [0.0, 0.0], [0]

    def timed(name):
        whole = getattr(learner.alg, name)

        def call(*args):
            begin = [now() for now in CLOCKS]
            result = whole(*args)
            for i, now in enumerate(CLOCKS):
                taken[i] += now() - begin[i]
            updates[0] += name == "update"
            return result

        setattr(learner.alg, name, call)

    learner.learn(1)  # Warm-up.
    for name in ("compute_returns", "update"):
        timed(name)
    while taken[0] < seconds:
        learner.learn(1)
    print("measured", updates[0] * 1024 * 24, *taken)


def env(program, threads, seconds):
    import numpy as np

    n = 256 if program == "envpool" else 64
    if program == "envpool":
        import envpool

        envs = envpool.make_gymnasium("HalfCheetah-v4", num_envs=n, num_threads=threads)
    else:
        import gymnasium as gym

        envs = gym.vector.SyncVectorEnv([lambda: gym.make("HalfCheetah-v5")] * n)
    draws = np.random.default_rng(0).uniform(-1, 1, (32, n, 6))
    envs.reset()
    done, begin = 0, None
    while begin is None or time.perf_counter() - begin[0] < seconds:
        for k in range(50):
            envs.step(draws[k % 32])
        begin, done = (begin, done + 50 * n) if begin else ([now() for now in CLOCKS], 0)
    report(done, begin)


def start(program):
    import torch

    torch.set_num_threads(1)
    if program == "rsl_rl":
        runner(64, 32, [64, 64], 4, 4, 4, 1).learn(1)
        return
    from stable_baselines3 import PPO

    PPO("MlpPolicy", "InvertedPendulum-v5", n_steps=2048, batch_size=512, n_epochs=4, device="cpu").learn(2048)


if __name__ == "__main__":
    kind, *args = sys.argv[1:]
    if kind == "update":
        update(int(args[0]), float(args[1]))
    elif kind == "env":
        env(args[0], int(args[1]), float(args[2]))
    else:
        start(args[0])
