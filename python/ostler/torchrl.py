"""Ostler's environments for TorchRL.

    from torchrl.collectors import SyncDataCollector
    from ostler.torchrl import make_vec

    collector = SyncDataCollector(make_vec("half_cheetah", num_envs=64), policy, ...)
"""

import numpy as np
import torch
from tensordict import TensorDict
from torchrl.data import Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

import ostler


def make_vec(name, num_envs=None, device="cpu", **options):
    """`ostler.make_vec` as a TorchRL environment with the batch size `[N]`."""
    _on_the_processor(device)
    return TorchRLEnv(ostler.make_vec(name, num_envs, device, **options))


def _on_the_processor(device):
    if str(device) != "cpu":
        raise ValueError('TorchRL steps environments of device="cpu" here')


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
        self.action_spec = _actions([env.single_action_space], n, True)
        self.reward_spec = Unbounded((n, 1))
        self.done_spec = _flags(n)

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


def _actions(spaces, n, squeeze=False):
    """The spec of the actions of agents that are alike `[n, agents, A]`, of one `[n, A]`."""
    shape = (n,) if squeeze else (n, len(spaces))
    if hasattr(spaces[0], "n"):
        return Categorical(spaces[0].n, shape=shape)
    bounds = ([getattr(space, key) for space in spaces] for key in ("low", "high"))
    low, high = (torch.from_numpy(np.stack(x)).expand(n, -1, -1) for x in bounds)
    low, high = (x.reshape(*shape, -1) for x in (low, high))
    bounded = bool(torch.isfinite(low).all() and torch.isfinite(high).all())
    return Bounded(low, high) if bounded else Unbounded(low.shape)


def _flags(n):
    """The spec of an environment's ends."""
    flag = lambda: Categorical(2, shape=(n, 1), dtype=torch.bool)  # noqa: E731
    return Composite(done=flag(), terminated=flag(), truncated=flag(), shape=(n,))


def make_marl(name, num_envs=None, device="cpu", **options):
    """`ostler.make_marl` as a TorchRL environment with the batch size `[N]`."""
    _on_the_processor(device)
    return TorchRLMultiAgentEnv(ostler.make_marl(name, num_envs, device, **options))


class TorchRLMultiAgentEnv(EnvBase):
    """An `ostler.MultiAgentVectorEnv` as TorchRL has environments of several agents.

    Agents stand in groups, those of one policy in one (`group_map`; agents that see or do things
    of different widths have groups of their own). A group's observations are `[N, agents, O]`;
    ends are those of the environments `[N, 1]`; `state` `[N, S]` is a global view.
    """

    def __init__(self, env):
        n = env.num_envs
        super().__init__(device=torch.device("cpu"), batch_size=[n])
        self._env, self._fresh, self._seen, self._wanted = env, None, None, None
        self.group_map = _groups(env)
        observation, action, reward = {}, {}, {}
        for group, names in self.group_map.items():
            shape = (n, len(names))
            width = env.observation_spaces[names[0]].shape[0]
            in_group = lambda key, spec: Composite({key: spec}, shape=shape)  # noqa: E731, B023
            observation[group] = in_group("observation", Unbounded((*shape, width)))
            spaces = [env.action_spaces[name] for name in names]
            action[group] = in_group("action", _actions(spaces, n))
            reward[group] = in_group("reward", Unbounded((*shape, 1)))
        observation["state"] = Unbounded((n, *env.state_space.shape))
        self.observation_spec = Composite(observation, shape=(n,))
        self.action_spec = Composite(action, shape=(n,))
        self.reward_spec = Composite(reward, shape=(n,))
        self.done_spec = _flags(n)

    def _observed(self, obs, state):
        """Observations by group, and the state."""
        groups = {
            group: self._group("observation", [obs[name] for name in names])
            for group, names in self.group_map.items()
        }
        state = torch.from_numpy(np.ascontiguousarray(state))
        return TensorDict({**groups, "state": state}, batch_size=self.batch_size)

    def _group(self, key, arrays):
        rows = torch.from_numpy(np.stack(arrays, axis=1))
        return TensorDict({key: rows}, batch_size=[*self.batch_size, len(arrays)])

    def _step(self, tensordict):
        actions = {}
        for group, names in self.group_map.items():
            rows = tensordict[group, "action"].detach().numpy()
            actions.update((name, rows[:, m]) for m, name in enumerate(names))
        obs, reward, terminated, truncated, infos = self._env.step(actions)
        first = self._env.possible_agents[0]
        terminated, truncated = (torch.from_numpy(x[first].copy()) for x in (terminated, truncated))
        done = terminated | truncated
        self._fresh = seen = self._observed(obs, self._env.state())
        if infos[first]:
            last = {name: info["final_obs"] for name, info in infos.items()}
            last = self._observed(last, infos[first]["final_state"])
            seen = last.where(done, self._fresh)
        self._seen = seen
        told = seen.clone(recurse=False)
        for group, names in self.group_map.items():
            rewards = self._group("reward", [reward[name][:, None] for name in names])
            told[group] = told[group].clone(recurse=False).update(rewards)
        ends = {"done": done, "terminated": terminated, "truncated": truncated}
        return told.update({key: flag[:, None] for key, flag in ends.items()})

    def _reset(self, tensordict=None, **kwargs):
        some = None if tensordict is None else tensordict.get("_reset", None)
        if some is None or self._fresh is None or bool(some.all()):
            obs, _ = self._env.reset(seed=self._wanted)
            self._wanted, self._fresh = None, self._observed(obs, self._env.state())
            seen = self._fresh
        else:
            seen = self._fresh.where(some.reshape(-1), self._seen)
        self._seen = seen
        flag = lambda: torch.zeros((*self.batch_size, 1), dtype=torch.bool)  # noqa: E731
        ends = {key: flag() for key in ("done", "terminated", "truncated")}
        return seen.clone(recurse=False).update(ends)

    def _set_seed(self, seed):
        self._wanted = seed

    def close(self, **kwargs):
        """Ends the environments."""
        if not self.is_closed:
            self._env.close()
        super().close(**kwargs)


def _groups(env):
    """Agents of every policy; each by itself where those of a policy differ."""
    groups = {}
    for name, policy in env.policies.items():
        groups.setdefault(policy, []).append(name)
    for names in groups.values():
        for spaces in (env.observation_spaces, env.action_spaces):
            if any(spaces[name].shape != spaces[names[0]].shape for name in names):
                return {name: [name] for name in env.possible_agents}
    return groups
