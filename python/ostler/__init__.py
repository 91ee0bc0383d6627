"""Batched robot environments of Ostler.

    import ostler

    env = ostler.make_vec("half_cheetah", num_envs=1024)
    obs, info = env.reset(seed=1)
    obs, reward, terminated, truncated, info = env.step(env.action_space.sample())

`make_vec` gives a `gymnasium.vector.VectorEnv`, `make_marl` environments of several agents.
`ostler.sb3`, `ostler.rsl_rl`, `ostler.torchrl` and `ostler.pettingzoo` give the same environments
to these libraries. `train` trains by the program, in a process of its own; `Policy` acts. Nothing
here loads libtorch.
"""

from ostler._ostler import ConfigError, DeviceError, RobotError, StateError, __version__

__all__ = [
    "ConfigError",
    "DeviceError",
    "MultiAgentVectorEnv",
    "Policy",
    "ProgramError",
    "RobotError",
    "Run",
    "StateError",
    "VectorEnv",
    "__version__",
    "configurations",
    "find",
    "make_marl",
    "make_vec",
    "train",
]

#: Loaded on first use: Gymnasium takes longer to load than all else together.
_LATER = {
    "MultiAgentVectorEnv": "ostler.marl",
    "Policy": "ostler.policy",
    "ProgramError": "ostler.program",
    "Run": "ostler.training",
    "VectorEnv": "ostler.vector",
    "train": "ostler.training",
}


def make_vec(name, num_envs=None, device="cpu", **options):
    """N environments of a task, as a `gymnasium.vector.VectorEnv`.

    See `ostler.vector.make_vec` for the arguments.
    """
    from ostler.vector import make_vec

    return make_vec(name, num_envs, device, **options)


def make_marl(name, num_envs=None, device="cpu", **options):
    """N environments of a task of several agents: dictionaries of arrays, by agent.

    See `ostler.marl.make_marl` for the arguments.
    """
    from ostler.marl import make_marl

    return make_marl(name, num_envs, device, **options)


def configurations():
    """The configurations that come with the package: name to path."""
    from ostler.files import configurations

    return configurations()


def find(name):
    """The path of a configuration: of a file, or of one that comes with the package by its name."""
    from ostler.files import find

    return find(name)


def __getattr__(name):
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'ostler' has no attribute {name!r}")
