"""Environments of Gymnasium for a program that trains in them, over standard input and output.

The program starts this text with the Python of the configuration. A line of JSON each way
settles what there is; then come frames of numbers, little-endian, until standard input ends.
`worker.rs` has the other side.
"""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import signal
import struct
import sys
import threading
import time
import traceback

STEP, CUT, ANEW = 0, 1, 2
TERMINATED, TRUNCATED, RAISED, BAD_OBS, BAD_REWARD, GIVEN_UP = 1, 2, 4, 8, 16, 32
LONGEST_MESSAGE = 4000
# Starts of an episode, before there is none.
TRIES = 4
# The largest number in single precision.
LARGEST = 3.4028234e38
# Bounds of actions beyond this are none.
UNBOUNDED = 1e10


def take_over_standard_streams():
    """Environments read nothing and print to standard error: the standard streams have frames."""
    own_in, own_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdin, sys.stdout = open(0), sys.stderr
    return own_in, own_out


class Refused(Exception):
    """Something that the configuration has to say otherwise."""


def maker(request):
    """A function that makes one environment."""
    import gymnasium

    name, kwargs = request["env"], request["kwargs"]
    limit = request["max_episode_steps"]
    path, _, function = name.rpartition(":")
    if not path.endswith(".py"):
        if limit is not None:
            kwargs = {**kwargs, "max_episode_steps": limit}
        return lambda: gymnasium.make(name, **kwargs)
    module = loaded(pathlib.Path(path))
    try:
        make = getattr(module, function)
    except AttributeError:
        raise Refused(f"{path} has no `{function}`") from None

    def limited():
        env = make(**kwargs)
        if limit is not None:
            env = gymnasium.wrappers.TimeLimit(env, limit)
        return env

    return limited


def loaded(file):
    """The module of a file, which may import what lies beside it."""
    name, finder = file.stem, importlib.machinery.PathFinder
    # A module of another kind keeps its name: others import it by that.
    if name in sys.modules or name in sys.builtin_module_names or finder.find_spec(name):
        name = f"_ostler_{name}"
    # Behind everything else: nothing there stands for what Gymnasium or numpy import.
    sys.path.append(str(file.parent))
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def time_limit(env):
    """Control steps of the longest episode, if the environment says so."""
    limit = getattr(env.spec, "max_episode_steps", None)
    while limit is None and hasattr(env, "env"):
        limit = getattr(env, "_max_episode_steps", None)
        env = env.env
    return int(limit) if limit is not None and limit >= 1 else None


def control_step(env):
    """Control step (s)."""
    dt = getattr(env.unwrapped, "dt", None)
    if isinstance(dt, (int, float)) and 0 < dt < 1e6:
        return float(dt)
    rate = (env.metadata or {}).get("render_fps")
    return 1 / rate if isinstance(rate, (int, float)) and rate > 0 else 1.0


def goes_with(parent):
    """Ends this process when the program is gone, also within a long step."""

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


