"""Writes the numbers of 300 steps: `bits.py NAME ENVS FILE`."""

import sys

import numpy as np

import ostler

name, envs, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
make = ostler.make_vec if len(sys.argv) < 5 else ostler.make_marl
# Made with another seed, and stepped before: a reset with a seed forgets both.
env = make(
    name,
    envs,
    seed=3,
    sim={"specialize": "off", "threads": 2},
    env={"episode_length_s": 1},
)
agents = getattr(env, "agents", [None])
spaces = getattr(env, "action_spaces", {None: getattr(env, "single_action_space", None)})
width = spaces[agents[0]].shape[0]


def given(step):
    """Actions, exact in single precision."""
    numbers = (step * 31 + np.arange(envs * len(agents) * width) * 17) % 64
    actions = (numbers / 32.0 - 1.0).astype(np.float32).reshape(envs, len(agents), width)
    by = {name: actions[:, m] for m, name in enumerate(agents)}
    return by if len(agents) > 1 else actions[:, 0]


def rows(told):
    """Rows of the environments' agents, in order."""
    told = np.stack([told[name] for name in agents], axis=1) if len(agents) > 1 else told
    return told.astype(np.float32).tobytes()


env.reset()
for _ in range(3):
    env.step(given(0))
obs, _ = env.reset(seed=7)
with open(file, "wb") as out:
    out.write(rows(obs))
    for step in range(300):
        obs, reward, terminated, truncated, info = env.step(given(step))
        first = info[agents[0]] if len(agents) > 1 else info
        assert "broken" not in first
        for x in (obs, reward, terminated, truncated):
            out.write(rows(x))
