"""Runs a bundle of programs on a machine with an NVIDIA GPU, or on any other in its place.

    python3 part-1/run.py --group 1 [--device cuda:0|cpu] [--out FOLDER] [--skip ITEM]
    python3 part-2/run.py --add                (further parts, where there are any)
    python3 part-1/run.py --list
    python3 part-1/run.py --merge FOLDER RESULTS.json...

Beside this file lies a piece of an archive with programs, configurations and compiled code. It is
unpacked to --home (a folder that stays between calls) when all pieces are there.
The machine needs Python 3.8, a driver, CUDA's NVRTC and a torch installation of the version that
the programs were built for; no Rust, no compiler.

Each test is a process with a limit of its own. After every item FOLDER has `gpu-results.json`,
`summary.md` and `logs.tar.gz` anew: what comes later can lose nothing of it. A group takes no
longer than it says: items that find no time left are named. The exit code is 0 if everything ran
and passed, 1 if something failed, 2 if the command line is wrong. Items that are "soft" are
reported and fail nothing: figures and counters of a first contact.

--pretend FILE sets the variables of a pretend GPU, with small sizes: `cargo xtask pretend-gpu`.
"""

import argparse
import glob
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIGURE = "FIGURE "


def libraries():
    """Folders of torch's and CUDA's libraries, for the loader."""
    found = []
    spec = importlib.util.find_spec("torch")
    if os.environ.get("LIBTORCH"):
        found.append(os.path.join(os.environ["LIBTORCH"], "lib"))
    if spec and spec.origin:
        torch = os.path.dirname(spec.origin)
        found.append(os.path.join(torch, "lib"))
        found += sorted(glob.glob(os.path.join(os.path.dirname(torch), "nvidia", "*", "lib")))
    for home in [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]:
        if home:
            found.append(os.path.join(home, "lib64"))
    return [f for f in found if os.path.isdir(f)]


def said(command):
    """What a command prints, or nothing."""
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return out.stdout.strip() if out.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def machine():
    query = "name,driver_version,memory.total,power.limit,clocks.max.sm"
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    spec = importlib.util.find_spec("torch")
    version = ""
    if spec and spec.origin:
        text = os.path.join(os.path.dirname(spec.origin), "version.py")
        match = re.search(r"__version__ = '([^']*)'", open(text).read())
        version = match.group(1) if match else ""
    return {
        "gpus": said(["nvidia-smi", "--query-gpu=" + query, "--format=csv,noheader"]).splitlines(),
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": version,
    }


class Bundle:
    """Programs, in a folder that stays."""

    def __init__(self, home):
        self.home = home
        with open(os.path.join(HERE, "pieces.json")) as file:
            self.pieces = json.load(file)
        self.root = os.path.join(home, self.pieces["name"])

    def add(self):
        """Takes this part's piece; unpacks when all are there. The pieces that are missing."""
        store = self.root + ".pieces"
        os.makedirs(store, exist_ok=True)
        for path in glob.glob(os.path.join(HERE, "piece.*")):
            shutil.copy(path, store)
        missing = [p for p in self.pieces["all"] if not os.path.exists(os.path.join(store, p))]
        if not missing and not os.path.isdir(self.root):
            whole = os.path.join(store, "whole")
            with open(whole, "wb") as out:
                for piece in self.pieces["all"]:
                    with open(os.path.join(store, piece), "rb") as file:
                        shutil.copyfileobj(file, out)
            unfinished = self.root + ".unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            with tarfile.open(whole) as archive:
                archive.extractall(unfinished)
            os.remove(whole)
            os.rename(unfinished, self.root)
            self.install()
        return missing

    def install(self):
        """Wheels of other engines, where they were packed."""
        wheels = os.path.join(self.root, "wheels")
        if os.path.isdir(wheels):
            target = os.path.join(self.root, "site")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                       "--target", target] + sorted(glob.glob(os.path.join(wheels, "*.whl")))
            code = subprocess.run(command).returncode
            if code != 0:
                print("the wheels of other engines cannot be installed", flush=True)

    def program(self, name):
        """How a program is started."""
        if name.endswith(".py"):
            return [sys.executable, os.path.join(self.root, name)]
        return [os.path.join(self.root, "bin", name)]


