"""The program `ostler`, where the package has it: `ostler train cartpole`."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from ostler._ostler import ConfigError
from ostler.files import VARIABLE, folder

PROGRAM = Path(__file__).parent / "bin" / "ostler"
#: The version of libtorch that the program was built with.
TORCH = "2.11.0"
#: Names another program, such as one that was built from the sources.
OTHER = "OSTLER_PROGRAM"
#: Its exit code for a mistake in what it was given.
USAGE = 2


class ProgramError(RuntimeError):
    """The program ended with an error: its words, and its exit code as `code`."""

    def __init__(self, words, code):
        super().__init__(words)
        self.code = code


def main():
    """Becomes the program."""
    try:
        path = program()
    except ImportError as e:
        sys.exit(f"error: {e}")
    os.environ.setdefault(VARIABLE, str(folder()))
    os.execv(path, [str(path), *sys.argv[1:]])


def program():
    """Its path.

    Raises `ImportError` where there is none that can run, with the remedy.
    """
    other = os.environ.get(OTHER)
    if other:
        if not os.access(other, os.X_OK):
            raise ImportError(f"{OTHER}={other} is no program")
        return Path(other)
    missing = trouble()
    if missing:
        raise ImportError(missing)
    return PROGRAM


def command(*words):
    """The program with arguments, and its environment."""
    environment = dict(os.environ)
    environment.setdefault(VARIABLE, str(folder()))
    return [str(program()), *map(str, words)], environment


def error(words, code):
    """The exception for the program's last words."""
    words = words.strip()
    for start in ("error: ", "ERROR "):
        words = words.removeprefix(start)
    words = words or f"the program ended with exit code {code}"
    return ConfigError(words) if code == USAGE else ProgramError(words, code)


def run(*words):
    """Runs the program to its end; its standard output.

    Raises `ConfigError` or `ProgramError` with its words.
    """
    line, environment = command(*words)
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise error(done.stderr, done.returncode)
    return done.stdout


def trouble():
    """Why the program cannot run here; nothing if it can."""
    remedy = 'pip install "ostler[train]"'
    if not PROGRAM.is_file():
        return (
            f"{PROGRAM} is missing: this package has the environments alone; build the program "
            f"from its sources and name it in {OTHER}, or install a released wheel"
        )
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return f"the program needs libtorch {TORCH}, and PyTorch is not installed: {remedy}"
    torch = Path(spec.origin).parent
    own = Path(__file__).parent.parent / "torch"
    if torch.resolve() != own.resolve():
        return (
            f"PyTorch is installed in {torch.parent}, and the program looks beside itself, "
            f"in {own.parent}: install both into one environment, {remedy}"
        )
    version = (torch / "version.py").read_text()
    if f"'{TORCH}" not in version and f'"{TORCH}' not in version:
        return f"the program needs PyTorch {TORCH}, and another version is installed: {remedy}"
    return None
