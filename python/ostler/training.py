"""`ostler.train`: a training by the program, seen from Python."""

import itertools
import json
import logging
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

from ostler.files import find, regular
from ostler.overrides import overrides
from ostler.program import command, error

log = logging.getLogger("ostler")

#: Seconds between two looks for new iterations.
LOOK_S = 0.05
#: Exit code of a run that was asked to end: it has saved.
STOPPED = 130


class Run:
    """A run's folder and what it logged."""

    def __init__(self, folder):
        self.folder = Path(folder)
        if not (self.folder / "config.toml").is_file():
            latest = self.folder / "latest"
            if not (latest / "config.toml").is_file():
                raise FileNotFoundError(f"{self.folder} is not a run: it has no config.toml")
            self.folder = latest

    def __repr__(self):
        return f"ostler.Run({str(self.folder)!r})"

    @property
    def metrics(self):
        """One dictionary for every iteration, as docs/metrics.md has them."""
        return list(_Metrics(self.folder).new())

    @property
    def best(self):
        """The checkpoint of the best evaluation, else the newest; `None` before the first."""
        checkpoints = self.folder / "checkpoints"
        best = checkpoints / "best.safetensors"
        if best.is_file():
            return best
        return max(checkpoints.glob("iter_*.safetensors"), default=None)

    def policy(self, **options):
        """The newest policy: `ostler.Policy`."""
        from ostler.policy import Policy

        return Policy(self.folder, **options)


class _Metrics:
    """Lines of a run's metrics, as they come.

    A run that goes on from a checkpoint cuts what came after it off and writes it anew: such
    lines come again.
    """

    def __init__(self, folder):
        self.path = Path(folder) / "metrics.jsonl"
        #: End and checksum of every line so far.
        self.lines = []

    def new(self):
        """Whole lines since the last call."""
        try:
            with regular(self.path).open("rb") as file:
                if not self._goes_on(file):
                    self._find_change(file)
                file.seek(self.lines[-1][0] if self.lines else 0)
                data = file.read()
        except FileNotFoundError:
            return
        at = self.lines[-1][0] if self.lines else 0
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            at += len(line)
            self.lines.append((at, zlib.crc32(line)))
            try:
                yield json.loads(line)
            except ValueError:
                # Torn by a crash; the program goes on behind it.
                continue

    def _goes_on(self, file):
        """Whether the last line stands where it stood."""
        if not self.lines:
            return True
        end, sum = self.lines[-1]
        begin = self.lines[-2][0] if len(self.lines) > 1 else 0
        file.seek(begin)
        return zlib.crc32(file.read(end - begin)) == sum

    def _find_change(self, file):
        """Forgets lines from the first that is another one now."""
        file.seek(0)
        for i, ((end, sum), line) in enumerate(zip(list(self.lines), iter(file.readline, b""), strict=False)):
            if zlib.crc32(line) != sum or file.tell() > end:
                del self.lines[i:]
                return
        file.seek(0, 2)
        size = file.tell()
        while self.lines and self.lines[-1][0] > size:
            self.lines.pop()


def train(
    config=None,
    callback=None,
    *,
    out=None,
    resume=None,
    init_from=None,
    profile=None,
    seed=None,
    device=None,
    num_envs=None,
    max_time=None,
    allow_native=False,
    quiet=True,
    **options,
):
    """Trains a policy by the program, in a process of its own, and returns its `Run`.

    What keeps runs alive is the program's: broken numbers, full memory and a process that dies
    cost an iteration or nothing, and none of it reaches this process.

    Args:
        config: a configuration that comes with the package, or the path of a TOML file; may be
            left out with `resume`.
        callback: called with the metrics of every iteration, a dictionary; the run saves and
            ends where it returns `False`. An exception ends the run likewise, and is raised.
            Iterations that a run does again, after its process died, come again.
        out: the run's folder; below `runs/` if not given.
        resume: goes on with this run.
        init_from: begins with this run's weights.
        profile, seed, device, num_envs: those of the file if not given.
        max_time: ends after this time: seconds, or text such as "10m".
        allow_native: code that the configuration names may run (docs/security.md).
        quiet: no progress on standard error.
        options: keys of the file, as dictionaries or with dots:
            `ppo={"learning_rate": 1e-3}`, `**{"runner.max_iterations": 100}`.

    Raises:
        ConfigError: a mistake in the configuration or an argument, in the program's words.
        ProgramError: the run failed; its folder has a report.
        ImportError: the program is missing, or its libtorch.
        KeyboardInterrupt: after Ctrl-C, when the run has saved.
    """
    words = ["train"]
    if config is not None:
        words.append(find(config))
    elif resume is None:
        raise TypeError("train() needs a configuration, or resume=RUN")
    if resume is None and out is None:
        # Known before the program says it.
        out = Path("runs") / Path(find(config)).stem / time.strftime("%Y-%m-%d_%H-%M-%S")
        out = next(o for o in _names(out) if _made(o))
    folder = Path(resume if resume is not None else out)
    flags = {
        "--out": out if resume is None else None,
        "--resume": resume,
        "--init-from": init_from,
        "--profile": profile,
        "--seed": seed,
        "--device": device,
        "--num-envs": num_envs,
        "--max-time": f"{max_time}s" if isinstance(max_time, (int, float)) else max_time,
    }
    for flag, value in flags.items():
        if value is not None:
            words += [flag, value]
    for line in overrides(options):
        words += ["--set", line]
    words += ["--allow-native"] * bool(allow_native) + ["--quiet"] * bool(quiet)
    _Training(words, folder, callback, quiet).wait()
    return Run(folder)


def _made(folder):
    """Makes a folder; whether nobody else has."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def _names(folder):
    """The folder, then others beside it."""
    yield folder
    for n in itertools.count(2):
        yield folder.with_name(f"{folder.name}_{n}")


class _Training:
    """The program as it trains."""

    def __init__(self, words, folder, callback, quiet):
        line, environment = command(*words)
        self.callback, self.quiet = callback, quiet
        self.metrics = _Metrics(folder / "latest" if (folder / "latest").is_dir() else folder)
        # What a run that goes on logged before is not news.
        list(self.metrics.new())
        # In a group of its own: Ctrl-C is this process's, which passes it on once.
        self.process = subprocess.Popen(
            line,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.said = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            text = line.decode(errors="replace")
            self.said = [*self.said[-200:], text]
            if "WARN" in text or "warning" in text:
                log.warning(text.strip())
            if not self.quiet:
                sys.stderr.write(text)

    def wait(self):
        stopped = False
        try:
            while self.process.poll() is None:
                stopped |= self._tell() is False
                if stopped:
                    self._stop()
                    break
                time.sleep(LOOK_S)
            code = self.process.wait()
            if not stopped:
                self._tell()
        except BaseException:
            # Ctrl-C, or the callback: the run is not left behind.
            self._stop()
            raise
        self.reader.join(timeout=5)
        self.process.stderr.close()
        if code and not (stopped and code == STOPPED):
            raise error(self._last_words(), code)

    def _tell(self):
        """Calls back; `False` where it was told to stop."""
        for iteration in self.metrics.new():
            said = self.callback(iteration) if self.callback is not None else None
            # NumPy has one of its own.
            if type(said).__name__ in ("bool", "bool_") and not said:
                return False
        return None

    def _stop(self):
        """Asks the run to save and end, and waits until it has."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def _last_words(self):
        """From the program's error on."""
        starts = [i for i, line in enumerate(self.said) if line.startswith("error: ")]
        return "".join(self.said[starts[-1] :] if starts else self.said[-20:])
