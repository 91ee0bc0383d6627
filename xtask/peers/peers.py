"""Measures other programs and Ostler in turn, and writes the tables of docs/benchmarks.md.

`cargo xtask peers` installs what this needs and starts it in the checkout's folder. Each
measurement is a process of its own, pinned to as many cores as it has threads.
"""

import argparse
import datetime
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE, PICTURE = ROOT / "docs/benchmarks.md", ROOT / "docs/images/peers.png"
SCRATCH = ROOT / "target/peers"
ROBOTS = {"Go1": "go1_flat", "G1": "g1_tracking"}
# What stands above each table, the unit of its numbers, and whether more is better.
PARTS = {
    "physics": ("control steps/s", True, """**Physics.** One MJCF file for all, made of mjlab 1.6.0's robot with the
options, contacts, actuators and action scales of `examples/go1_flat.toml` and `examples/g1_tracking.toml`
(no task of a walking G1 is shipped: physics alone): 5 ms, `implicitfast`, at most 10 solver iterations, 4
physics steps to a control step, targets of actions drawn evenly from -1 to 1, no resets, 100 control steps
before the clock starts. Ostler: 1,024 worlds in float32; the others: 128 in float64."""),
    "task": ("control steps/s", True, """**Whole task.** Go1: `examples/go1_flat.toml` with rewards, observations, noise,
randomisation and resets, 1,024 environments; beside it mjbatch-uni with the same robot, actions and
decimation, 128 worlds, robots put back when they lean by more than 70 degrees, and nothing else.
Half-cheetah: Gymnasium's task, random actions, 1,024 (Ostler), 256 (EnvPool) and 64 environments."""),
    "update": ("samples/s", True, """**Update.** PPO on the processor: 24,576 samples of mjlab's Go1 (48 and 72
observations, 12 actions), two networks of [512, 256, 128], 5 epochs of 4 minibatches, float32; returns
and advantages included."""),
    "return": ("s", False, """**Time to a return.** To the first evaluation (16 episodes or more, mean actions) whose mean return
reaches the threshold, another seed in each round. Stable-Baselines3 has rl-zoo's settings; its processor
time is without imports and evaluations, Ostler's is that of the whole command, its kernel in the cache."""),
    "start": ("s", False, """**Start.** From the command to the end of the first rollout of 2,048 steps and its update,
two networks of [64, 64]. Ostler: cart-pole, 64 environments, its kernel in the cache;
Stable-Baselines3: one InvertedPendulum-v5; rsl_rl: an environment that costs nothing."""),
}


class Refused(Exception):
    """What a program said in place of a measurement."""


def run(command, threads=1, over=lambda line: False):
    """Lines, seconds by the clock, seconds of processor time, and samples of both on the way;
    until the process ends, or prints a line that `over` takes."""
    cores = sorted(os.sched_getaffinity(0))[-threads:]
    with open(SCRATCH / "stderr", "w+") as words:
        begin = time.perf_counter()
        child = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=words, text=True,
            stdin=subprocess.DEVNULL, cwd=SCRATCH, preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        samples, ended = [], threading.Event()

        def sample():
            while not ended.wait(0.02):
                try:
                    fields = Path(f"/proc/{child.pid}/stat").read_text().rsplit(") ", 1)[1].split()
                except OSError:
                    return
                samples.append((time.perf_counter() - begin, (int(fields[11]) + int(fields[12])) / 100))

        sampler = threading.Thread(target=sample)
        sampler.start()
        lines, stopped = [], False
        for line in child.stdout:
            lines.append(line.rstrip())
            if not stopped and over(line):
                stopped = True
                child.send_signal(signal.SIGKILL)
        ended.set()
        sampler.join()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        clock = time.perf_counter() - begin
        words.seek(0)
        said = [line.strip() for line in words if line.strip()]
    if child.returncode and not stopped:
        raise Refused(said[-1] if said else f"exit code {child.returncode}")
    return lines, clock, used.ru_utime + used.ru_stime, samples


def busiest(samples, window, last):
    """The most processor time per second in any window of so many seconds; or in the last."""
    shares = []
    for at, cpu in samples[-1:] if last else samples:
        earlier = [(t, c) for t, c in samples if t <= at - window]
        if earlier:
            shares.append((cpu - earlier[-1][1]) / (at - earlier[-1][0]))
    if not shares or max(shares) <= 0:
        raise Refused("too short to see its processor time")
    return max(shares)


