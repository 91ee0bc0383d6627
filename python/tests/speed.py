"""Environment steps per second of processor time: `speed.py NAME ENVS SECONDS`, on one thread."""

import sys
import time

import numpy as np

import ostler

name, envs, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
env = ostler.make_vec(name, envs, sim={"specialize": "wait", "threads": 1})
env.reset(seed=1)
count = int(np.prod(env.action_space.shape))


def numbers(step):
    """Those of the same measurement in Rust."""
    actions = ((step * 31 + np.arange(count) * 17) % 64) / 32.0 - 1.0
    return actions.astype(np.float32).reshape(env.action_space.shape)


actions = [numbers(step) for step in range(16)]
for i in range(20):
    env.step(actions[i % 16])
steps, begin = 0, time.thread_time()
while time.thread_time() - begin < seconds:
    for i in range(16):
        env.step(actions[i])
    steps += 16
print(steps * envs / (time.thread_time() - begin))
