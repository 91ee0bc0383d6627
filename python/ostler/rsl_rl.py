"""Ostler's environments for rsl_rl (3.0 or newer).

    from rsl_rl.runners import OnPolicyRunner
    from ostler.rsl_rl import make_vec

    runner = OnPolicyRunner(make_vec("quadruped", num_envs=4096), config)
"""

import torch
from rsl_rl.env import VecEnv as BaseVecEnv
from tensordict import TensorDict

import ostler
from ostler.tensors import given, tensor


def make_vec(name, num_envs=None, device="cpu", *, learner_device=None, **options):
    """`ostler.make_vec` as an rsl_rl `VecEnv`, with tensors on `learner_device`, which is the
    environments' if it is not given."""
    options["observations"] = "dict"
    return VecEnv(ostler.make_vec(name, num_envs, device, **options), learner_device)


class VecEnv(BaseVecEnv):
    """An `ostler.VectorEnv` (with `observations="dict"`) as rsl_rl has environments."""

    def __init__(self, env, device=None):
        self.env, self.device = env, torch.device(env.device if device is None else device)
        self.num_envs = env.num_envs
        self.num_actions = env.single_action_space.shape[0]
        self.max_episode_length = env.max_episode_steps
        self.cfg = {"file": env.facts["file"], "seed": env.facts["seed"]}
        self._lengths = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        obs, _ = env.reset()
        self._like, self._obs = obs["policy"], self._tensors(obs)

    @property
    def episode_length_buf(self):
        """Control steps of the present episodes."""
        return self._lengths

    @episode_length_buf.setter
    def episode_length_buf(self, lengths):
        # Ages are the environments' own: random ones are asked for when they are made
        # (`random_ages=True`).
        self._lengths = lengths.to(self.device).clone()

    def get_observations(self):
        """The present observations by group."""
        return self._obs

    def step(self, actions):
        """A control step: observations, rewards, ends and extras, all as tensors."""
        obs, reward, *ends, info = self.env.step(given(actions, self._like))
        terminated, truncated = (tensor(flags).to(self.device) for flags in ends)
        done = terminated | truncated
        self._lengths = torch.where(done, 0, self._lengths + 1)
        self._obs = self._tensors(obs)
        extras = {"time_outs": truncated, "log": {}}
        # A GPU would have to be waited for.
        if info and self.env.device == "cpu":
            statistics = self.env.statistics()
            for name, value in statistics["rewards"].items():
                extras["log"][f"Episode_Reward/{name}"] = value
        return self._obs, tensor(reward).to(self.device), done, extras

    def close(self):
        """Ends the environments."""
        self.env.close()

    def _tensors(self, obs):
        tensors = {name: tensor(rows).to(self.device) for name, rows in obs.items()}
        return TensorDict(tensors, batch_size=[self.num_envs], device=self.device)
