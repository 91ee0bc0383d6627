"""What vector environments have in common: a batch of the extension, and arrays for it."""

import logging
import re
import time

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from ostler._ostler import Batch, DeviceBatch, messages
from ostler.device import DeviceArrays, HostArrays, torch_with_cuda
from ostler.files import find
from ostler.overrides import overrides

log = logging.getLogger("ostler")

#: Seeds are whole numbers below this.
MOST_SEED = 1 << 63

#: What an episode's end brings, and how steps are followed by resets.
METADATA = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}


def make_batch(name, num_envs, device, seed, profile, allow_native, options):
    """The environments of a configuration, with changes.

    Raises:
        ConfigError: a mistake in the configuration, with file and line.
        RobotError: the robot's file.
        DeviceError: the GPU cannot be used.
        MemoryError: there is no memory for so many environments.
    """
    number = _gpu(device)
    lines = [] if profile is None else [f"profile={profile}"]
    lines += overrides(options)
    if num_envs is not None:
        lines.append(f"env.num_envs={_whole('num_envs', num_envs)}")
    if seed is not None:
        lines.append(f"seed={checked_seed(seed)}")
    if number is None:
        return Batch(find(name), lines, bool(allow_native))
    # CUDA's compiler is looked for beside it.
    torch_with_cuda()
    return DeviceBatch(find(name), lines, bool(allow_native), number)


def _gpu(device):
    """The number of a GPU, none for the processor; `torch.device` does, too."""
    if str(device) == "cpu":
        return None
    named = re.fullmatch(r"cuda(?::(\d{1,4}))?", str(device))
    if named is None:
        raise ValueError(f'a device is "cpu", "cuda" or "cuda:N", not {device!r}')
    return int(named[1] or 0)


def _whole(what, value):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{what} is a whole number, not {value!r}")
    return int(value)


def checked_seed(seed):
    """A seed as a whole number in its range."""
    if isinstance(seed, (list, tuple)):
        raise TypeError("the batch has one seed, from which every environment draws its own")
    seed = _whole("seed", seed)
    if not 0 <= seed < MOST_SEED:
        raise ValueError(f"a seed is a whole number from 0 to 2**63 - 1, not {seed}")
    return seed


def box(bounds):
    """The space of numbers between `bounds`, pairs."""
    bounds = np.asarray(bounds, dtype=np.float32).reshape(-1, 2)
    return spaces.Box(bounds[:, 0].copy(), bounds[:, 1].copy(), dtype=np.float32)


def action_space(action, bounds):
    """The space of an agent's actions, `(kind, size)`, with these bounds of a row."""
    kind, size = action
    return spaces.Discrete(size) if kind == "discrete" else box(bounds[:size])


class Batched:
    """N environments of M agents: `R = N M` rows, those of an environment one after the other."""

    def _open(self, batch, observations, copy, episode_statistics, random_ages):
        if observations not in ("policy", "dict"):
            raise ValueError(f'observations is "policy" or "dict", not {observations!r}')
        self._batch = batch
        self.facts = facts = batch.facts()
        #: Where the environments and their arrays are.
        self.device = "cpu"
        self._arrays = HostArrays(batch, facts)
        if isinstance(batch, DeviceBatch):
            self._arrays = DeviceArrays(batch)
            self.device = self._arrays.device
        self.step_dt = facts["step_dt"]
        self.max_episode_steps = facts["max_episode_steps"]
        self._dict = observations == "dict"
        self._statistics = bool(episode_statistics)
        self._random_ages = bool(random_ages)
        self._rows, self._width = facts["rows"], facts["observations"]
        self._critic, self._groups = facts["rows_of_critics"], _groups(facts)
        self._sets = None if copy else [self._arrays.new() for _ in range(2)]
        self._turn = 0
        self._began = np.full(facts["num_envs"], time.perf_counter())
        self._ready = False
        self._tell()

    def _bounds(self, key, width):
        """Bounds of every row of an environment `[M][width][2]`."""
        return np.asarray(self.facts[key], np.float32).reshape(-1, width, 2)

    def _next(self):
        """Arrays for the results of a step."""
        if self._sets is None:
            return self._arrays.new()
        self._turn ^= 1
        return self._sets[self._turn]

    def _reset(self, seed, options):
        """Begins all episodes: arrays with the first observations."""
        if options:
            names = ", ".join(map(repr, options))
            raise ValueError(f"reset takes no options, these are {names}")
        arrays = self._next()
        self._arrays.reset(arrays, seed, self._random_ages)
        self._began[:] = time.perf_counter()
        self._ready = True
        self._tell()
        return arrays

    def _step(self, actions):
        """A step with the actions of every agent: arrays with the results, and those of the
        episodes that ended, if any did."""
        arrays = self._next()
        ended, news = self._arrays.step(actions, arrays)
        if news:
            self._tell()
        return arrays, self._arrays.ended(arrays) if ended else None

    def _seconds(self, done):
        """How long the episodes took that ended in these environments (s)."""
        now = time.perf_counter()
        seconds = np.where(done, np.round(now - self._began, 6), 0.0)
        self._began[done] = now
        return seconds

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


def _groups(facts):
    """Columns of the critics' rows of every group but the policy's."""
    groups = {}
    if facts["critic"] is not None:
        groups["critic"] = slice(0, facts["critic"])
    for name, first, width in facts["groups"]:
        groups[name] = slice(first, first + width)
    return groups
