"""Batched robot environments of Ostler.

    import ostler

    env = ostler.make_vec("half_cheetah", num_envs=1024)
    obs, info = env.reset(seed=1)
    obs, reward, terminated, truncated, info = env.step(env.action_space.sample())

`make_vec` gives a `gymnasium.vector.VectorEnv`. `ostler.sb3`, `ostler.rsl_rl` and `ostler.torchrl`
give the same environments to these libraries. Nothing here loads libtorch.
"""

from ostler._ostler import ConfigError, RobotError, StateError, __version__

__all__ = [
    "ConfigError",
    "RobotError",
    "StateError",
    "VectorEnv",
    "__version__",
    "configurations",
    "find",
    "make_vec",
]


def make_vec(name, num_envs=None, device="cpu", **options):
    """N environments of a task, as a `gymnasium.vector.VectorEnv`.

    See `ostler.vector.make_vec` for the arguments.
    """
    from ostler.vector import make_vec

    return make_vec(name, num_envs, device, **options)


def configurations():
    """The configurations that come with the package: name to path."""
    from ostler.files import configurations

    return configurations()


def find(name):
    """The path of a configuration: of a file, or of one that comes with the package by its name."""
    from ostler.files import find

    return find(name)


def __getattr__(name):
    # Gymnasium takes longer to load than all else together.
    if name == "VectorEnv":
        from ostler.vector import VectorEnv

        return VectorEnv
    raise AttributeError(f"module 'ostler' has no attribute {name!r}")
