"""Installs what `cargo xtask dist` has made, as a user would, and tries it.

    python3 xtask/src/dist/check.py target/dist/out

Needs Python 3.10 or newer with venv, and a network for pip; neither Rust nor a compiler, which
are kept from the programs. Fails where one does not work or takes too long.
"""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

#: Most seconds of `import ostler`, and from `pip install`, PyTorch being there, to a trained
#: cart-pole.
IMPORT_S, TRAINED_S = 0.2, 60.0
#: Most MB of the wheel and of the tarball. An index takes 100 MB unless asked for more.
LARGEST_MB = 40.0
#: The best possible return is 1,000.
SOLVED = 950.0


def run(*words, home, path, fails=False, **more):
    """Its output; the programs see this home and this path alone."""
    env = {"HOME": str(home), "PATH": str(path), "LANG": "C.UTF-8"}
    words = [str(w) for w in words]
    done = subprocess.run(words, env=env, capture_output=True, text=True, **more)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def install(place, what):
    """Into a virtual environment; the seconds that it took."""
    begin = time.perf_counter()
    pip = [place / "bin/pip", "install", "--quiet", "--disable-pip-version-check", what]
    subprocess.run(pip, check=True)
    return time.perf_counter() - begin


def environment(place):
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    return place


def trained(folder):
    """The last evaluation of a run."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    seen = [json.loads(line).get("Eval/mean_reward") for line in lines]
    last = [x for x in seen if x is not None][-1]
    assert last > SOLVED, f"{folder}: a return of {last}"
    return last


def timed(words, folder, **more):
    begin = time.perf_counter()
    run(*words, "train", "cartpole", "--out", folder, **more)
    took = time.perf_counter() - begin
    print(f"ostler train cartpole: {took:.1f} s, return {trained(folder):.0f}")
    return took


def packed(wheel, tarball):
    """Sizes, and what both files have."""
    for file in (wheel, tarball):
        size = file.stat().st_size / 1e6
        print(f"{file.name}: {size:.1f} MB")
        assert size < LARGEST_MB, f"{file.name}: {size:.1f} MB, {LARGEST_MB} are allowed"
    names = zipfile.ZipFile(wheel).namelist()
    for end in ("ostler/configs/cartpole.toml", "ostler/configs/robots/cartpole.xml",
                "ostler/bin/ostler", "ostler/THIRD-PARTY.txt", "ostler/py.typed",
                "licenses/LICENSE-MIT", "licenses/LICENSE-APACHE"):
        assert any(name.endswith(end) for name in names), f"{wheel.name} has no {end}"
    strange = [name for name in names if not name.startswith(("ostler/", "ostler-"))]
    assert not strange, strange


def left_by_uninstalling(place):
    """Files of the package that pip leaves."""
    pip = [place / "bin/pip", "uninstall", "--quiet", "--yes", "ostler"]
    subprocess.run(pip, check=True)
    return sorted(p for p in place.rglob("*ostler*"))


IMPORT = "import time; a = time.perf_counter(); import ostler; print(time.perf_counter() - a)"

STEPS = """
import numpy as np, ostler
env = ostler.make_vec("half_cheetah", 64)
env.reset(seed=1)
for _ in range(50): obs, *_ = env.step(env.action_space.sample())
assert np.isfinite(obs).all()
print(env.facts["kernel"])
"""

FROM_PYTHON = """
import numpy as np, ostler
seen = []
run = ostler.train("cartpole", seen.append, out="run", **{"runner.max_iterations": 5})
assert [line["iteration"] for line in seen] == [1, 2, 3, 4, 5]
actions = run.policy()(np.zeros((3, 4), np.float32))
assert actions.shape == (3, 1) and np.isfinite(actions).all()
"""


def main(out):
    (wheel,) = out.glob("ostler-*.whl")
    (tarball,) = out.glob("ostler-*.tar.gz")
    packed(wheel, tarball)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        home = place / "home"
        home.mkdir()
        # The environments alone.
        bare = environment(place / "bare")
        took = install(bare, f"ostler @ {wheel.as_uri()}")
        python, seen = bare / "bin/python", {"home": home, "path": bare / "bin", "cwd": home}
        print(f"pip install ostler: {took:.1f} s")
        loads = [float(run(python, "-c", IMPORT, **seen)) for _ in range(7)]
        print(f"import ostler: {statistics.median(loads):.4f} s")
        assert statistics.median(loads) < IMPORT_S
        print("steps, with the kernel", run(python, "-c", STEPS, **seen).strip())
        said = run(bare / "bin/ostler", "train", "cartpole", fails=True, **seen)
        assert 'pip install "ostler[train]"' in said, said
        # With PyTorch.
        whole = environment(place / "whole")
        extra = f"ostler[train] @ {wheel.as_uri()}"
        print(f"pip install {needs(bare)}: {install(whole, needs(bare)):.1f} s")
        took = install(whole, extra)
        seen = {"home": home, "path": whole / "bin", "cwd": home}
        assert not any(shutil.which(c, path=seen["path"]) for c in ("c++", "g++", "cc", "cargo"))
        print(f'then pip install "ostler[train]": {took:.1f} s')
        took += timed([whole / "bin/ostler"], home / "first", **seen)
        assert took < TRAINED_S, f"{took:.1f} s, {TRAINED_S} are allowed"
        run(whole / "bin/python", "-c", FROM_PYTHON, **seen)
        print("ostler.train and its policy from Python: good")
        # The tarball, with that libtorch.
        with tarfile.open(tarball) as archive:
            archive.extractall(place / "tar", **safe())
        (unpacked,) = (place / "tar").iterdir()
        assert "libtorch" in (unpacked / "INSTALL.txt").read_text()
        (own,) = (bare / "lib").glob("python*/site-packages/ostler/THIRD-PARTY.txt")
        for notices in (own, unpacked / "THIRD-PARTY.txt"):
            assert "plotters" in notices.read_text() and "uPlot" in notices.read_text()
        said = run(unpacked / "bin/ostler", "--version", fails=True, **seen)
        assert "libtorch_cpu.so" in said, said
        (torch,) = (whole / "lib").glob("python*/site-packages/torch")
        os.symlink(torch, unpacked / "libtorch")
        timed([unpacked / "bin/ostler"], home / "second", **{**seen, "path": unpacked / "bin"})
        left = left_by_uninstalling(whole)
        assert not left, f"pip uninstall leaves {left}"
        said = sorted(p.relative_to(home).as_posix() for p in home.rglob("*") if p.is_file())
        print("pip uninstall ostler: nothing of it is left in the environment")
        kept = [f for f in said if not f.startswith(("first/", "second/", "run/"))]
        print(f"kept at home, beside the runs: {kept or 'nothing'}")
        machine = f"{platform.platform()}, Python {platform.python_version()}"
        print(f"good: {wheel.name}, {tarball.name} on {machine}")


def needs(place):
    """What the extra `train` pins, as the installed package says it."""
    listed = "import importlib.metadata as m; print(*m.requires('ostler'), sep='\\n')"
    lines = subprocess.check_output([place / "bin/python", "-c", listed], text=True).splitlines()
    (line,) = [line for line in lines if "extra == 'train'" in line.replace('"', "'")]
    return line.split(";")[0].strip()


def safe():
    """Nothing is written outside of the folder, where this Python knows how to see to it."""
    return {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
