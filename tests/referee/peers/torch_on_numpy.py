"""PyTorch's names over NumPy, as far as the peers' reward and observation functions use them: for
machines without PyTorch. With PyTorch the same tests run on it (`install` does nothing then).

A tensor is a NumPy array of single precision, as PyTorch's default; names that are not here can be
imported and mean nothing (absent.py): whatever is computed with them fails.
"""

import importlib.util
import sys
import types

import numpy as np


class Tensor(np.ndarray):
    """An array with the methods that PyTorch's tensors have."""

    def _like(self, array):
        return np.asarray(array).view(Tensor)

    def float(self):
        return self.astype(np.float32)

    def long(self):
        return self.astype(np.int64)

    def bool(self):
        return self.astype(np.bool_)

    def clone(self):
        return self.copy()

    def detach(self):
        return self

    def cpu(self):
        return self

    def to(self, *_, **__):
        return self

    def numpy(self):
        return self.view(np.ndarray)

    def numel(self):
        return int(np.prod(self.shape))

    def dim(self):
        return self.ndim

    def view(self, *shape):
        if len(shape) == 1 and isinstance(shape[0], type):
            return super().view(*shape)
        return self.reshape(*shape)

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def unsqueeze(self, dim):
        return np.expand_dims(self, dim)

    def squeeze(self, dim=None):
        if dim is not None and self.shape[dim] != 1:
            return self
        return np.squeeze(np.asarray(self), axis=dim).view(Tensor)

    def repeat(self, *times):
        return np.tile(np.asarray(self), times).view(Tensor)

    def expand(self, *shape):
        shape = shape[0] if len(shape) == 1 else shape
        shape = [self.shape[i - len(shape)] if n == -1 else n for i, n in enumerate(shape)]
        return np.broadcast_to(self, shape).view(Tensor)

    def expand_as(self, other):
        return np.broadcast_to(self, other.shape).view(Tensor)

    def flatten(self, start_dim=0):
        return self.reshape(*self.shape[:start_dim], -1)

    def clip(self, min=None, max=None):
        return np.clip(np.asarray(self), min, max).view(Tensor)

    clamp = clip

    def clamp_min(self, least):
        return self.clip(min=least)

    def pow(self, exponent):
        return self**exponent

    def argmax(self, dim=None, keepdim=False, axis=None, **_):
        return _reduce(np.argmax, self, dim if axis is None else axis, keepdim)

    def abs(self):
        return np.abs(self)

    def norm(self, dim=None, keepdim=False, p=2):
        return norm(self, dim=dim, keepdim=keepdim, p=p)

    def sum(self, dim=None, keepdim=False, axis=None, **_):
        return _reduce(np.sum, self, dim if axis is None else axis, keepdim)

    def mean(self, dim=None, keepdim=False, axis=None, **_):
        return _reduce(np.mean, self, dim if axis is None else axis, keepdim)

    def any(self, dim=None, keepdim=False, axis=None, **_):
        return _reduce(np.any, self, dim if axis is None else axis, keepdim)

    def all(self, dim=None, keepdim=False, axis=None, **_):
        return _reduce(np.all, self, dim if axis is None else axis, keepdim)

    def cross(self, other, dim=-1):
        return cross(self, other, dim)

    def square(self):
        return np.square(self)

    def zero_(self):
        self[...] = 0
        return self

    def fill_(self, value):
        self[...] = value
        return self


def _reduce(how, x, dim, keepdim):
    return np.asarray(how(np.asarray(x), axis=dim, keepdims=keepdim)).view(Tensor)


def _single(array):
    """Numbers with a point are single precision."""
    array = np.asarray(array)
    return (array.astype(np.float32) if array.dtype == np.float64 else array).view(Tensor)


def tensor(data, dtype=None, device=None, **_):
    return np.array(data, dtype=dtype).view(Tensor) if dtype else _single(np.array(data))


def norm(x, p=2, dim=None, keepdim=False):
    assert p == 2
    return np.sqrt(_reduce(np.sum, np.square(x), dim, keepdim)).view(Tensor)


def where(condition, a, b):
    return _single(np.where(condition, a, b))


def cat(tensors, dim=0):
    return np.concatenate([np.asarray(x) for x in tensors], axis=dim).view(Tensor)


def stack(tensors, dim=0):
    return np.stack([np.asarray(x) for x in tensors], axis=dim).view(Tensor)


def unbind(x, dim=0):
    return tuple(np.moveaxis(np.asarray(x), dim, 0).view(Tensor))


def cross(a, b, dim=-1):
    return np.cross(np.asarray(a), np.asarray(b), axis=dim).view(Tensor)


def clamp(x, min=None, max=None):
    return x.clip(min, max)


def zeros(*shape, dtype=np.float32, device=None, **_):
    shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return np.zeros(tuple(shape), dtype).view(Tensor)


def ones(*shape, dtype=np.float32, device=None, **_):
    return zeros(*shape, dtype=dtype) + np.ones((), dtype)


def empty(*shape, dtype=np.float32, device=None, **_):
    return zeros(*shape, dtype=dtype)


def arange(*ends, dtype=None, device=None, **_):
    return np.arange(*ends, dtype=dtype).view(Tensor)


def meshgrid(*axes, indexing="ij"):
    return tuple(axis.view(Tensor) for axis in np.meshgrid(*axes, indexing=indexing))


def gather(x, dim, index):
    return np.take_along_axis(np.asarray(x), np.asarray(index), axis=dim).view(Tensor)


def einsum(text, *tensors):
    return np.einsum(text, *tensors).view(Tensor)


def install():
    """Puts it in PyTorch's place, where that is missing; after absent.py knows its roots."""
    if importlib.util.find_spec("torch") is not None:
        return
    import absent

    absent.stand_in("torch")
    import torch

    same = "abs acos asin atan2 cos exp log log1p maximum minimum sign sin sqrt square tanh zeros_like full_like".split()
    for name in same:
        of_numpy = {"acos": "arccos", "asin": "arcsin", "atan2": "arctan2"}.get(name, name)
        setattr(torch, name, getattr(np, of_numpy))
    for name in ("sum", "mean", "any", "all"):
        method = getattr(Tensor, name)
        setattr(torch, name, lambda x, dim=None, keepdim=False, method=method, **_: method(x, dim, keepdim))
    own = (tensor, norm, where, cat, stack, unbind, cross, clamp, zeros, ones, empty, arange, meshgrid, gather, einsum)
    for function in own:
        setattr(torch, function.__name__, function)
    torch.Tensor, torch.pi = Tensor, np.pi
    torch.linalg = types.SimpleNamespace(norm=lambda x, dim=None, keepdim=False: norm(x, 2, dim, keepdim))
    torch.concatenate = cat
    torch.from_numpy = lambda array: array.view(Tensor)
    torch.float = torch.float32 = np.float32
    torch.long = torch.int64 = np.int64
    torch.int = torch.int32 = np.int32
    torch.double = torch.float64 = np.float64
    torch.bool = np.bool_
    import torch.jit

    torch.jit.script = lambda function: function
    sys.modules["torch"] = torch
