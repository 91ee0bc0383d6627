"""What the package does to its process."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import ostler

GENERIC = {"sim": {"specialize": "off", "threads": 2}}


def run(text):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)


def test_import_loads_the_simulation_alone():
    done = run(
        "import sys, ostler\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'torch' not in maps and 'gymnasium' not in sys.modules\n"
        "assert 'numpy' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_thousand_environments_leave_nothing_behind():
    def cycle(make, count):
        for i in range(count):
            env = make("cartpole" if make is ostler.make_vec else "spread", 64, **GENERIC)
            env.reset(seed=i)
            space = getattr(env, "batched_action_spaces", None) or {None: env.action_space}
            actions = {name: np.zeros(s.shape, np.float32) for name, s in space.items()}
            env.step(actions.get(None, actions))
            # Half of them are just dropped.
            if i % 2:
                env.close()
            del env
        gc.collect()
        status = Path("/proc/self/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        kib = int(fields["VmRSS"].split()[0])
        return kib, int(fields["Threads"]), len(os.listdir("/proc/self/fd"))

    for make in (ostler.make_vec, ostler.make_marl):
        # What stays after the first hundred is the allocator's and the caches'.
        first = cycle(make, 100)
        last = cycle(make, 1000)
        assert last[1:] == first[1:], (make, first, last)
        assert last[0] - first[0] < 4096, (make, first, last)


def test_other_threads_run_during_a_step():
    env = ostler.make_vec("ant", 8192, sim={"specialize": "off", "threads": 1})
    env.reset()
    actions = np.zeros(env.action_space.shape, np.float32)
    inside, seen, stop = [False], [0], [False]

    def look():
        while not stop[0]:
            seen[0] += inside[0]
            time.sleep(0.0002)

    other = threading.Thread(target=look)
    other.start()
    for _ in range(5):
        inside[0] = True
        env._arrays.step([actions], env._arrays.new())
        inside[0] = False
    stop[0] = True
    other.join()
    # One that holds the lock lets nobody look before it is through.
    assert seen[0] > 20, seen


def test_control_c_ends_a_loop():
    # A shell's background jobs ignore the signal, and so would their children.
    loop = (
        "import ostler, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "env = ostler.make_vec('ant', 256, sim={'specialize': 'off'})\n"
        "env.reset()\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    while True: env.step(env.action_space.sample())\n"
        "except KeyboardInterrupt: print('interrupted'); env.close()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", loop], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert said == "interrupted\n" and process.returncode == 0


def test_control_c_ends_a_construction_with_its_compiler():
    text = (
        "import ostler, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('ready', flush=True)\n"
        "try: ostler.make_vec('ant', 4, sim={'specialize': 'wait'})\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    with tempfile.TemporaryDirectory() as cache:
        process = subprocess.Popen(
            [sys.executable, "-c", text],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OSTLER_CACHE": cache},
        )
        try:
            assert process.stdout.readline() == "ready\n"
            # A compiler works in a folder of the cache.
            wait(lambda: working_in(cache), 60)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=300)
            took = time.monotonic() - begin
        finally:
            process.kill()
        assert said == "interrupted\n" and process.returncode == 0
        # The kernel of this robot takes many times as long.
        assert took < 3, took
        wait(lambda: not working_in(cache), 10)


def working_in(folder):
    """Processes whose folder is below this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd").startswith(folder):
                found.append(process.name)
        except OSError:
            # It has ended, or is somebody else's.
            continue
    return found


def wait(until, seconds):
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def test_messages_are_pythons():
    done = run(
        "import logging, ostler\n"
        "logging.basicConfig(level=logging.INFO, format='%(name)s %(levelname)s %(message)s')\n"
        "env = ostler.make_vec('half_cheetah', 4, sim={'specialize': 'off', 'max_speed': 1.0})\n"
        "env.reset()\n"
        "for _ in range(20): env.step(env.action_space.sample())\n"
        "print(env.statistics()['broken'])\n"
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
