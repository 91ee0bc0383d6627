"""Runs a bundle of programs on a machine with an NVIDIA GPU, or on any other in its place.

    python3 run.py [--device cuda:0|cpu] [--out FOLDER] [--part K] [--skip ITEM] [--list]
    python3 run.py --merge FOLDER RESULTS.json...

Beside this file lie `bundle.json` (what runs), `bin/` (the programs) and `configs/`.
The machine needs Python 3.8, a driver, CUDA's NVRTC and a torch installation of the
version the programs were built for; no Rust, no compiler. `--device cpu` runs the same
programs with the host in the GPU's place.

Writes `gpu-results.json` and `summary.md` to FOLDER (`.` without --out). The exit code is
0 if everything ran and passed, 1 if something failed, 2 if the command line is wrong.
`--part K` runs the K-th group alone; groups are made so that none takes longer than
`part_seconds` of bundle.json even if every item takes all the time it may.
"""

import argparse
import glob
import importlib.util
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIGURE = "FIGURE "


def parts(items, limit):
    """Items in groups whose times add up to no more than the limit, in order."""
    groups, used = [[]], 0
    for item in items:
        if groups[-1] and used + item["seconds"] > limit:
            groups.append([])
            used = 0
        groups[-1].append(item)
        used += item["seconds"]
    return groups


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


def program(name):
    """How a program of the bundle is started."""
    if name.endswith(".py"):
        return [sys.executable, os.path.join(HERE, name)]
    return [os.path.join(HERE, "bin", name)]


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


def run(item, device, out):
    """Runs one item and says how it went."""
    replaced = {"$DEVICE": device, "$OUT": out}
    def fill(text):
        for name, value in replaced.items():
            text = text.replace(name, value)
        return text
    command = program(item["program"]) + [fill(a) for a in item["args"]]
    environment = dict(os.environ)
    paths = libraries() + [p for p in environment.get("LD_LIBRARY_PATH", "").split(":") if p]
    environment["LD_LIBRARY_PATH"] = ":".join(paths)
    environment["OSTLER_GPU_TESTS"] = device
    environment["OSTLER_CACHE"] = os.path.join(out, "cache")
    # Tests that cannot run write it down (tests/support/need.rs); here is a GPU.
    skips = os.path.join(out, "skips.txt")
    skipped(skips)
    environment["OSTLER_SKIPS"] = skips
    if device != "cpu":
        required = [environment.get("OSTLER_REQUIRE", ""), "gpu"]
        environment["OSTLER_REQUIRE"] = ",".join(filter(None, required))
    row = {"name": item["name"], "command": shlex.join(command)}
    log = os.path.join(out, re.sub(r"[^A-Za-z0-9]+", "_", item["name"]) + ".txt")
    start = time.time()
    with open(log, "wb") as file:
        try:
            child = subprocess.Popen(
                command, cwd=HERE, env=environment, stdout=subprocess.PIPE, stderr=file,
                start_new_session=True,
            )
        except OSError as error:
            return dict(row, ok=False, why=str(error), seconds=0.0)
        try:
            text, _ = child.communicate(timeout=item["seconds"])
            timed_out = False
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            text, _ = child.communicate()
            timed_out = True
        file.write(text)
    text = text.decode(errors="replace")
    row["seconds"] = round(time.time() - start, 2)
    row["code"] = child.returncode
    row["log"] = os.path.basename(log)
    problems = []
    if timed_out:
        problems.append("it took longer than %d s" % item["seconds"])
    elif child.returncode != 0:
        problems.append("it ended with %d" % child.returncode)
    if item["kind"] == "test":
        results = re.findall(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", text)
        counts = [sum(int(r[i]) for r in results) for i in range(3)]
        row["skipped"] = skipped(skips)
        counts[0] -= len(row["skipped"])
        row["passed"], row["failed"], row["ignored"] = counts
        if not results or counts[0] + counts[1] <= 0:
            problems.append("no test ran")
        row["failures"] = sorted(set(re.findall(r"^test (\S+) \.\.\. FAILED", text, re.M)))
    figures = {}
    for line in text.splitlines():
        # The harness writes a test's name before what it prints, on the same line.
        at = line.find(FIGURE)
        if at >= 0:
            try:
                figures.update(json.loads(line[at + len(FIGURE):]))
            except ValueError:
                problems.append("a figure that cannot be read: " + line[:200])
    if item["kind"] == "json":
        try:
            row["output"] = json.loads(text)
            if isinstance(row["output"], dict):
                told = row["output"].items()
                # What could not be measured is told as well, and why.
                worth = re.compile(r"steps_per_s|^ratio|\.(missing|error|note)$")
                figures.update({k: v for k, v in told if worth.search(k)})
        except ValueError:
            problems.append("it printed no JSON")
    for name, value in figures.items():
        if not isinstance(value, (int, float, str)) or value != value:
            problems.append("%s is %s" % (name, value))
    row["figures"] = figures
    row["ok"] = not problems
    if problems:
        row["why"] = "; ".join(problems)
        row["tail"] = (text + open(log, errors="replace").read())[-4000:]
    return row


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
        "| item | result | seconds | figures |",
        "|---|---|---|---|",
    ]
    for row in results["items"]:
        counts = ""
        if "passed" in row:
            counts = "%d passed, %d failed" % (row["passed"], row["failed"])
            if row.get("skipped"):
                counts += ", %d skipped" % len(row["skipped"])
            counts = " (%s)" % counts
        figures = ", ".join("%s %s" % (k, v) for k, v in sorted(row.get("figures", {}).items()))
        result = ("ok" if row["ok"] else "FAILED: " + row["why"]) + counts
        lines.append("| %s | %s | %.1f | %s |" % (row["name"], result.replace("|", "/"), row["seconds"], figures))
    failed = [r for r in results["items"] if not r["ok"]]
    lines += ["", "%d of %d items ran and passed." % (len(results["items"]) - len(failed), len(results["items"]))]
    if results.get("left_out"):
        lines += ["", "Not run, for want of a GPU or a file: " + "; ".join(results["left_out"]) + "."]
    skips = ["- %s: %s" % (r["name"], s) for r in results["items"] for s in r.get("skipped", [])]
    if skips:
        lines += ["", "Tests that did not run:", ""] + skips
    for row in failed:
        lines += ["", "## " + row["name"], "", "`%s`" % row["command"], "", row["why"]]
        lines += ["", "```"] + row.get("tail", "").splitlines()[-40:] + ["```"]
    return "\n".join(lines) + "\n"


