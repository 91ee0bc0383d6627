"""Mistakes are exceptions, in the words of the program."""

import os
import re
import resource
import shutil
import tempfile
import threading
from pathlib import Path

import gymnasium
import numpy as np

import ostler

GENERIC = {"sim": {"specialize": "off", "threads": 1}}


def raises(kind, words, call):
    try:
        call()
    except kind as e:
        assert re.search(words, str(e), re.S), f"{e!s} has not {words!r}"
        return e
    except BaseException as e:  # noqa: BLE001
        raise AssertionError(f"{type(e)}: {e}") from e
    raise AssertionError(f"no {kind.__name__}")


def make(name="cartpole", num_envs=4, **options):
    return ostler.make_vec(name, num_envs, **{**GENERIC, **options})


def changed(old, new):
    """A copy of a configuration with another text, beside its robots."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(ostler.find("hopper").parent / "robots", folder / "robots")
    text = ostler.find("hopper").read_text()
    assert old in text
    path = folder / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    return path


def test_a_mistake_in_a_file_has_its_line_and_a_guess():
    path = changed("decimation", "decimatoin")
    words = r'mine\.toml:\d+:\d+: unknown key "decimatoin"'
    e = raises(ostler.ConfigError, words, lambda: make(path))
    assert "did you mean env.decimation?" in str(e) and isinstance(e, ValueError)
    assert "^^^^" in str(e)
    path = changed("[env]", "[evn]")
    raises(ostler.ConfigError, 'unknown key "evn".*did you mean env', lambda: make(path))
    path = changed('robot = "', 'robot = "no')
    raises(ostler.RobotError, "no", lambda: make(path))


def test_tables_of_learners_are_left_aside_but_cannot_be_set():
    path = changed("[runner]", "[runner]\nno_such_key = 3")
    make(path).close()
    raises(ostler.ConfigError, '"ppo" is not the simulation', lambda: make(**{"ppo.gamma": 0.9}))


def test_other_libraries_names_are_known():
    path = changed("num_envs", "num_actors")
    raises(ostler.ConfigError, "num_actors is called env.num_envs here", lambda: make(path))


def test_overrides_are_checked_like_the_file():
    raises(ostler.ConfigError, r"override.*env\.num_envs.*0 environments", lambda: make(num_envs=0))
    raises(ostler.ConfigError, "did you mean", lambda: make(env={"decimaton": 3}))
    raises(ostler.ConfigError, "no profile", lambda: make(profile="nothing"))
    raises(TypeError, "env.decimation=None", lambda: make(env={"decimation": None}))
    raises(TypeError, "values of object", lambda: make(env={"decimation": object()}))
    raises(TypeError, "whole number", lambda: make(num_envs=2.5))
    assert make(env={"decimation": np.int64(2)}).step_dt > 0


def test_names_are_guessed():
    raises(ostler.ConfigError, 'did you mean "half_cheetah"', lambda: make("half_cheeta"))
    raises(ostler.ConfigError, "no such file", lambda: make("nowhere/x.toml"))


def test_what_it_cannot_do_is_said():
    raises(ValueError, '"cpu", "cuda" or "cuda:N"', lambda: make(device="tpu"))
    raises(ostler.ConfigError, "processor", lambda: make(sim={"device": "cuda"}))
    raises(ValueError, "agents", lambda: make("spread"))
    raises(ValueError, '"policy" or "dict"', lambda: make(observations="all"))


def test_more_than_memory_holds_is_a_memory_error():
    limit = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), limit[1]))
    try:
        raises(MemoryError, "memory", lambda: make("ant", 1 << 21))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    make("ant").close()


def test_wrong_actions_are_exceptions_and_change_nothing():
    env, twin = make("hopper"), make("hopper")
    env.reset(seed=1), twin.reset(seed=1)
    good = np.linspace(-0.5, 0.5, 12, dtype=np.float32).reshape(4, 3)
    bad = good.copy()
    bad[2, 1] = np.nan
    raises(ValueError, r"actions\[2, 1\] is NaN", lambda: env.step(bad))
    bad[2, 1] = -np.inf
    raises(ValueError, r"actions\[2, 1\] is -inf", lambda: env.step(bad))
    raises(ValueError, r"shape \(4, 3\), these have \(4, 2\)", lambda: env.step(good[:, :2]))
    raises(ValueError, r"these have \(12,\)", lambda: env.step(good.ravel()))
    raises(TypeError, "bool", lambda: env.step(good > 0))
    raises(TypeError, "complex", lambda: env.step(good.astype(complex)))
    raises(TypeError, "<U|str|object", lambda: env.step([["a"] * 3] * 4))
    raises((TypeError, ValueError), "object|inhomogeneous", lambda: env.step([[1], [2, 3]]))
    for actions in (good, good.astype(np.float64), np.asfortranarray(good), good.tolist()):
        np.testing.assert_array_equal(env.step(actions)[0], twin.step(good)[0])


def test_the_order_of_calls_is_checked():
    env = make()
    raises(gymnasium.error.ResetNeeded, "reset", lambda: env.step(np.zeros((4, 1))))
    env.reset()
    raises(ValueError, "options", lambda: env.reset(options={"x": 1}))
    raises(TypeError, "one seed", lambda: env.reset(seed=[1, 2, 3, 4]))
    raises(ValueError, "2\\*\\*63", lambda: env.reset(seed=-1))
    env.close()
    env.close()
    raises(ostler.StateError, "closed", lambda: env.reset())


def test_a_foreign_state_is_refused_and_nothing_changes():
    env, twin = make("hopper"), make("hopper")
    env.reset(seed=1), twin.reset(seed=1)
    other = make("ant")
    other.reset()
    raises(ostler.StateError, "", lambda: env.restore(other.capture()))
    raises(ostler.StateError, "", lambda: env.restore(b"nothing"))
    seeded = make("hopper")
    seeded.reset(seed=5)
    raises(ostler.StateError, "made with seed = 5", lambda: env.restore(seeded.capture()))
    actions = np.zeros((4, 3), np.float32)
    np.testing.assert_array_equal(env.step(actions)[0], twin.step(actions)[0])


def test_two_threads_are_told_apart():
    env = make("ant", 4096)
    env.reset()
    actions = np.zeros(env.action_space.shape, np.float32)
    said = []

    def work():
        for _ in range(40):
            try:
                env.step(actions)
            except ostler.StateError as e:
                said.append(str(e))

    threads = [threading.Thread(target=work) for _ in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert said and all("another thread" in text for text in said)


def test_a_forked_process_is_told():
    env = make()
    env.reset()
    child = os.fork()
    if child == 0:
        try:
            env.reset()
            os._exit(1)
        except ostler.StateError as e:
            os._exit(0 if "another process" in str(e) else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    env.reset()


def test_a_device_is_no_manifest_and_no_metrics():
    from ostler.policy_files import manifest
    from ostler.training import Run

    with tempfile.TemporaryDirectory() as folder:
        for name in ("policy.json", "metrics.jsonl"):
            (Path(folder) / name).symlink_to("/dev/zero")
        about = Path(folder) / "policy.json"
        raises(ValueError, "policy.json is no regular file", lambda: manifest(about, about))
        (Path(folder) / "config.toml").touch()
        raises(ValueError, "metrics.jsonl is no regular file", lambda: Run(folder).metrics)
