"""Ostler's environments for Stable-Baselines3.

    from stable_baselines3 import PPO
    from ostler.sb3 import make_vec

    PPO("MlpPolicy", make_vec("half_cheetah", num_envs=64)).learn(1_000_000)
"""

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv as BaseVecEnv

import ostler


def make_vec(name, num_envs=None, device="cpu", *, action_limit=1.0, **options):
    """`ostler.make_vec` as a Stable-Baselines3 `VecEnv`; `action_limit` as in `VecEnv`."""
    if str(device) != "cpu":
        raise ValueError("Stable-Baselines3 steps environments with NumPy: device=\"cpu\"")
    return VecEnv(ostler.make_vec(name, num_envs, device, **options), action_limit)


class VecEnv(BaseVecEnv):
    """An `ostler.VectorEnv` as Stable-Baselines3 has environments.

    Its algorithms want finite bounds of actions: where the task has none, `action_limit` is
    theirs.
    """

    def __init__(self, env, action_limit=1.0):
        self.env = env
        self.render_mode = None
        action = env.single_action_space
        if isinstance(action, spaces.Box):
            low = np.where(np.isfinite(action.low), action.low, -action_limit)
            high = np.where(np.isfinite(action.high), action.high, action_limit)
            action = spaces.Box(low.astype(np.float32), high.astype(np.float32))
        self._actions = None
        super().__init__(env.num_envs, env.single_observation_space, action)

    def reset(self):
        seeds = [seed for seed in self._seeds if seed is not None]
        obs, _ = self.env.reset(seed=seeds[0] if seeds else None)
        self._reset_seeds()
        self._reset_options()
        return obs

    def step_async(self, actions):
        self._actions = actions

    def step_wait(self):
        obs, reward, terminated, truncated, info = self.env.step(self._actions)
        done = terminated | truncated
        infos = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(done):
            infos[i]["terminal_observation"] = _row(info["final_obs"], i)
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
            if "episode" in info:
                infos[i]["episode"] = {key: x[i].item() for key, x in info["episode"].items()}
        return obs, reward, done, infos

    def close(self):
        self.env.close()

    def get_attr(self, attr_name, indices=None):
        return [getattr(self.env, attr_name)] * len(self._indices(indices))

    def set_attr(self, attr_name, value, indices=None):
        raise NotImplementedError("environments of a batch have no attributes of their own")

    def env_method(self, method_name, *args, indices=None, **kwargs):
        raise NotImplementedError("environments of a batch have no methods of their own")

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * len(self._indices(indices))

    def get_images(self):
        return [None] * self.num_envs

    def _indices(self, indices):
        return list(self._get_indices(indices))


def _row(obs, i):
    if isinstance(obs, dict):
        return {key: rows[i] for key, rows in obs.items()}
    return obs[i]
