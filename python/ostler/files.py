"""The configurations that come with the package."""

import difflib
import os
from pathlib import Path

from ostler._ostler import ConfigError

#: Names another folder of configurations.
VARIABLE = "OSTLER_CONFIGS"


def folder():
    """The folder of the configurations, with `robots` in it."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(__file__).parent / "configs"


def configurations():
    """Name to path of every configuration that comes with the package."""
    return {path.stem: path for path in sorted(folder().glob("*.toml"))}


def find(name):
    """The path of a configuration, given as a path or by its name.

    Raises `ConfigError` where there is none.
    """
    path = Path(name)
    if path.suffix == ".toml" or len(path.parts) > 1:
        # That it is not there is said as for every other file.
        return path
    known = configurations()
    if path.name in known:
        return known[path.name]
    near = difflib.get_close_matches(path.name, known, 1)
    guess = f'did you mean "{near[0]}"? ' if near else ""
    names = ", ".join(known) or f"none, in {folder()}"
    raise ConfigError(
        f'no configuration is called "{name}"\n  {guess}there are {names}; '
        "or the path of a file, which ends in .toml"
    )


def regular(path):
    """The path, unless it is that of a device, which has no end, or of a pipe, which waits."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no regular file")
    return path