def value(lines, name):
    for line in lines:
        key, _, number = line.partition(" ")
        if key == name or key.endswith("." + name):
            return float(number)
    raise Refused(f"no {name}")


def measured(lines):
    """(work per second by the clock, of processor time), of what engines.py and learners.py print."""
    line = next((line for line in lines if line.startswith("measured ")), None)
    if line is None:
        raise Refused("it printed no measurement")
    work, clock, cpu = map(float, line.split()[1:])
    return work / clock, work / cpu


class Bench:
    def __init__(self, args):
        self.args, self.seconds = args, 1.0 if args.quick else 3.0
        self.warm = set()

    def python(self, which, script, *words):
        interpreter = getattr(self.args, which)
        if interpreter.startswith("error: "):
            raise Refused(interpreter)
        return [interpreter, ROOT / script, *words]

    def scene(self, robot):
        """The robot's MJCF file; and, beside it, its task."""
        out, name = SCRATCH / f"{robot}.xml", ROBOTS[robot] + ".toml"
        if not out.exists():
            if self.args.robots.startswith("error: "):
                raise Refused(self.args.robots)
            task = (ROOT / "examples" / name).read_text()
            (SCRATCH / name).write_text(task.replace('robot = "mjlab/', f'robot = "{self.args.robots}/mjlab/'))
            run(self.python("engines", "xtask/peers/engines.py", "scene", name, self.args.robots, out))
        return out

    def engine(self, engine, robot, t, *more):
        words = ("step", engine, self.scene(robot), t, self.seconds, *more)
        return measured(run(self.python("engines", "xtask/peers/engines.py", *words), t)[0])

    def learner(self, t, *words):
        return measured(run(self.python("learners", "xtask/peers/learners.py", *words), t)[0])

    def ostler(self, t, name, per, stage, last, words):
        """A speed that `ostler bench` prints, by the clock; by processor time with the share of
        the cores that the process had in a stage of so many seconds."""
        lines, *_, samples = run([self.args.program, "bench", *words], t)
        speed = value(lines, name) / per
        return speed, speed / busiest(samples, stage, last)

    def physics(self, robot, t):
        words = ("physics", self.scene(robot), "--num-envs", 1024, "--threads", t, "--substeps", 4)
        words += ("--seconds", self.seconds)
        return self.ostler(t, "physics_steps_per_s", 4, 0.9 * self.seconds, True, words)

    def config(self, config, t, name, seconds, stage, last, *more):
        file = ROOT / f"configs/{config}.toml"
        if config == "go1_flat":
            file = self.scene("Go1").with_name("go1_flat.toml")
        words = (file, "env.num_envs=1024", f"sim.threads={t}", f"learner.threads={t}")
        words += ("sim.specialize=wait", "--seconds", seconds, *more)
        return self.ostler(t, name, 1, stage, last, words)

    def train(self, config, *words):
        shutil.rmtree(SCRATCH / config, ignore_errors=True)
        file = ROOT / f"configs/{config}.toml"
        if config not in self.warm:  # The robot's kernel is compiled once, and kept.
            run([self.args.program, "bench", file, "sim.specialize=wait", "--seconds", 0.05])
            self.warm.add(config)
        command = [self.args.program, "train", file, "--quiet", "--out", config]
        return run([*command, "sim.threads=1", "learner.threads=1", "sim.specialize=wait", *words])[1:3]

    def sb3(self, environment, goal, every, seed):
        script = "tests/referee/returns_of_peers.py"
        words = ("sb3", environment, "--seed", seed, "--every", every, "--episodes", 16)
        said = re.compile(r"steps\s+([\d.]+) s\s+return\s+(-?[\d.]+)")
        reached = lambda line: (m := said.search(line)) and float(m[2]) >= goal
        lines, clock, _, _ = run(self.python("learners", script, *words), over=reached)
        if not reached(lines[-1]):
            raise Refused(f"no return of {goal} in {clock:.0f} s: {lines[-1].strip()}")
        return clock, float(said.search(lines[-1])[1])


