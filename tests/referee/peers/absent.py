"""Modules that the peers import and this machine lacks (Warp, simulators, viewers): names of
them can be imported, inherited from and called at import time, and mean nothing."""

import abc
import importlib.abc
import importlib.machinery
import sys
import types


class _Meta(abc.ABCMeta):
    """A class of nothing: any attribute is another, and what is done with it is ignored."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing(name)

    def __getitem__(cls, _):
        return cls

    def __or__(cls, _):
        return cls

    __ror__ = __or__


def _nothing(name):
    def call(cls, *args, **_):
        # As a decorator it changes nothing.
        if len(args) == 1 and callable(args[0]):
            return args[0]
        return object.__new__(cls)

    def attribute(_, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing(name)

    def called(self, *args, **_):
        return args[0] if len(args) == 1 and callable(args[0]) else self

    return _Meta(name, (), {"__new__": call, "__call__": called, "__getattr__": attribute})


class _Module(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = _nothing(name)
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """What lies below these roots."""

    def __init__(self, roots):
        self.roots = roots

    def find_spec(self, name, path=None, target=None):
        if any(f"{name}.".startswith(f"{root}.") for root in self.roots):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


def stand_in(*roots):
    """Packages that no other finder knows; of one that is there, these parts (`package.part`)."""
    parts = {root for root in roots if "." in root}
    sys.meta_path.insert(0, _Finder(parts))
    sys.meta_path.append(_Finder(set(roots) - parts))


def bare(name, path):
    """A package whose own `__init__` starts what this machine lacks: its modules alone."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module
