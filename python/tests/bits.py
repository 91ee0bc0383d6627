"""Writes the numbers of 300 steps: `bits.py NAME ENVS FILE`."""

import sys

import numpy as np

import ostler

name, envs, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
# Made with another seed, and stepped before: a reset with a seed forgets both.
env = ostler.make_vec(
    name,
    envs,
    seed=3,
    sim={"specialize": "off", "threads": 2},
    env={"episode_length_s": 1},
)
env.reset()
for _ in range(3):
    env.step(env.action_space.sample())
obs, _ = env.reset(seed=7)
width = env.single_action_space.shape[0]
with open(file, "wb") as out:
    out.write(obs.tobytes())
    for step in range(300):
        numbers = (step * 31 + np.arange(envs * width) * 17) % 64
        actions = (numbers / 32.0 - 1.0).astype(np.float32).reshape(envs, width)
        obs, reward, terminated, truncated, info = env.step(actions)
        assert not (info and info["final_info"].get("broken", np.False_).any())
        for x in (obs, reward, terminated, truncated):
            out.write(x.astype(np.float32).tobytes())