def skipped(record):
    """Tests that the harness takes for passed, with what each lacked; forgets them."""
    tests = {}
    if os.path.exists(record):
        with open(record, errors="replace") as file:
            for line in file:
                need, name, test, why = line.rstrip("\n").split("\t", 3)
                tests.setdefault((name, test), "%s: %s %s: %s" % (need, name, test, why))
        os.remove(record)
    return sorted(tests.values())


class Runner:
    """Runs items on a device."""

    def __init__(self, bundle, device, pretend):
        self.bundle, self.device = bundle, device
        self.logs = os.path.join(bundle.home, "logs")
        self.work = os.path.join(bundle.home, "runs")
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.logs, exist_ok=True)
        os.makedirs(self.work, exist_ok=True)
        self.skips = os.path.join(bundle.home, "skips.txt")
        self.dry = pretend is not None
        environment = dict(os.environ)
        paths = libraries() + [p for p in environment.get("LD_LIBRARY_PATH", "").split(":") if p]
        environment["LD_LIBRARY_PATH"] = ":".join(paths)
        cache = os.path.join(bundle.root, "cache")
        environment["OSTLER_CACHE"] = cache if os.path.isdir(cache) else os.path.join(bundle.home, "cache")
        environment["OSTLER_GPU_TESTS"] = device
        environment["RUST_BACKTRACE"] = "0"
        environment["PYTHONPATH"] = os.path.join(bundle.root, "site")
        # Tests that cannot run write it down (tests/support/need.rs); here is a GPU.
        environment["OSTLER_SKIPS"] = self.skips
        if device != "cpu":
            required = [environment.get("OSTLER_REQUIRE", ""), "gpu"]
            environment["OSTLER_REQUIRE"] = ",".join(filter(None, required))
        if self.dry:
            with open(pretend) as file:
                environment.update(json.load(file))
            environment["OSTLER_GPU_SIZES"] = "small"
        environment["PATH"] = environment.get("PATH", "") + ":/usr/local/cuda/bin"
        self.environment = environment

    def command(self, item, arguments):
        replaced = {"$DEVICE": self.device, "$OUT": self.work}
        if self.dry:
            arguments = [item.get("dry_replace", {}).get(a, a) for a in arguments] + item.get("dry", [])
        def fill(text):
            for name, value in replaced.items():
                text = text.replace(name, value)
            return text
        return self.bundle.program(item["program"]) + [fill(a) for a in arguments]

    def start(self, command, name, limit):
        """Runs a command; its output, exit code, why it failed if it did, seconds."""
        log = os.path.join(self.logs, re.sub(r"[^A-Za-z0-9]+", "_", name) + ".txt")
        begin = time.time()
        with open(log, "wb") as file:
            file.write((shlex.join(command) + "\n").encode())
            file.flush()
            try:
                child = subprocess.Popen(
                    command, cwd=self.bundle.root, env=self.environment, stdout=subprocess.PIPE,
                    stderr=file, start_new_session=True,
                )
            except OSError as error:
                return "", "", str(error), 0.0
            why = ""
            try:
                text, _ = child.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                text, _ = child.communicate()
                why = "it took longer than %d s" % limit
            file.write(text)
        if not why and child.returncode != 0:
            why = "it ended with %d" % child.returncode
        with open(log, errors="replace") as file:
            everything = file.read()
        return text.decode(errors="replace"), everything[-4000:], why, round(time.time() - begin, 2)

    def tests(self, item):
        """The names of its tests."""
        text, tail, why, _ = self.start(self.command(item, ["--list", item["filter"]]), item["name"], 60)
        names = re.findall(r"^(\S+): test$", text, re.M)
        ignored, _, _, _ = self.start(
            self.command(item, ["--list", "--ignored", item["filter"]]), item["name"], 60)
        names = [n for n in names if n + ": test" not in ignored]
        return names, why or ("" if names else "no test ran"), tail

    def units(self, item):
        """What is run one after the other, as rows of the results: (name, function)."""
        name = item["name"]
        if item["kind"] == "tests":
            names, why, tail = self.tests(item)
            if why:
                return [(name, lambda _: {"ok": False, "why": why, "tail": tail})]
            return [(t, lambda limit, t=t: self.test(item, t, limit)) for t in names]
        kinds = {"json": self.json, "train": self.train, "alike": self.alike,
                 "sanitizer": self.sanitizer, "profile": self.profile}
        return [(name, lambda limit: kinds[item["kind"]](item, limit))]

    def test(self, item, test, limit):
        skipped(self.skips)
        command = self.command(item, ["--exact", test, "--nocapture", "--test-threads=1"])
        text, tail, why, seconds = self.start(command, test, limit)
        row = dict(done(command, seconds, why, tail), figures=figures(text))
        row["skipped"] = skipped(self.skips)
        results = re.findall(r"test result: \w+\. (\d+) passed; (\d+) failed", text)
        if not why and not row["skipped"] and results != [("1", "0")]:
            row = failed(row, "no test ran", tail)
        return row

    def json(self, item, limit):
        command = self.command(item, item["args"])
        text, tail, why, seconds = self.start(command, item["name"], limit)
        row = done(command, seconds, why, tail)
        try:
            row["output"] = json.loads(text)
        except ValueError:
            return row if why else failed(row, "it printed no JSON", tail)
        if isinstance(row["output"], dict):
            # What could not be measured is told as well, and why.
            worth = re.compile(r"steps_per_s|share|^ratio|\.(missing|error|note)$")
            row["figures"] = {k: v for k, v in row["output"].items() if worth.search(k)}
        return row

    def train(self, item, limit):
        command = self.command(item, item["args"])
        _, tail, why, seconds = self.start(command, item["name"], limit)
        return done(command, seconds, why, tail)

    def alike(self, item, limit):
        """The same training on the device and on the processor: the numbers of learning agree."""
        out = os.path.join(self.work, re.sub(r"[^A-Za-z0-9]+", "_", item["name"]))
        lines = []
        spent = 0.0
        for device in [self.device, "cpu"]:
            args = ["train"] + item["args"] + ["learner.precision=float32", "--quiet", "--device", device, "--out", out + device.replace(":", "")]
            command = self.command(item, args)
            _, tail, why, seconds = self.start(command, item["name"] + " " + device, limit - spent)
            spent += seconds
            if why:
                return done(command, spent, why, tail)
            with open(os.path.join(out + device.replace(":", ""), "metrics.jsonl")) as file:
                lines.append([json.loads(line) for line in file])
        worst, tag = 0.0, ""
        compared = 0
        # Later iterations part, as sums of other orders do.
        for there, here in zip(lines[0][:2], lines[1][:2]):
            for name, b in here.items():
                a = there.get(name)
                if not name.startswith(("Loss/", "Policy/")) or not isinstance(b, (int, float)):
                    continue
                off = abs(a - b) / max(abs(b), 0.1) if isinstance(a, (int, float)) else float("inf")
                compared += 1
                if not off <= worst:
                    worst, tag = off, name
        row = dict(done(command, spent, "", ""), figures={item["name"] + ", worst": worst})
        if compared < 6 or not worst <= 0.05:
            return failed(row, "%s differs by %.3g of %d numbers" % (tag, worst, compared), "")
        return row

    def sanitizer(self, item, limit):
        tool = [item["tool"], "--error-exitcode", "99", "--target-processes", "all"] + item["options"]
        command = tool + self.command(item, item["args"])
        text, tail, why, seconds = self.start(command, item["name"], limit)
        row = done(command, seconds, why, tail)
        if not why and not re.search(r"(ERROR|RACECHECK) SUMMARY: 0 ", text + tail):
            return failed(row, "the tool does not say that there are no errors", tail)
        return row

    def profile(self, item, limit):
        """Stalls, caches and local memory of each kernel's first launch; a figure, never a failure."""
        metrics = [
            "gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
            "smsp__inst_executed.sum", "smsp__thread_inst_executed_per_inst_executed.ratio",
            "smsp__issue_active.avg.pct_of_peak_sustained_active",
            "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct",
            "dram__bytes.sum", "lts__t_sectors_srcunit_tex_lookup_miss.sum",
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
            "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio",
            "smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum",
            "launch__registers_per_thread",
        ]
        tool = [item["tool"], "--csv", "--target-processes", "all", "--metrics", ",".join(metrics)]
        command = tool + item["options"] + self.command(item, item["args"])
        text, tail, why, seconds = self.start(command, item["name"], limit)
        row = dict(done(command, seconds, why, tail), figures=profiled(text))
        if not why and not row["figures"]:
            row = failed(row, "no kernel was profiled", tail)
        return row


