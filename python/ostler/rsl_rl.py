"""Ostler's environments for rsl_rl (3.0 or newer).

    from rsl_rl.runners import OnPolicyRunner
    from ostler.rsl_rl import make_vec

    runner = OnPolicyRunner(make_vec("quadruped", num_envs=4096), config)
"""

import torch
from rsl_rl.env import VecEnv as BaseVecEnv
from tensordict import TensorDict

import ostler


def make_vec(name, num_envs=None, device="cpu", *, learner_device="cpu", **options):
    """`ostler.make_vec` as an rsl_rl `VecEnv`, with tensors on `learner_device`."""
    options["observations"] = "dict"
    return VecEnv(ostler.make_vec(name, num_envs, device, **options), learner_device)


class VecEnv(BaseVecEnv):
    """An `ostler.VectorEnv` (with `observations="dict"`) as rsl_rl has environments."""

    def __init__(self, env, device="cpu"):
        self.env, self.device = env, torch.device(device)
        self.num_envs = env.num_envs
        self.num_actions = env.single_action_space.shape[0]
        self.max_episode_length = env.max_episode_steps
        self.cfg = {"file": env.facts["file"], "seed": env.facts["seed"]}
        self._lengths = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        self._obs = self._tensors(env.reset()[0])

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
        actions = actions.detach().to("cpu").numpy()
        obs, reward, terminated, truncated, info = self.env.step(actions)
        done = torch.from_numpy(terminated | truncated).to(self.device)
        self._lengths = torch.where(done, 0, self._lengths + 1)
        self._obs = self._tensors(obs)
        extras = {"time_outs": torch.from_numpy(truncated).to(self.device), "log": {}}
        if info:
            statistics = self.env.statistics()
            for name, value in statistics["rewards"].items():
                extras["log"][f"Episode_Reward/{name}"] = value
        return self._obs, torch.from_numpy(reward).to(self.device), done, extras

    def close(self):
        """Ends the environments."""
        self.env.close()

    def _tensors(self, obs):
        tensors = {name: torch.from_numpy(rows).to(self.device) for name, rows in obs.items()}
        return TensorDict(tensors, batch_size=[self.num_envs], device=self.device)
