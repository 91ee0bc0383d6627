"""Ostler's replay buffer against TorchRL's, in turn, in one run, one thread each.

    pip install torch torchrl
    cargo bench --workspace --bench replay --no-run       # prints the program's path
    python collector/benches/versus_torchrl.py target/release/deps/replay-HASH [FOLDER]

Capacity 1,000,000, observations of 48 numbers, actions of 12, batches of 4,096; the same
fields of the same types on both sides. Memories are filled twice over before anything is
measured. Each round measures one side and then the other; the medians of the rounds and of
their ratios are printed, and TorchRL's faster class of buffer counts.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torchrl
from tensordict import TensorDict
from torchrl.data import (
    LazyMemmapStorage,
    LazyTensorStorage,
    ReplayBuffer,
    TensorDictReplayBuffer,
)

CAPACITY, BATCH, ROUNDS, REPEAT = 1_000_000, 4096, 15, 20


def transitions():
    ramp = lambda width: (torch.arange(BATCH * width) % 1000 * 0.001).view(BATCH, -1)
    single = ("reward", "terminated", "truncated", "valid")
    fields = {name: ramp(1).squeeze(-1) for name in single}
    fields |= {"obs": ramp(48), "action": ramp(12), "next_obs": ramp(48)}
    fields["version"] = torch.zeros(BATCH, dtype=torch.int32)
    return TensorDict(fields, batch_size=[BATCH])


class Theirs:
    def __init__(self, kind, storage, folder):
        storages = {
            "host": lambda: LazyTensorStorage(CAPACITY),
            "memmap": lambda: LazyMemmapStorage(CAPACITY, scratch_dir=folder),
        }
        self.buffer = kind(storage=storages[storage](), batch_size=BATCH)
        self.data = transitions()
        self.extend(2 * CAPACITY // BATCH + 20)

    def extend(self, count):
        start = time.perf_counter()
        for _ in range(count):
            self.buffer.extend(self.data)
        return time.perf_counter() - start

    def sample(self, count):
        start = time.perf_counter()
        for _ in range(count):
            self.buffer.sample()
        return time.perf_counter() - start


class Ours:
    def __init__(self, program, storage, folder):
        command = [program, "--serve", storage, folder]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self.child.stdout.readline().strip() == "ready"

    def ask(self, what, count):
        self.child.stdin.write(f"{what} {count}\n")
        self.child.stdin.flush()
        return float(self.child.stdout.readline())

    def extend(self, count):
        return self.ask("extend", count)

    def sample(self, count):
        return self.ask("sample", count)

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def measure(ours, theirs, what):
    times = []
    for _ in range(ROUNDS):
        times.append([getattr(side, what)(REPEAT) for side in (ours, theirs)])
    rate = lambda side: REPEAT * BATCH / statistics.median(t[side] for t in times) / 1e6
    return rate(0), rate(1), statistics.median(t[1] / t[0] for t in times)


def main():
    torch.set_num_threads(1)
    program, *rest = sys.argv[1:]
    base = tempfile.mkdtemp(dir=rest[0] if rest else None)
    print(f"torch {torch.__version__}, torchrl {torchrl.__version__}; million transitions/s")
    try:
        for storage in ("host", "memmap"):
            ours = Ours(program, storage, os.path.join(base, f"ours-{storage}"))
            found = {}
            for kind in (ReplayBuffer, TensorDictReplayBuffer):
                folder = os.path.join(base, kind.__name__)
                theirs = Theirs(kind, storage, folder)
                for what in ("sample", "extend"):
                    found.setdefault(what, []).append((kind, *measure(ours, theirs, what)))
                del theirs
                shutil.rmtree(folder, ignore_errors=True)
            ours.end()
            for what, results in found.items():
                kind, mine, other, ratio = max(results, key=lambda r: r[2])
                print(
                    f"replay.{storage}.{what} ostler {mine:.2f} torchrl {other:.2f} "
                    f"({kind.__name__}) ratio {ratio:.2f}"
                )
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