def profiled(text):
    """Values of each kernel's first launch, from the profiler's CSV."""
    import csv

    lines = [line for line in text.splitlines() if line.startswith('"')]
    found = {}
    for row in csv.DictReader(lines):
        if "Metric Name" not in row:
            continue
        key = "%s.%s" % (row["Kernel Name"].split("(")[0], row["Metric Name"])
        value = (row["Metric Value"] or "").replace(",", "")
        try:
            found.setdefault(key, float(value))
        except ValueError:
            found.setdefault(key, value)
    return found


def done(command, seconds, why, tail):
    row = {"command": shlex.join(command), "seconds": seconds, "ok": not why}
    if why:
        row.update(why=why, tail=tail)
    return row


def failed(row, why, tail):
    return dict(row, ok=False, why=why, tail=tail)


def figures(text):
    found = {}
    for line in text.splitlines():
        # The harness writes a test's name before what it prints, on the same line.
        at = line.find(FIGURE)
        if at >= 0:
            try:
                found.update(json.loads(line[at + len(FIGURE):]))
            except ValueError:
                found[line[at:at + 100]] = "cannot be read"
    return found


def passed(row):
    return row["ok"] or row.get("soft", False)


def summary(results):
    """Results for people, as Markdown."""
    m = results["machine"]
    lines = [
        "# Results on " + results["device"],
        "",
        "%s; %s, %d cores; torch %s; bundle of commit %s; %s"
        % (", ".join(m["gpus"]) or "no NVIDIA GPU", m["cpu"], m["cores"], m["torch"] or "unknown",
           results["commit"], results["date"]),
        "",
        "| group | item | result | seconds | figures |",
        "|---|---|---|---|---|",
    ]
    for row in results["items"]:
        told = ", ".join("%s %s" % (k, shown(v)) for k, v in sorted(row.get("figures", {}).items()))
        result = "ok" if row["ok"] else ("to be looked at: " if row.get("soft") else "FAILED: ") + row["why"]
        if row["ok"] and row.get("skipped"):
            result = "skipped"
        lines.append("| %s | %s | %s | %.1f | %s |" % (row["group"], row["name"], result.replace("|", "/"), row["seconds"], told))
    bad = [r for r in results["items"] if not r["ok"]]
    lines += ["", "%d of %d ran and passed." % (len(results["items"]) - len(bad), len(results["items"]))]
    if results.get("left_out"):
        lines += ["", "Not run: " + "; ".join(results["left_out"]) + "."]
    skips = ["- %s" % s for r in results["items"] for s in r.get("skipped", [])]
    if skips:
        lines += ["", "Tests that did not run:", ""] + skips
    for row in bad:
        lines += ["", "## " + row["name"], "", "`%s`" % row.get("command", ""), "", row["why"]]
        lines += ["", "```"] + row.get("tail", "").splitlines()[-40:] + ["```"]
    return "\n".join(lines) + "\n"


