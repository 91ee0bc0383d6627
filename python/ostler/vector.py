"""A `gymnasium.vector.VectorEnv` over Ostler's batch."""

import logging
import time

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ostler._ostler import Batch, messages
from ostler.files import find
from ostler.overrides import overrides

log = logging.getLogger("ostler")

#: Seeds are whole numbers below this.
MOST_SEED = 1 << 63


def make_vec(
    name,
    num_envs=None,
    device="cpu",
    *,
    seed=None,
    observations="policy",
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
        device: `"cpu"`; environments on a GPU are those of `ostler train`.
        seed: keys every draw; the file's if not given. `reset(seed=...)` gives another one.
        observations: `"policy"` for arrays `(N, O)`; `"dict"` for a dictionary of all groups,
            `policy`, `critic` and the task's own.
        copy: new arrays in every step, which the caller may keep. With `False` two sets of arrays
            take turns: an array holds until the second step after it.
        episode_statistics: `info["episode"]`, as `gymnasium.wrappers.vector.RecordEpisodeStatistics`
            has it; switch it off under that wrapper.
        random_ages: first episodes begin at random ages, so that resets spread out in time.
        allow_native: native functions (C++ headers) of the task may be compiled and run.
        profile: a `[profile.NAME]` of the file.
        options: keys of the file, as dictionaries or with dots: `env={"decimation": 2}`,
            `**{"sim.threads": 1}`.

    Raises:
        ConfigError: a mistake in the configuration, with file and line.
        RobotError: the robot's file.
        MemoryError: there is no memory for so many environments.
    """
    if device != "cpu":
        raise ValueError(
            f'device="{device}": environments of Python compute on the processor, device="cpu"; '
            "`ostler train` puts them on a GPU"
        )
    lines = [] if profile is None else [f"profile={profile}"]
    lines += overrides(options)
    if num_envs is not None:
        lines.append(f"env.num_envs={_whole('num_envs', num_envs)}")
    if seed is not None:
        lines.append(f"seed={_seed(seed)}")
    batch = Batch(find(name), lines, bool(allow_native))
    return VectorEnv(batch, observations, copy, episode_statistics, random_ages)


def _whole(what, value):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{what} is a whole number, not {value!r}")
    return int(value)


def _seed(seed):
    seed = _whole("seed", seed)
    if not 0 <= seed < MOST_SEED:
        raise ValueError(f"a seed is a whole number from 0 to 2**63 - 1, not {seed}")
    return seed


def _box(bounds):
    bounds = np.asarray(bounds, dtype=np.float32).reshape(-1, 2)
    return spaces.Box(bounds[:, 0].copy(), bounds[:, 1].copy(), dtype=np.float32)


class VectorEnv(gymnasium.vector.VectorEnv):
    """N environments, stepped together.

    An episode that ends is followed by the next one in the same step (`AutoresetMode.SAME_STEP`);
    its last observation is in `info["final_obs"]`. An environment whose numbers broke (a NaN, a
    speed beyond `sim.max_speed`) begins anew, too: it counts as truncated, and
    `info["broken"]` says so.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(self, batch, observations, copy, episode_statistics, random_ages):
        if observations not in ("policy", "dict"):
            raise ValueError(f'observations is "policy" or "dict", not {observations!r}')
        self._batch = batch
        self.facts = facts = batch.facts()
        self.num_envs = facts["num_envs"]
        self.step_dt = facts["step_dt"]
        self.max_episode_steps = facts["max_episode_steps"]
        self._dict = observations == "dict"
        self._statistics = bool(episode_statistics)
        self._random_ages = bool(random_ages)
        self._width, self._critic = facts["observations"], facts["rows_of_critics"]
        self._groups = _groups(facts)
        kind, size = facts["action"]
        self._discrete = kind == "discrete"
        if self._discrete:
            self.single_action_space = spaces.Discrete(size)
        else:
            self.single_action_space = _box(facts["action_bounds"])
        policy = _box(facts["observation_bounds"])
        if self._dict:
            critic = _box(facts["critic_bounds"])
            groups = {"policy": policy}
            for name, columns in self._groups.items():
                groups[name] = spaces.Box(critic.low[columns], critic.high[columns])
            self.single_observation_space = spaces.Dict(groups)
        else:
            self.single_observation_space = policy
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._sets = None if copy else [self._new_arrays() for _ in range(2)]
        self._turn = 0
        self._began = np.full(self.num_envs, time.perf_counter())
        self._ready = False
        self._tell()

    def _new_arrays(self):
        n, critic = self.num_envs, self._critic
        return (
            np.empty((n, self._width), np.float32),
            None if critic is None else np.empty((n, critic), np.float32),
            np.empty(n, np.float32),
            np.empty(n, np.bool_),
            np.empty(n, np.bool_),
        )

    def _arrays(self):
        if self._sets is None:
            return self._new_arrays()
        self._turn ^= 1
        return self._sets[self._turn]

    def _seen(self, policy, critic):
        if not self._dict:
            return policy
        return {"policy": policy, **{k: critic[:, c] for k, c in self._groups.items()}}

    def reset(self, *, seed=None, options=None):
        """Begins all episodes. With a seed as if the environments were just made with it."""
        if isinstance(seed, (list, tuple)):
            raise TypeError("the batch has one seed, from which every environment draws its own")
        if options:
            names = ", ".join(map(repr, options))
            raise ValueError(f"reset takes no options, these are {names}")
        if seed is not None:
            seed = _seed(seed)
            super().reset(seed=seed)
        obs, critic, *_ = self._arrays()
        self._batch.reset(obs, critic, seed, self._random_ages)
        self._began[:] = time.perf_counter()
        self._ready = True
        self._tell()
        return self._seen(obs, critic), {}

    def step(self, actions):
        """A control step of all environments: `(obs, reward, terminated, truncated, info)`."""
        if not self._ready:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        actions = self._checked(actions)
        obs, critic, reward, terminated, truncated = self._arrays()
        ended, news = self._batch.step(actions, obs, critic, reward, terminated, truncated)
        info = self._final(terminated | truncated) if ended else {}
        if news:
            self._tell()
        return self._seen(obs, critic), reward, terminated, truncated, info

    def _checked(self, actions):
        actions = np.asarray(actions)
        kinds = "iu" if self._discrete else "fiu"
        if actions.dtype.kind not in kinds:
            wanted = "whole numbers" if self._discrete else "numbers"
            raise TypeError(f"actions are {wanted}, these have the dtype {actions.dtype}")
        return actions.astype(np.float32, copy=False)

    def _final(self, done):
        """What is said of the episodes that ended."""
        n, critic = self.num_envs, self._critic
        obs = np.zeros((n, self._width), np.float32)
        rows = None if critic is None else np.zeros((n, critic), np.float32)
        returns, lengths = np.zeros(n, np.float32), np.zeros(n, np.int64)
        broken = np.zeros(n, np.bool_)
        self._batch.ended(obs, rows, returns, lengths, broken)
        final = {}
        info = {"final_obs": self._seen(obs, rows), "_final_obs": done}
        if broken.any():
            info["broken"] = final["broken"] = broken
            info["_broken"] = final["_broken"] = done
        if self._statistics:
            now = time.perf_counter()
            seconds = np.where(done, np.round(now - self._began, 6), 0.0)
            self._began[done] = now
            info["episode"] = {"r": returns, "l": lengths, "t": seconds}
            info["_episode"] = done
            final["episode"], final["_episode"] = info["episode"], done
        info["final_info"], info["_final_info"] = final, done
        return info

    def statistics(self):
        """Of the episodes that ended since the last call: means of returns, lengths, reward terms
        and metrics, how often each termination ended one, and what broke."""
        return self._batch.statistics()

    def set_noise(self, on):
        """Switches noise, bias and delay of observations off (to evaluate) or on."""
        self._batch.set_noise(bool(on))

    def capture(self):
        """All that is needed to go on with the same bits, as bytes."""
        return self._batch.capture()

    def restore(self, state):
        """Goes back to what `capture` gave; the next step goes on from there."""
        self._batch.restore(bytes(state))
        self._ready = True

    def _tell(self):
        for level, text in messages():
            log.log(level, text)

    def close_extras(self, **kwargs):
        """Ends the threads and frees the memory."""
        self._batch.close()

    def __repr__(self):
        return f"ostler.VectorEnv({self.facts['file']!r}, num_envs={self.num_envs})"


def _groups(facts):
    """Columns of the critics' rows of every group but the policy's."""
    groups = {}
    if facts["critic"] is not None:
        groups["critic"] = slice(0, facts["critic"])
    for name, first, width in facts["groups"]:
        groups[name] = slice(first, first + width)
    return groups
