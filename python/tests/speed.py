"""Environment steps per second: `speed.py NAME ENVS SECONDS`, on one thread."""

import sys
import time

import numpy as np

import ostler

name, envs, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
env = ostler.make_vec(name, envs, sim={"specialize": "wait", "threads": 1})
env.reset(seed=1)
env.action_space.seed(1)
actions = [env.action_space.sample() for _ in range(16)]
for i in range(20):
    env.step(actions[i % 16])
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < seconds:
    for i in range(16):
        env.step(actions[i])
    steps += 16
print(steps * envs / (time.perf_counter() - begin))