def cases(bench, part):
    """(work, program, threads, what measures it in a round), in the order of a round."""
    s, mjbatch = bench.seconds, "mjbatch-uni 0.2.5 (UniLab's engine)"
    for t in bench.args.threads:
        if part == "physics":
            for robot in ROBOTS:
                yield robot, "Ostler", t, lambda _, r=robot, t=t: bench.physics(r, t)
                yield robot, mjbatch, t, lambda _, r=robot, t=t: bench.engine("mjbatch", r, t)
                yield robot, "mujoco.rollout 3.11", t, lambda _, r=robot, t=t: bench.engine("rollout", r, t)
        if part == "task":
            speed = ("simulation.steps_per_s", s, 0.8 * s, False)
            yield "Go1", "Ostler, the whole task", t, lambda _, t=t: bench.config("go1_flat", t, *speed)
            alone = mjbatch + ", physics and resets alone"
            yield "Go1", alone, t, lambda _, t=t: bench.engine("mjbatch", "Go1", t, "--resets")
            yield "half-cheetah", "Ostler", t, lambda _, t=t: bench.config("half_cheetah", t, *speed)
            yield "half-cheetah", "EnvPool 1.2.5", t, lambda _, t=t: bench.learner(t, "env", "envpool", t, s)
            if t == 1:  # Gymnasium's SyncVectorEnv has one.
                yield "half-cheetah", "Gymnasium 1.4.0", t, lambda _: bench.learner(1, "env", "gymnasium", 1, s)
        if part == "update":
            ppo = ["ppo.num_learning_epochs=5", "ppo.num_mini_batches=4", "ppo.schedule=fixed"]
            ppo += ["ppo.learning_rate=0.0001", "ppo.kl_stop=0"]
            stage = ("learning.steps_per_s", 4 * s, 6 * s, True)
            yield "an update", "Ostler", t, lambda _, t=t: bench.config("go1_flat", t, *stage, *ppo)
            yield "an update", "rsl_rl 5.5.1", t, lambda _, t=t: bench.learner(t, "update", t, 4 * s)
    if part == "return":
        goals = [("double_pendulum", "InvertedDoublePendulum-v5", 9000, 10_000, 600)]
        goals += [] if bench.args.quick else [("half_cheetah", "HalfCheetah-v5", 2000, 25_000, 400)]
        for own, other, goal, every, most in goals:
            stop = (f"runner.stop_at_return={goal}", f"runner.max_iterations={most}")
            stop += ("runner.eval_interval=20", "runner.eval_episodes=16")
            ours = lambda i, own=own, stop=stop: bench.train(own, "--seed", i + 1, *stop)
            theirs = lambda i, other=other, goal=goal, every=every: bench.sb3(other, goal, every, i + 1)
            yield f"{other} to {goal:,}", "Ostler", 1, ours
            yield f"{other} to {goal:,}", "Stable-Baselines3 2.9.2", 1, theirs
    if part == "start":
        yield "first iteration", "Ostler", 1, lambda _: bench.train("cartpole", "runner.max_iterations=1")
        for name, program in [("sb3", "Stable-Baselines3 2.9.2"), ("rsl_rl", "rsl_rl 5.5.1")]:
            script = ("learners", "xtask/peers/learners.py", "start", name)
            yield "first iteration", program, 1, lambda _, w=script: run(bench.python(*w))[1:3]


def number(x):
    """Three digits."""
    if x < 100:
        return f"{x:.{2 if x < 10 else 1}f}"
    return f"{round(x, 3 - len(str(int(x)))):,.0f}"


def table(rows, unit, rate):
    """Markdown of {(work, program, threads): [(by the clock, by processor time), ...]}."""
    out = f"| work | program | threads | {unit}, by processor time | least to most | by the clock | Ostler is faster |\n"
    out += "|---|---|---|---|---|---|---|\n"
    middle = lambda key, i: statistics.median(m[i] for m in rows[key])
    for key in rows:
        own = next((k for k in rows if k[1].startswith("Ostler") and (k[0], k[2]) == (key[0], key[2])), key)
        ratio = middle(own, 1) / middle(key, 1)
        times = "" if own == key else number(ratio if rate else 1 / ratio) + " times"
        least, most = (number(f(m[1] for m in rows[key])) for f in (min, max))
        cells = *key, number(middle(key, 1)), f"{least} to {most}", number(middle(key, 0)), times
        out += "| " + " | ".join(map(str, cells)) + " |\n"
    return out


def put(page, part, body):
    """The page with `body` between the markers of a part."""
    head, tail = f"<!-- peers: {part} -->\n", f"<!-- /peers: {part} -->"
    before, rest = page.split(head)
    return f"{before}{head}{body.strip()}\n{tail}{rest.split(tail)[1]}"


