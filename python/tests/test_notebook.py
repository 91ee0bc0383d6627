"""The notebook `docs/first-hour.ipynb`: every cell runs, and its stored outputs are a run's.

Without Jupyter: a line `!COMMAND` goes to a shell, `%pip` is left out (the package under test is
there), the last expression of a cell is its value. A minute of training is 40 iterations here.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import ostler
import ostler.program

DOCS = Path(os.environ["OSTLER_DOCS"])
NOTEBOOK = DOCS / "first-hour.ipynb"
PIP = '%pip install --quiet "ostler[train] @ {wheel.as_uri()}" mujoco'
LARGEST = 200_000
MINUTE, SHORT = 'max_time=f"{seconds}s"', '**{"runner.max_iterations": 40}'


class Shown:
    """What a cell shows of a file."""

    def __init__(self, file, **size):
        self.file = Path(file)


def cells(kind):
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def shell(line):
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    print(done.stdout + done.stderr)
    assert done.returncode == 0, line


def run(text, names):
    """Its value."""
    lines = [f"_shell({line[1:]!r})" if line.startswith("!") else line for line in text.split("\n")]
    tree = ast.parse("\n".join(lines))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last:
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return None


def test_every_cell_runs():
    display = types.ModuleType("IPython.display")
    display.IFrame = display.Image = Shown
    sys.modules["IPython"] = types.ModuleType("IPython")
    sys.modules["IPython.display"] = display
    # Other tests run beside this one: two threads that wait for each other would be slow.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    (folder / "ostler-0-any.whl").touch()
    # The package's command, before all that stands in PATH.
    command, environment = ostler.program.command()
    os.environ.update(environment)
    (folder / "bin").mkdir()
    (folder / "bin/ostler").symlink_to(command[0])
    # MuJoCo is in this Python.
    os.environ["OSTLER_REFEREE_PYTHON"] = sys.executable
    names = {"_shell": shell}
    pips, minutes, shown = 0, 0, []
    for cell in cells("code"):
        text = source(cell)
        pips += text.count(PIP)
        text = text.replace(PIP, "")
        assert "%" not in re.sub(r'"[^"]*"|% 200', "", text), text
        minutes += text.count(MINUTE)
        text = text.replace(MINUTE, SHORT)
        value = run(text, names)
        # The notebook has put its own first: this one is the package's.
        os.environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        if isinstance(value, Shown):
            shown.append(value.file.name)
            assert value.file.stat().st_size > 1000, value.file
    assert (pips, minutes) == (1, 2)
    assert shown == ["curve.png", "watch.html"], shown
    assert "cartpole" in ostler.configurations()
    assert names["last"]["Eval/mean_reward"] == 1000.0
    assert len(names["cheetah"].metrics) == len(names["calm"].metrics) == 40
    assert 'weight = -0.1' in names["text"]
    assert "-2.0" in (names["calm"].folder / "config.toml").read_text()


def test_stored_outputs_are_of_one_run_and_of_no_machine():
    assert NOTEBOOK.stat().st_size < LARGEST
    numbers = [cell["execution_count"] for cell in cells("code")]
    # Either none has run, or all have in order.
    ran = numbers != [None] * len(numbers)
    assert not ran or numbers == list(range(1, len(numbers) + 1)), numbers
    for cell in cells("code"):
        assert ran or not cell["outputs"], source(cell)
        assert PIP not in source(cell) or not cell["outputs"], "pip's words differ"
        for output in cell["outputs"]:
            assert output["output_type"] != "error", source(cell)
            assert output.get("name") != "stderr", output
            text = json.dumps(output)
            assert not re.search(r"/(home|root|tmp|work|usr)/", text), text[:400]


def test_its_links_lead_to_pages():
    links = re.findall(r"\]\(([^)#]+)", "".join(map(source, cells("markdown"))))
    assert len(links) >= 8
    for link in links:
        assert (DOCS / link).is_file(), link