def shown(value):
    return "%.6g" % value if isinstance(value, float) else str(value)


def write(results, out, logs=None):
    results["ok"] = bool(results["items"]) and all(passed(r) for r in results["items"])
    for name, text in [("gpu-results.json", json.dumps(results, indent=1) + "\n"), ("summary.md", summary(results))]:
        path = os.path.join(out, name)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)
    if logs:
        path = os.path.join(out, "logs.tar.gz")
        with tarfile.open(path + ".new", "w:gz") as archive:
            archive.add(logs, arcname="logs")
        os.replace(path + ".new", path)


def merge(out, files):
    os.makedirs(out, exist_ok=True)
    merged = None
    for name in files:
        with open(name) as file:
            part = json.load(file)
        if merged is None:
            merged = part
            continue
        if (part["commit"], part["device"]) != (merged["commit"], merged["device"]):
            sys.exit("%s is of another commit or device" % name)
        merged["items"] += part["items"]
        merged["left_out"] += part["left_out"]
    write(merged, out)
    print(summary(merged))
    return 0 if merged["ok"] else 1


def main():
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cli.add_argument("--device", default="cuda:0")
    cli.add_argument("--out", default=".")
    cli.add_argument("--home", default="/tmp/ostler-gpu")
    cli.add_argument("--group", type=int, action="append", help="the K-th group; all without it")
    cli.add_argument("--skip", action="append", default=[], metavar="ITEM")
    cli.add_argument("--add", action="store_true", help="take this part and run nothing")
    cli.add_argument("--list", action="store_true", help="what would run, by group")
    cli.add_argument("--pretend", metavar="FILE")
    cli.add_argument("--merge", nargs="+", metavar="RESULTS")
    args = cli.parse_args()
    if args.merge:
        return merge(args.merge[0], args.merge[1:])
    with open(os.path.join(HERE, "bundle.json")) as file:
        plan = json.load(file)
    groups = plan["groups"]
    unknown = set(args.skip) - {i["name"] for g in groups for i in g["items"]}
    if unknown:
        cli.error("no item is called " + ", ".join(sorted(unknown)))
    if args.list:
        for k, group in enumerate(groups, 1):
            names = ", ".join(i["name"] for i in group["items"] if i["name"] not in args.skip)
            print("group %d, %s, %d minutes: %s" % (k, group["name"], group["minutes"], names))
        return 0
    wrong = [k for k in args.group or [] if not 1 <= k <= len(groups)]
    if wrong:
        cli.error("there are groups 1 to %d" % len(groups))
    bundle = Bundle(os.path.abspath(args.home))
    missing = bundle.add()
    if missing:
        print("%d pieces are missing: run the other parts with --add" % len(missing))
        return 0 if args.add else 2
    if args.add:
        return 0
    out = os.path.abspath(args.out)
    os.makedirs(out, exist_ok=True)
    pretend = args.pretend and os.path.abspath(args.pretend)
    runner = Runner(bundle, args.device, pretend)
    results = {
        "device": args.device + (" (pretend)" if runner.dry else ""),
        "date": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        "commit": plan["commit"],
        "machine": machine(),
        "left_out": [],
        "items": [],
    }
    write(results, out)
    for k in args.group or range(1, len(groups) + 1):
        group = groups[k - 1]
        end = time.time() + 60 * group["minutes"]
        for item in group["items"]:
            why = left_out(item, args, runner)
            if why:
                results["left_out"].append("%s (%s)" % (item["name"], why))
                continue
            for name, unit in runner.units(item):
                left = end - time.time()
                if left < 5:
                    results["left_out"].append("%s (no time left in its group)" % name)
                    continue
                print("== " + name, flush=True)
                try:
                    row = unit(min(item["seconds"], left))
                except Exception as error:  # Nothing of what ran before may be lost.
                    row = {"ok": False, "why": "run.py: %r" % error}
                row = dict({"seconds": 0.0, "group": group["name"], "name": name}, **row)
                if item.get("soft"):
                    row["soft"] = True
                for figure, value in row.get("figures", {}).items():
                    if not isinstance(value, (int, float, str)) or value != value:
                        row = failed(row, "%s is %s" % (figure, value), row.get("tail", ""))
                print("   %s, %.1f s" % ("ok" if row["ok"] else "FAILED: " + row["why"], row["seconds"]), flush=True)
                results["items"].append(row)
                write(results, out, runner.logs)
    write(results, out, runner.logs)
    print(summary(results))
    return 0 if results["ok"] else 1


def left_out(item, args, runner):
    """Why an item does not run; nothing if it does."""
    if item["name"] in args.skip:
        return "as asked"
    if item.get("gpu_only") and (args.device == "cpu" or runner.dry):
        return "for a GPU alone"
    if args.device == "cpu" and item["kind"] in ("alike", "sanitizer", "profile"):
        return "there is nothing to compare or to look at"
    tool = item.get("tool")
    if tool and not shutil.which(tool, path=runner.environment["PATH"]):
        return "there is no " + tool
    lacking = [f for f in item.get("files", []) if not os.path.exists(os.path.join(runner.bundle.root, f))]
    if lacking:
        return "there is no " + lacking[0]
    return ""


if __name__ == "__main__":
    sys.exit(main())