def write(results, out):
    results["ok"] = bool(results["items"]) and all(r["ok"] for r in results["items"])
    with open(os.path.join(out, "gpu-results.json"), "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    text = summary(results)
    with open(os.path.join(out, "summary.md"), "w") as file:
        file.write(text)
    print(text)
    return 0 if results["ok"] else 1


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
    return write(merged, out)


def main():
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cli.add_argument("--device", default="cuda:0")
    cli.add_argument("--out", default=".")
    cli.add_argument("--part", type=int)
    cli.add_argument("--skip", action="append", default=[], metavar="ITEM")
    cli.add_argument("--list", action="store_true", help="what would run, by part")
    cli.add_argument("--merge", nargs="+", metavar="RESULTS")
    args = cli.parse_args()
    if args.merge:
        return merge(args.merge[0], args.merge[1:])
    with open(os.path.join(HERE, "bundle.json")) as file:
        bundle = json.load(file)
    on_gpu = args.device != "cpu"
    def is_here(item):
        needs = [item["program"]] + item.get("needs", [])
        return all(os.path.exists(program(n)[-1]) for n in needs)

    here = [i for i in bundle["items"] if is_here(i)]
    unknown = set(args.skip) - {i["name"] for i in bundle["items"]}
    if unknown:
        cli.error("no item is called " + ", ".join(sorted(unknown)))
    here = [i for i in here if i["name"] not in args.skip]
    def can_run(item):
        files = [os.path.join(HERE, f) for f in item.get("files", [])]
        return (on_gpu or not item.get("gpu_only")) and all(map(os.path.exists, files))

    items = [i for i in here if can_run(i)]
    groups = parts(items, bundle["part_seconds"])
    if args.list:
        for k, group in enumerate(groups, 1):
            print("part %d: %s" % (k, ", ".join(i["name"] for i in group)))
        return 0
    if args.part is not None:
        if not 1 <= args.part <= len(groups):
            cli.error("there are parts 1 to %d" % len(groups))
        items = groups[args.part - 1]
    out = os.path.abspath(args.out)
    os.makedirs(out, exist_ok=True)
    results = {
        "device": args.device,
        "date": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        "commit": bundle["commit"],
        "machine": machine(),
        "left_out": [i["name"] for i in here if not can_run(i)],
        "items": [],
    }
    for item in items:
        print("== " + item["name"], flush=True)
        row = run(item, args.device, out)
        print("   %s, %.1f s" % ("ok" if row["ok"] else "FAILED: " + row["why"], row["seconds"]), flush=True)
        results["items"].append(row)
    return write(results, out)


if __name__ == "__main__":
    sys.exit(main())
