"""Arrays for the results of steps: NumPy's on the processor, a GPU's by DLPack."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np


class HostArrays:
    """NumPy's arrays `[R]...`."""

    def __init__(self, batch, facts):
        self._batch = batch
        self._rows, self._width = facts["rows"], facts["observations"]
        self._critic = facts["rows_of_critics"]

    def new(self):
        """Arrays for a step."""
        rows, critic = self._rows, self._critic
        return SimpleNamespace(
            obs=np.empty((rows, self._width), np.float32),
            critic=None if critic is None else np.empty((rows, critic), np.float32),
            reward=np.empty(rows, np.float32),
            terminated=np.empty(rows, np.bool_),
            truncated=np.empty(rows, np.bool_),
        )

    def reset(self, to, seed, spread):
        """Begins all episodes."""
        self._batch.reset(to.obs, to.critic, seed, spread)

    def step(self, actions, to):
        """A step: in how many rows an episode ended, and whether there are messages."""
        return self._batch.step(actions, to.obs, to.critic, to.reward, to.terminated, to.truncated)

    def ended(self, of):
        """Of the episodes that ended in the step of these arrays, zeros elsewhere."""
        rows, critic = self._rows, self._critic
        last = SimpleNamespace(
            obs=np.zeros((rows, self._width), np.float32),
            critic=None if critic is None else np.zeros((rows, critic), np.float32),
            returns=np.zeros(rows, np.float32),
            lengths=np.zeros(rows, np.int64),
            broken=np.zeros(rows, np.bool_),
            kept=of.terminated | of.truncated,
        )
        self._batch.ended(last.obs, last.critic, last.returns, last.lengths, last.broken)
        last.any_broken = bool(last.broken.any())
        return last

    def numbers(self, actions, discrete, name="actions"):
        """Actions as single precision, as the extension takes them."""
        actions = np.asarray(actions)
        if actions.dtype.kind not in ("iu" if discrete else "fiu"):
            wanted = "whole numbers" if discrete else "numbers"
            raise TypeError(f"{name} are {wanted}, these have the dtype {actions.dtype}")
        return actions.astype(np.float32, copy=False)

    def side_by_side(self, parts):
        """One array of the columns of all."""
        return np.concatenate(parts, axis=1)


class DeviceArrays:
    """A GPU's arrays `[R]...`: PyTorch's tensors where it is installed with CUDA, else objects
    with `__dlpack__` and `__cuda_array_interface__`."""

    def __init__(self, batch):
        self._batch = batch
        first = batch.array(batch.arrays(), "reward")
        #: As PyTorch names it.
        self.device = first.device
        self._torch = torch_with_cuda()

    def new(self):
        """Arrays for a step."""
        return _Arrays(self._batch, self._torch)

    def reset(self, to, seed, spread):
        """Begins all episodes."""
        self._batch.reset(to.set, seed, spread)

    def step(self, actions, to):
        """A step. The device has not taken it yet: nobody knows which episodes ended."""
        return True, self._batch.step(actions, to.set)

    def ended(self, of):
        """Last observations where a step has cut episodes off, and where environments broke."""
        return SimpleNamespace(
            obs=of.final_obs,
            critic=of.final_critic,
            broken=of.broken,
            kept=of.kept,
            any_broken=True,
        )

    def numbers(self, actions, discrete, name="actions"):
        """Actions as they are; a tensor without its history."""
        return actions.detach() if hasattr(actions, "detach") else actions

    def side_by_side(self, parts):
        """One tensor of the columns of all."""
        if self._torch is None:
            raise RuntimeError("a state of several agents on a GPU takes PyTorch with CUDA")
        return self._torch.cat(parts, dim=1)


class _Arrays:
    """Arrays of a set, each made when it is asked for."""

    def __init__(self, batch, torch):
        self._batch, self._torch = batch, torch
        self.set = batch.arrays()

    def __getattr__(self, name):
        array = self._batch.array(self.set, name)
        if array is not None and self._torch is not None:
            array = self._torch.from_dlpack(array)
        setattr(self, name, array)
        return array


def torch_with_cuda():
    """PyTorch, if it is there and has CUDA."""
    if "torch" not in sys.modules and find_spec("torch") is None:
        return None
    import torch

    return torch if torch.version.cuda is not None else None
