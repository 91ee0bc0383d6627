"""Environment steps per second on one core, side by side with other vector environments.

    pip install "gymnasium[mujoco]" envpool
    python python/benches/side_by_side.py half_cheetah ant --seconds 5 --rounds 3

All of them step with random actions on the same core, processes included, in turn, several
rounds; the medians of steps per second are printed. The core should have nothing else to do.
"""

import argparse
import os
import statistics
import time

# One thread each.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

NAMES = {"half_cheetah": "HalfCheetah", "ant": "Ant", "hopper": "Hopper"}


def ostler_envs(name, n):
    import ostler

    return ostler.make_vec(name, n, sim={"specialize": "wait", "threads": 1})


def gymnasium_envs(kind):
    def make(name, n):
        import gymnasium

        task = f"{NAMES[name]}-v5"
        return gymnasium.make_vec(task, n, vectorization_mode=kind)

    return make


def envpool_envs(name, n):
    import envpool

    return envpool.make_gymnasium(f"{NAMES[name]}-v4", num_envs=n, num_threads=1)


LIBRARIES = {
    "ostler": (ostler_envs, 1024),
    "gymnasium sync": (gymnasium_envs("sync"), 64),
    "gymnasium async": (gymnasium_envs("async"), 8),
    "envpool": (envpool_envs, 1024),
}


def speed(make, name, n, seconds):
    env = make(name, n)
    env.reset()
    shape = env.action_space.shape
    shape = shape if len(shape) == 2 else (n, *shape)
    rng = np.random.default_rng(1)
    actions = [rng.uniform(-1, 1, shape).astype(np.float32) for _ in range(16)]
    for i in range(4):
        env.step(actions[i])
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        env.step(actions[steps % 16])
        steps += 1
    took = time.perf_counter() - begin
    env.close()
    return steps * n / took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=sorted(NAMES))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=sorted(LIBRARIES), default=sorted(LIBRARIES))
    args = parser.parse_args()
    # One core for all.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name in args.names:
        found = {library: [] for library in args.only}
        for _ in range(args.rounds):
            for library in args.only:
                make, n = LIBRARIES[library]
                found[library].append(speed(make, name, n, args.seconds))
        ours = statistics.median(found.get("ostler", [float("nan")]))
        for library in args.only:
            middle = statistics.median(found[library])
            n = LIBRARIES[library][1]
            print(f"{name:14} {library:16} {n:5} envs {middle:10,.0f} steps/s   {ours / middle:6.1f} x")


if __name__ == "__main__":
    main()