def draw(page):
    """The ratios of the page's tables as bars."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    bars = []
    for part, body in re.findall(r"<!-- peers: (\w+) -->(.*?)<!-- /peers", page, re.S):
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[-1].endswith(" times"):
                threads = {"1": "one thread"}.get(cells[2], cells[2] + " threads")
                ratio = float(cells[-1].split()[0].replace(",", ""))
                bars.append((f"{part}: {cells[0]}, {threads}\n{cells[1]}", ratio))
    labels, ratios = zip(*reversed(bars))
    figure, axes = plt.subplots(figsize=(9, 0.45 * len(bars) + 1))
    axes.bar_label(axes.barh(labels, ratios, color="#2a6f97"), [f"{r:g}" for r in ratios], padding=3)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="how many times as fast Ostler is, by processor time")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlim(min(0.8, *ratios), 1.7 * max(ratios))
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=100)


def refusals():
    """What pip says of packages that engines.txt asks for with `# try: `."""
    for package in re.findall(r"^# try: (\S+)", (ROOT / "xtask/peers/engines.txt").read_text(), re.M):
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--only-binary=:all:", package]
        done = subprocess.run(command, capture_output=True, text=True)
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines()]
        why = [line for line in said if line.startswith("ERROR: ")][:1] or [f"exit code {done.returncode}"]
        why += [line for line in said if " depends on " in line][-1:]
        yield f"{package}: " + ("installable; not measured" if done.returncode == 0 else f"pip, wheels alone: \"{'; '.join(why)}\"")


def machine():
    info = Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", info)[1]
    with_ = "with" if " avx512f" in info else "without"
    return f"{name} (family {re.search(r'cpu family.*: (.*)', info)[1]}) {with_} AVX-512, {len(os.sched_getaffinity(0))} cores"


def parts(text):
    wrong = [part for part in text.split(",") if part not in PARTS]
    if wrong:
        raise argparse.ArgumentTypeError(f"no part {wrong[0]!r}: {','.join(PARTS)}")
    return text.split(",")


def main():
    cores = len(os.sched_getaffinity(0))
    threads = lambda text: sorted({cores if t == "N" else min(cores, max(1, int(t))) for t in text.split(",")})
    cli = argparse.ArgumentParser(prog="cargo xtask peers", allow_abbrev=False)
    cli.add_argument("--quick", action="store_true", help="one round, 1 s each, the double pendulum alone")
    cli.add_argument("--only", type=parts, default=list(PARTS), help=",".join(PARTS))
    cli.add_argument("--rounds", type=int)
    cli.add_argument("--threads", type=threads, default=threads("1,N"), help="1,N (N: all cores)")
    for name in ("program", "engines", "learners", "robots"):
        cli.add_argument("--" + name, required=True)
    args = cli.parse_args()
    args.program = os.path.abspath(args.program)
    if not os.access(args.program, os.X_OK):
        cli.error(f"--program {args.program}: no program")
    rounds = args.rounds or (1 if args.quick else 3)
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    bench = Bench(args)
    words = "cargo xtask peers" + " --quick" * args.quick + (f" --rounds {args.rounds}" if args.rounds else "")
    for part in args.only:
        unit, rate, conditions = PARTS[part]
        rows, failed, before = {}, [], os.getloadavg()[0]
        for i in range(rounds):
            for work, program, t, sample in cases(bench, part):
                try:
                    found = sample(i)
                    rows.setdefault((work, program, t), []).append(found)
                    print(f"{part} {i + 1}: {work}, {program}, {t} threads: {number(found[1])}", file=sys.stderr, flush=True)
                except Exception as why:  # One program's trouble leaves the others'.
                    failed.append(f'{program}, {work}: "{why}"')
        if not rows:
            print(f"{part}: nothing was measured, the page keeps its table:", *failed, sep="\n  ", file=sys.stderr)
            continue
        body = f"{' '.join(conditions.split())} {datetime.date.today()}, {machine()}, load {before:.1f} at the start and "
        body += f"{os.getloadavg()[0]:.1f} at the end; `{words} --only {part}`, {rounds} round{'s' * (rounds > 1)}.\n\n"
        body += table(rows, unit, rate)
        failed += refusals() if part == "physics" else []
        body += "".join(f"\n- {line}" for line in dict.fromkeys(failed))
        print(f"{part}\n\n{body}\n", flush=True)
        PAGE.write_text(put(PAGE.read_text(), part, body))
    try:
        draw(PAGE.read_text())
    except (ImportError, ValueError) as why:
        print(f"warning: no picture: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
