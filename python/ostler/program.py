"""The program `ostler`, where the package has it: `ostler train cartpole`."""

import importlib.util
import os
import sys
from pathlib import Path

from ostler.files import VARIABLE, folder

PROGRAM = Path(__file__).parent / "bin" / "ostler"
#: The version of libtorch that the program was built with.
TORCH = "2.11.0"


def main():
    """Becomes the program."""
    missing = trouble()
    if missing:
        sys.exit(f"error: {missing}")
    os.environ.setdefault(VARIABLE, str(folder()))
    os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])


def trouble():
    """Why the program cannot run here; nothing if it can."""
    remedy = 'pip install "ostler[train]"'
    if not PROGRAM.is_file():
        return (
            f"{PROGRAM} is missing: this package has the environments alone; "
            "build the program from its sources, or install a released wheel"
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
