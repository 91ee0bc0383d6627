"""Ostler's environments for TorchRL.

    from torchrl.collectors import SyncDataCollector
    from ostler.torchrl import make_vec

    collector = SyncDataCollector(make_vec("half_cheetah", num_envs=64), policy, ...)
"""

import torch
from tensordict import TensorDict
from torchrl.data import Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

import ostler


def make_vec(name, num_envs=None, device="cpu", **options):
    """`ostler.make_vec` as a TorchRL environment with the batch size `[N]`."""
    return TorchRLEnv(ostler.make_vec(name, num_envs, device, **options))


class TorchRLEnv(EnvBase):
    """An `ostler.VectorEnv` as TorchRL has environments.

    TorchRL resets what has ended; here the next episodes have begun by then, and a reset of some
    environments gives their first observations.
    """

    def __init__(self, env):
        n = env.num_envs
        super().__init__(device=torch.device("cpu"), batch_size=[n])
        # First observations of what has begun anew, and what was seen last.
        self._env, self._fresh, self._seen, self._wanted = env, None, None, None
        width = env.single_observation_space.shape[0]
        self.observation_spec = Composite(observation=Unbounded((n, width)), shape=(n,))
        action = env.single_action_space
        if hasattr(action, "n"):
            self.action_spec = Categorical(action.n, shape=(n,))
        else:
            low, high = (torch.from_numpy(x).expand(n, -1) for x in (action.low, action.high))
            bounded = bool(torch.isfinite(low).all() and torch.isfinite(high).all())
            self.action_spec = Bounded(low, high) if bounded else Unbounded(low.shape)
        self.reward_spec = Unbounded((n, 1))
        flag = lambda: Categorical(2, shape=(n, 1), dtype=torch.bool)  # noqa: E731
        self.done_spec = Composite(
            done=flag(), terminated=flag(), truncated=flag(), shape=(n,)
        )

    def _step(self, tensordict):
        actions = tensordict["action"].detach().numpy()
        obs, reward, terminated, truncated, info = self._env.step(actions)
        done = terminated | truncated
        self._fresh = torch.from_numpy(obs)
        seen = self._fresh
        if info:
            last = torch.from_numpy(info["final_obs"])
            seen = torch.where(torch.from_numpy(done)[:, None], last, seen)
        self._seen = seen
        column = lambda x: torch.from_numpy(x)[:, None]  # noqa: E731
        return TensorDict(
            {
                "observation": seen,
                "reward": column(reward),
                "done": column(done),
                "terminated": column(terminated),
                "truncated": column(truncated),
            },
            batch_size=self.batch_size,
        )

    def _reset(self, tensordict=None, **kwargs):
        some = None if tensordict is None else tensordict.get("_reset", None)
        if some is None or self._fresh is None or bool(some.all()):
            obs, _ = self._env.reset(seed=self._wanted)
            self._wanted, self._fresh = None, torch.from_numpy(obs)
            seen = self._fresh
        else:
            some = some.reshape(-1, 1)
            seen = torch.where(some, self._fresh, self._seen)
        self._seen = seen
        flags = torch.zeros((*self.batch_size, 1), dtype=torch.bool)
        ends = {"done": flags, "terminated": flags.clone(), "truncated": flags.clone()}
        return TensorDict({"observation": seen, **ends}, batch_size=self.batch_size)

    def _set_seed(self, seed):
        self._wanted = seed

    def close(self, **kwargs):
        """Ends the environments."""
        if not self.is_closed:
            self._env.close()
        super().close(**kwargs)
