"""Environments whose numbers can be recognised, and which fail on request."""

import os
import sys
import time

import gymnasium
import numpy as np


class World(gymnasium.Env):
    """The observation is [steps of the episode, last action, 1 for the second half].

    `fails`: what happens in step `at` of the `of`-th episode of every environment whose seed
    is even: "raise", "nan", "reward", "exit" or "hang"; "begin": `reset` raises.
    """

    observation_space = gymnasium.spaces.Dict(
        {
            "count": gymnasium.spaces.Box(-np.inf, np.inf, (2,)),
            "half": gymnasium.spaces.MultiBinary(1),
        }
    )

    def __init__(self, fails="", at=3, discrete=False, ends=0, once=None):
        self.fails, self.at, self.ends, self.once = fails, at, ends, once
        self.t, self.action, self.bad = 0, 0.0, False
        if discrete:
            self.action_space = gymnasium.spaces.Discrete(3, start=5)
        else:
            self.action_space = gymnasium.spaces.Box(np.array([0.0]), np.array([10.0]), dtype=np.float64)

    def see(self):
        count = np.array([self.t, self.action], np.float32)
        return {"count": count, "half": np.array([self.t >= 5], np.int8)}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if self.fails == "begin":
            raise LookupError("no starting position")
        sys.stdin.read()
        self.t, self.action, self.bad = 0, 0.0, seed % 2 == 0
        return self.see(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.t += 1
        self.action = float(np.asarray(action).reshape(-1)[0])
        seen, reward = self.see(), 1.0
        if self.bad and self.t == self.at and self.may_fail():
            if self.fails == "raise":
                raise ValueError("a joint came off")
            if self.fails == "nan":
                seen["count"][1] = np.nan
            if self.fails == "reward":
                reward = np.inf
            if self.fails == "leave":
                raise SystemExit(1)
            if self.fails == "exit":
                os._exit(3)
            if self.fails == "hang":
                time.sleep(1000)
        return seen, reward, self.t == self.ends, False, {}

    def may_fail(self):
        """Once, where a file says whether it has happened."""
        if self.once is None:
            return True
        try:
            os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


def make(**kwargs):
    print("a line that is no frame")
    return World(**kwargs)


def grid(**_):
    env = World()
    env.action_space = gymnasium.spaces.MultiDiscrete([2, 2])
    return env


def broken(**_):
    raise RuntimeError("no licence for this engine")