class Worker:
    """Environments of one process."""

    def __init__(self, request):
        import gymnasium
        import numpy

        self.np, self.spaces = numpy, gymnasium.spaces
        self.make = maker(request)
        self.envs = [self.make() for _ in range(request["envs"])]
        env = self.envs[0]
        self.obs_space, self.action_space = env.observation_space, env.action_space
        try:
            self.obs = gymnasium.spaces.flatdim(self.obs_space)
        except (NotImplementedError, ValueError):
            raise Refused(f"observations {self.obs_space} are not a fixed number of numbers") from None
        if self.obs < 1:
            raise Refused(f"observations {self.obs_space} have no numbers")
        self.facts = {
            "obs": self.obs,
            "max_episode_steps": time_limit(env),
            "step_dt": control_step(env),
            "gymnasium": gymnasium.__version__,
        }
        box, discrete = gymnasium.spaces.Box, gymnasium.spaces.Discrete
        space = self.action_space
        if isinstance(space, discrete):
            self.width, self.decode = 1, self.choice
            self.facts["action"] = {"discrete": int(space.n)}
        elif isinstance(space, box):
            self.width, self.decode = int(numpy.prod(space.shape)), self.numbers
            if self.width < 1:
                raise Refused(f"actions {space} have no numbers")
            self.facts["action"] = {"continuous": self.width}
            low = space.low.reshape(-1).astype(numpy.float64)
            high = space.high.reshape(-1).astype(numpy.float64)
            bounded = (numpy.abs(low) < UNBOUNDED) & (numpy.abs(high) < UNBOUNDED)
            # -1..1 is the whole range, as learners' policies expect it.
            self.scale = numpy.where(bounded, (high - low) / 2, 1)
            self.offset = numpy.where(bounded, (high + low) / 2, 0)
            self.low, self.high = low, high
            self.whole = numpy.issubdtype(space.dtype, numpy.integer)
        else:
            raise Refused(f"actions {space} are neither numbers (Box) nor choices (Discrete)")

    def choice(self, row):
        space = self.action_space
        return int(space.start) + min(max(int(row[0]), 0), int(space.n) - 1)

    def numbers(self, row):
        action = self.np.clip(self.offset + self.scale * row, self.low, self.high)
        if self.whole:
            action = self.np.rint(action)
        return action.reshape(self.action_space.shape).astype(self.action_space.dtype)

    def flat(self, obs):
        flat = self.spaces.flatten(self.obs_space, obs)
        flat = self.np.asarray(flat, self.np.float32).reshape(-1)
        if len(flat) != self.obs:
            raise ValueError(f"an observation of {len(flat)} numbers; the space has {self.obs}")
        return flat

    def first(self, i, seed):
        given = self.envs[i].reset(seed=seed)
        if not (isinstance(given, tuple) and len(given) == 2):
            raise TypeError("`reset` does not return (observation, info), as Gymnasium has it")
        first = self.flat(given[0])
        if not self.np.isfinite(first).all():
            raise ValueError(f"the first observation is not finite: {given[0]}")
        return first

    def begin(self, i, seed):
        """Begins an episode; an environment that cannot is made anew, and again."""
        for other in range(TRIES - 1):
            try:
                return self.first(i, (seed + other) % 2**32)
            except BaseException:
                self.closed(self.envs[i])
                self.envs[i] = self.make()
        return self.first(i, (seed + TRIES) % 2**32)

    def closed(self, env):
        try:
            env.close()
        except BaseException:
            traceback.print_exc()

    def close(self):
        for env in self.envs:
            self.closed(env)

    def advance(self, i, order, action, last):
        """A step of environment `i`: reward, flags, and what went wrong."""
        try:
            obs, reward, terminated, truncated, _ = self.envs[i].step(self.decode(action))
            last[:] = self.flat(obs)
            terminated, truncated = bool(terminated), bool(truncated)
            reward = float(reward)
        except BaseException:
            # Also one that wants to end the process.
            return 0.0, RAISED, traceback.format_exc()
        if not self.np.isfinite(last).all():
            return 0.0, BAD_OBS, ""
        if not abs(reward) <= LARGEST:
            return 0.0, BAD_REWARD, ""
        cut = not terminated and (truncated or order == CUT)
        return reward, (TERMINATED if terminated else 0) | (TRUNCATED if cut else 0), ""

    def step(self, orders, seeds, actions):
        np, n = self.np, len(self.envs)
        flags = np.zeros(n, np.uint8)
        rewards = np.zeros(n, np.float32)
        last, following = np.zeros((n, self.obs), np.float32), np.zeros((n, self.obs), np.float32)
        wrong = ""
        for i in range(n):
            if orders[i] != ANEW:
                rewards[i], flags[i], why = self.advance(i, orders[i], actions[i], last[i])
                wrong = wrong or why
            following[i] = last[i]
            if orders[i] == ANEW or flags[i]:
                following[i] = self.begin(i, int(seeds[i]))
        return self.frame(flags, rewards, last, following, wrong)

    def gives_up(self, why):
        """The last answer."""
        np, n = self.np, len(self.envs)
        nothing = np.zeros((n, self.obs), np.float32)
        flags = np.full(n, GIVEN_UP, np.uint8)
        return self.frame(flags, np.zeros(n, np.float32), nothing, nothing, why)

    def frame(self, flags, rewards, last, following, wrong):
        message = wrong.encode(errors="replace")[-LONGEST_MESSAGE:]
        parts = [flags.tobytes(), rewards.astype("<f4").tobytes()]
        parts += [last.astype("<f4").tobytes(), following.astype("<f4").tobytes()]
        return b"".join([*parts, struct.pack("<I", len(message)), message])


def main():
    # Ctrl-C is the program's, which closes standard input when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    own_in, out = take_over_standard_streams()
    goes_with(os.getppid())
    request = json.loads(own_in.readline())
    try:
        worker = Worker(request)
        reply = worker.facts
    except ModuleNotFoundError as e:
        # Gymnasium wraps the error of a package that a name asks for.
        missing = e.name or getattr(e.__cause__, "name", None)
        reply = {"error": f"{e}; this is {sys.executable}", "missing": missing}
    except Refused as e:
        reply = {"error": str(e)}
    except BaseException as e:
        # Gymnasium's own errors say all.
        whole = not type(e).__module__.startswith("gymnasium.error")
        reply = {"error": traceback.format_exc().strip() if whole else str(e)}
    out.write(json.dumps(reply).encode() + b"\n")
    out.flush()
    if "error" in reply:
        return
    try:
        serve(worker, own_in, out, request["envs"])
        worker.close()
    except BrokenPipeError:
        # The program is gone; nothing is left to be written at the end either.
        os._exit(0)


def serve(worker, own_in, out, n):
    """Steps until the program ends its input."""
    np = worker.np
    size = n + 4 * n + 4 * n * worker.width
    while True:
        frame = own_in.read(size)
        if len(frame) < size:
            return
        orders = np.frombuffer(frame, np.uint8, n)
        seeds = np.frombuffer(frame, "<u4", n, offset=n)
        actions = np.frombuffer(frame, "<f4", n * worker.width, offset=5 * n)
        try:
            answer, last = worker.step(orders, seeds, actions.reshape(n, worker.width)), False
        except BaseException:
            # No episode can be begun: the program says why.
            answer, last = worker.gives_up(traceback.format_exc()), True
        out.write(answer)
        out.flush()
        if last:
            return


main()
