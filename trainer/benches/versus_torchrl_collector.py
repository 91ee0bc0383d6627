"""Ostler's collector against TorchRL's over an environment that does next to nothing.

    pip install torch torchrl
    cargo bench --workspace --bench collector --no-run      # prints the program's path
    python trainer/benches/versus_torchrl_collector.py target/release/deps/collector-HASH

Observations of 8 numbers, actions of 2, rollouts of 32 steps; one thread on one pinned core
each, per second of processor time, so that other programs on the machine matter less. The
environment is batched on both sides, and counts. Sides take turns; the medians of
the rounds and of their ratios are printed. `start` is the time from starting the process to
its first rollout.
"""

import os
import statistics
import subprocess
import sys
import time

OBS, ACTION, STEPS, ROUNDS, SECONDS = 8, 2, 32, 5, 1.0


def theirs(policy, envs, seconds):
    start = time.perf_counter()
    import torch
    from tensordict import TensorDict
    from tensordict.nn import NormalParamExtractor, TensorDictModule
    from torchrl.collectors import Collector
    from torchrl.data import Bounded, Composite, Unbounded
    from torchrl.envs import EnvBase
    from torchrl.modules import ProbabilisticActor
    from torch.distributions import Independent, Normal

    torch.set_num_threads(1)

    class Counting(EnvBase):
        def __init__(self):
            super().__init__(batch_size=[envs])
            self.observation_spec = Composite(
                observation=Unbounded(shape=(envs, OBS)), shape=(envs,))
            self.action_spec = Bounded(-1.0, 1.0, shape=(envs, ACTION))
            self.reward_spec = Unbounded(shape=(envs, 1))
            self.ones = torch.ones(envs, 1)
            self.never = torch.zeros(envs, 1, dtype=torch.bool)

        def _reset(self, td=None, **kwargs):
            return TensorDict(
                {"observation": torch.zeros(envs, OBS), "done": self.never.clone(),
                 "terminated": self.never.clone()}, batch_size=[envs])

        def _step(self, td):
            return TensorDict(
                {"observation": td["observation"] + 1e-3, "reward": self.ones,
                 "done": self.never, "terminated": self.never}, batch_size=[envs])

        def _set_seed(self, seed):
            pass

    actor = None
    if policy == "mlp":
        net = torch.nn.Sequential(
            torch.nn.Linear(OBS, 64), torch.nn.ELU(), torch.nn.Linear(64, 64), torch.nn.ELU(),
            torch.nn.Linear(64, 2 * ACTION), NormalParamExtractor())
        actor = ProbabilisticActor(
            TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"]),
            in_keys=["loc", "scale"],
            distribution_class=lambda loc, scale: Independent(Normal(loc, scale), 1))
    collector = Collector(
        Counting(), actor, frames_per_batch=STEPS * envs, total_frames=-1)
    batches = iter(collector)
    next(batches)
    first = time.perf_counter() - start
    print(f"first {first:.4f}", flush=True)
    for _ in range(3):
        next(batches)
    frames, clock = 0, time.process_time()
    while time.process_time() - clock < seconds:
        frames += next(batches).numel()
    print(f"rate {frames / (time.process_time() - clock):.0f}", flush=True)
    os._exit(0)


def run(command):
    """Rate and time to the first rollout, and from the start of the process."""
    start = time.perf_counter()
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    whole = time.perf_counter() - start
    found = {}
    for line in process.stdout.splitlines():
        words = line.split()
        if len(words) == 2:
            found[words[0].rsplit(".", 1)[-1]] = float(words[1])
    rate = found.get("rate", found.get("frames_per_s"))
    return rate, found.get("first", found.get("first_batch_s")), whole


def main():
    program = sys.argv[1]
    core = str(min(os.sched_getaffinity(0)))
    pinned = ["taskset", "-c", core]
    for policy in ("random", "mlp"):
        for envs in (64, 1024):
            ours_command = pinned + [program, "--policy", policy, "--envs", str(envs)]
            theirs_command = pinned + [sys.executable, __file__, "--theirs", policy, str(envs)]
            ours, other, ratios, firsts = [], [], [], ([], [])
            for _ in range(ROUNDS):
                a, first, _ = run(ours_command + ["--seconds", str(SECONDS)])
                b, their_first, _ = run(theirs_command)
                ours.append(a)
                other.append(b)
                ratios.append(a / b)
                firsts[0].append(first)
                firsts[1].append(their_first)
            start = [run(ours_command + ["--seconds", "0"])[2] for _ in range(ROUNDS)]
            median = statistics.median
            print(
                f"{policy} {envs}: ostler {median(ours):,.0f}/s, torchrl {median(other):,.0f}/s,"
                f" ratio {median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f});"
                f" first rollout after {median(firsts[0]):.3f} s, process and all"
                f" {median(start):.3f} s; torchrl with its imports {median(firsts[1]):.2f} s",
                flush=True)


if "--theirs" in sys.argv:
    theirs(sys.argv[-2], int(sys.argv[-1]), SECONDS)
else:
    main()
