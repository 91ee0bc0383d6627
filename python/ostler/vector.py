"""A `gymnasium.vector.VectorEnv` over Ostler's batch."""

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from ostler.batch import METADATA, Batched, action_space, box, checked_seed, make_batch


def make_vec(
    name,
    num_envs=None,
    device="cpu",
    *,
    seed=None,
    observations="policy",
    agents=None,
    copy=True,
    episode_statistics=True,
    random_ages=False,
    allow_native=False,
    profile=None,
    **options,
):
    """N environments of a task.

    Args:
        name: a configuration that comes with the package (`ostler.configurations()`), or the path
            of a TOML file; its tables about learning are left aside.
        num_envs: environments; the file's number if not given.
        device: `"cpu"`, or `"cuda:N"`: results are PyTorch's tensors there, where it is installed
            with CUDA, else objects with `__dlpack__`; so are actions.
        seed: keys every draw; the file's if not given. `reset(seed=...)` gives another one.
        observations: `"policy"` for arrays `(N, O)`; `"dict"` for a dictionary of all groups,
            `policy`, `critic` and the task's own.
        agents: a task of M agents is refused, but for `"rows"`: each is an environment of its own,
            row `e * M + m` of `N * M`, for one policy that acts for all.
        copy: new arrays in every step, which the caller may keep. With `False` two sets of arrays
            take turns: an array holds until the second step after it.
        episode_statistics: `info["episode"]`, as `gymnasium.wrappers.vector.RecordEpisodeStatistics`
            has it; switch it off under that wrapper. On a GPU there are none.
        random_ages: first episodes begin at random ages, so that resets spread out in time.
        allow_native: native functions (C++ headers) of the task may be compiled and run.
        profile: a `[profile.NAME]` of the file.
        options: keys of the file, as dictionaries or with dots: `env={"decimation": 2}`,
            `**{"sim.threads": 1}`.

    Raises:
        ConfigError: a mistake in the configuration, with file and line.
        RobotError: the robot's file.
        DeviceError: the GPU cannot be used, with the remedy.
        MemoryError: there is no memory for so many environments.
    """
    batch = make_batch(name, num_envs, device, seed, profile, allow_native, options)
    return VectorEnv(batch, observations, copy, episode_statistics, random_ages, agents)


class VectorEnv(Batched, gymnasium.vector.VectorEnv):
    """N environments, stepped together.

    An episode that ends is followed by the next one in the same step (`AutoresetMode.SAME_STEP`);
    its last observation is in `info["final_obs"]`. An environment whose numbers broke (a NaN, a
    speed beyond `sim.max_speed`) begins anew, too: it counts as truncated, and
    `info["broken"]` says so.

    On a GPU a step is started, and nobody waits for it: `info` has `final_obs`, where
    `_final_obs` says that an episode was truncated, and `broken` in every step.
    """

    metadata = METADATA

    def __init__(self, batch, observations, copy, episode_statistics, random_ages, agents=None):
        self._open(batch, observations, copy, episode_statistics, random_ages)
        facts = self.facts
        self._agents = _agents_of(facts, agents)
        self.num_envs = self._rows
        kind, size = facts["action"]
        self._discrete = kind == "discrete"
        widest = lambda key, width: _widest(self._bounds(key, width))  # noqa: E731
        bounds = widest("action_bounds", 1 if self._discrete else size)
        self.single_action_space = action_space(facts["action"], bounds)
        policy = box(widest("observation_bounds", self._width))
        if self._dict:
            groups = {"policy": policy}
            if self._groups:
                critic = widest("critic_bounds", self._critic)
                groups.update((name, box(critic[c])) for name, c in self._groups.items())
            self.single_observation_space = spaces.Dict(groups)
        else:
            self.single_observation_space = policy
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def _seen(self, arrays):
        if not self._dict:
            return arrays.obs
        groups = {name: arrays.critic[:, c] for name, c in self._groups.items()}
        return {"policy": arrays.obs, **groups}

    def reset(self, *, seed=None, options=None):
        """Begins all episodes. With a seed as if the environments were just made with it."""
        if seed is not None:
            seed = checked_seed(seed)
            super().reset(seed=seed)
        return self._seen(self._reset(seed, options)), {}

    def step(self, actions):
        """A control step of all environments: `(obs, reward, terminated, truncated, info)`."""
        if not self._ready:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        actions = self._by_agent(self._arrays.numbers(actions, self._discrete))
        arrays, ended = self._step(actions)
        info = {} if ended is None else self._final(ended)
        return self._seen(arrays), arrays.reward, arrays.terminated, arrays.truncated, info

    def _by_agent(self, actions):
        """Actions of every agent."""
        count = self._agents
        if count == 1:
            return [actions]
        given, wanted = tuple(np.shape(actions)), self.action_space.shape
        if given != wanted:
            raise ValueError(f"actions have the shape {wanted}, these have {given}")
        return [actions[agent::count] for agent in range(count)]

    def _final(self, ended):
        """What is said of the episodes that ended."""
        final, done = {}, ended.kept
        info = {"final_obs": self._seen(ended), "_final_obs": done}
        if ended.any_broken:
            info["broken"] = final["broken"] = ended.broken
            info["_broken"] = final["_broken"] = done if self.device == "cpu" else ended.broken
        if self._statistics and self.device == "cpu":
            seconds = self._seconds(done[:: self._agents])
            seconds = seconds if self._agents == 1 else np.repeat(seconds, self._agents)
            info["episode"] = {"r": ended.returns, "l": ended.lengths, "t": seconds}
            info["_episode"] = done
            final["episode"], final["_episode"] = info["episode"], done
        info["final_info"], info["_final_info"] = final, done
        return info

    def close_extras(self, **kwargs):
        """Ends the threads and frees the memory."""
        self._batch.close()

    def __repr__(self):
        return f"ostler.VectorEnv({self.facts['file']!r}, num_envs={self.num_envs})"


def _agents_of(facts, agents):
    """How many agents have rows of their own."""
    if agents not in (None, "rows"):
        raise ValueError(f'agents is None or "rows", not {agents!r}')
    team = facts["agents"]
    if not team:
        return 1
    names = ", ".join(agent["name"] for agent in team)
    if agents is None:
        raise ValueError(
            f"the task has the agents {names}: ostler.make_marl gives them as dictionaries; "
            'make_vec(..., agents="rows") takes each for an environment, for one policy'
        )
    for what in ("observations", "action"):
        found = {agent["name"]: agent[what] for agent in team}
        if len(set(found.values())) > 1:
            raise ValueError(
                f'agents="rows" wants agents that are alike, and {what} of {names} are '
                f"{', '.join(map(str, found.values()))}: ostler.make_marl"
            )
    return len(team)


def _widest(bounds):
    """Bounds that hold for every agent, from `[M][width][2]`."""
    return np.stack([bounds[..., 0].min(axis=0), bounds[..., 1].max(axis=0)], axis=-1)
