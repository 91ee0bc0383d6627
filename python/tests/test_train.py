"""Trainings by the program, and what they leave, as Python sees them."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import ostler
import ostler.program

SMALL = {
    "sim": {"specialize": "off", "threads": 1},
    "learner.threads": 1,
    "env.num_envs": 16,
    "actor.hidden_dims": [16, 16],
    "critic.hidden_dims": [16, 16],
}


def raises(kind, words, call):
    try:
        call()
    except kind as e:
        assert words in str(e), f"{e!s} has not {words!r}"
        return e
    except BaseException as e:  # noqa: BLE001
        raise AssertionError(f"{type(e)}: {e}") from e
    raise AssertionError(f"no {kind.__name__}")


def folder():
    return Path(tempfile.mkdtemp()) / "run"


def small(config="cartpole", iterations=4, callback=None, **options):
    options = {**SMALL, **options, "runner.max_iterations": iterations}
    options.setdefault("out", folder())
    return ostler.train(config, callback, **options)


def test_a_run_calls_back_for_every_iteration_and_is_found_again():
    seen = []
    run = small(callback=seen.append)
    assert [line["iteration"] for line in seen] == [1, 2, 3, 4]
    assert run.metrics == seen
    assert run.best.is_file()
    assert ostler.Run(run.folder).metrics == seen
    more = []
    again = ostler.train(
        callback=more.append, resume=run.folder, **{"runner.max_iterations": 6}
    )
    assert [line["iteration"] for line in more] == [5, 6]
    assert again.folder == run.folder and len(again.metrics) == 6


def test_a_run_without_a_folder_gets_one_below_runs():
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            first, second = small(out=None, iterations=1), small(out=None, iterations=1)
        finally:
            os.chdir(here)
    assert first.folder != second.folder
    assert first.folder.parent == Path("runs") / "cartpole"


def test_a_callback_ends_a_run_which_has_saved():
    run = small(callback=lambda line: line["iteration"] < 3, iterations=100_000)
    last = run.metrics[-1]["iteration"]
    assert 3 <= last < 100_000
    newest = max(run.folder.glob("checkpoints/iter_*"))
    assert newest.name == f"iter_{last:08}.safetensors"


def test_an_exception_of_the_callback_ends_the_run_and_is_raised():
    def fail(line):
        raise LookupError("mine")

    out = folder()
    raises(LookupError, "mine", lambda: small(callback=fail, iterations=100_000, out=out))
    assert max(out.glob("checkpoints/iter_*")).is_file()


def test_mistakes_are_in_the_programs_words():
    e = raises(ostler.ConfigError, 'unknown key "gama"', lambda: small(**{"ppo.gama": 0.9}))
    assert "did you mean ppo.gamma?" in str(e)
    raises(ostler.ConfigError, "no configuration is called", lambda: small("cartpol"))
    raises(TypeError, "needs a configuration", ostler.train)
    out = small(iterations=1).folder
    before = (out / "metrics.jsonl").read_bytes()
    raises(ostler.ConfigError, str(out), lambda: small(out=out))
    assert (out / "metrics.jsonl").read_bytes() == before
    e = raises(
        ostler.ProgramError,
        "environments",
        lambda: small(
            iterations=3,
            **{
                "fault.inject": ["fail allocation phase=update iteration=2"],
                "back_off.min_num_envs": 16,
            },
        ),
    )
    assert e.code == 1


def test_without_the_program_python_says_what_to_install():
    program = os.environ.pop("OSTLER_PROGRAM")
    try:
        raises(ImportError, "OSTLER_PROGRAM", small)
        os.environ["OSTLER_PROGRAM"] = "/nowhere/ostler"
        raises(ImportError, "/nowhere/ostler is no program", small)
    finally:
        os.environ["OSTLER_PROGRAM"] = program


def test_control_c_saves_and_leaves_nothing_behind():
    out = folder()
    text = (
        "import json, ostler, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "out, options = json.loads(sys.argv[1])\n"
        "say = lambda line: print(line['iteration'], flush=True)\n"
        "try:\n"
        "    ostler.train('cartpole', say, out=out, **options)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    options = json.dumps([str(out), {**SMALL, "runner.max_iterations": 1_000_000}])
    process = subprocess.Popen(
        [sys.executable, "-c", text, options], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "1\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert said.endswith("interrupted\n") and process.returncode == 0
    assert max(out.glob("checkpoints/iter_*")).is_file()
    # The lock goes with the process that has it.
    assert ostler.train(resume=out, **{"runner.max_iterations": 1_000_000}, max_time=1).metrics


def test_a_policy_acts_as_the_program_does():
    run = small("quadruped", iterations=2)
    policy = run.policy()
    steps = policy.manifest["test_vectors"]["steps"]
    for step in steps:
        if step["first"]:
            policy.reset()
        obs = np.array([step["obs"]], np.float32)
        actions, controls = policy.act_raw(obs)
        assert np.abs(actions[0] - step["actions"]).max() < 1e-5
        assert np.abs(controls[0] - step["controls"]).max() < 1e-5
    # Rows of environments have been scaled.
    env = ostler.make_vec("quadruped", 8, sim=SMALL["sim"])
    obs, _ = env.reset(seed=1)
    actions = policy_of(run)(obs)
    assert actions.shape == env.action_space.shape and actions.dtype == np.float32
    raw = obs / np.concatenate([t["scale"] for t in policy.manifest["observations"]])
    other, _ = policy_of(run).act_raw(raw.astype(np.float32))
    assert np.abs(actions - other).max() < 1e-5
    raises(ValueError, "[N, 48] is expected", lambda: policy(obs[:, :5]))


def policy_of(run):
    return ostler.Policy(run.folder)


def test_rows_remember_and_forget_each_for_itself():
    config = Path(tempfile.mkdtemp()) / "mine.toml"
    os.symlink(ostler.find("double_pendulum_positions").parent / "robots", config.parent / "robots")
    text = ostler.find("double_pendulum_positions").read_text()
    config.write_text(text)
    run = small(config, iterations=2)
    one = run.policy()
    width = one.observation_width
    rng = np.random.default_rng(1)
    seen = rng.normal(size=(6, 3, width)).astype(np.float32)
    whole = [one(obs) for obs in seen]
    other = run.policy()
    for t, obs in enumerate(seen[:3]):
        assert np.array_equal(other(obs), whole[t])
    other.reset(np.array([True, False, False]))
    after = other(seen[3])
    assert np.array_equal(after[1:], whole[3][1:])
    assert not np.array_equal(after[0], whole[3][0])
    fresh = run.policy()
    assert np.allclose(after[0], fresh(seen[3])[0], atol=1e-6)
    raises(ValueError, "another number of them", lambda: other(seen[0][:2]))
    other.reset()
    assert np.array_equal(other(seen[0]), whole[0])


def test_files_that_are_no_policies_are_exceptions():
    run = small(iterations=1)
    place = Path(tempfile.mkdtemp())
    ostler.program.run("export", run.folder, "--format", "onnx", "--out", place, "--name", "p")
    assert ostler.Policy(place / "p.onnx")(np.zeros((2, 4), np.float32)).shape == (2, 1)
    good, about = (place / "p.onnx").read_bytes(), (place / "p.json").read_text()
    for name, text in [("cut", about[:200]), ("list", "[]"), ("empty", "{}")]:
        (place / f"{name}.onnx").write_bytes(good)
        (place / f"{name}.json").write_text(text)
        raises(ValueError, f"{name}.json", lambda: ostler.Policy(place / f"{name}.onnx"))
    raises(ValueError, "is a manifest", lambda: ostler.Policy(place / "p.json"))
    (place / "p.onnx").write_bytes(good[: len(good) // 2])
    raises(ValueError, "is no policy", lambda: ostler.Policy(place / "p.onnx"))
    (place / "p.json").unlink()
    raises(ValueError, "p.json is not there", lambda: ostler.Policy(place / "p.onnx"))
    raises(ostler.ConfigError, "is not a run", lambda: ostler.Policy(place / "nothing"))


#: What somebody may write in the place of any value.
ODD = [
    *(None, True, False, 0, 1, -1, 2, 1 << 40, 10**400, 0.5, -1e300, 1e-300, float("nan")),
    *(float("inf"), "", "obs", [], [[]], {}, {"a": 1}, ["N", 1]),
]


def places_in(value, path=()):
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        yield (*path, key)
        yield from places_in(value[key], (*path, key))


def changed(rng, manifest):
    """The text of a manifest in which something is missing, odd, or another of its values; or cut."""
    every = list(places_in(manifest))

    def within(value, path):
        for key in path:
            value = value[key]
        return value

    text = json.dumps(manifest)
    value = json.loads(text)
    *path, key = rng.choice(every)
    kind = rng.randrange(4)
    if kind == 0:
        del within(value, path)[key]
    elif kind == 1:
        within(value, path)[key] = rng.choice(ODD)
    elif kind == 2:
        within(value, path)[key] = within(manifest, rng.choice(every))
    text = json.dumps(value)
    return text[: rng.randrange(len(text))] if kind == 3 else text


def test_damaged_manifests_are_value_errors_that_name_the_file():
    # It remembers in all ways: earlier values and hidden states.
    config = Path(tempfile.mkdtemp()) / "mine.toml"
    os.symlink(ostler.find("double_pendulum_positions").parent / "robots", config.parent / "robots")
    text = ostler.find("double_pendulum_positions").read_text()
    config.write_text(text.replace("[[task.observation]]", "[[task.observation]]\nhistory = 2", 1))
    run = small(config, iterations=1)
    place = Path(tempfile.mkdtemp())
    ostler.program.run("export", run.folder, "--format", "onnx", "--out", place, "--name", "p")
    manifest = json.loads((place / "p.json").read_text())
    del manifest["test_vectors"]
    width = manifest["observation_width"]
    assert len(manifest["inputs"]) == 4
    rng, refused = random.Random(1), 0
    for _ in range(1500):
        (place / "p.json").write_text(changed(rng, manifest))
        try:
            policy = ostler.Policy(place / "p.onnx")
        except ValueError as e:
            assert str(place / "p.") in str(e), e
            refused += 1
        else:
            # It was of no account.
            assert np.isfinite(policy(np.zeros((2, width), np.float32))).all()
    assert 300 < refused < 1400, refused
    for name, value, why in [
        ("version", 2, "version is 2, 1 is known"),
        ("format", "onnx", 'says no "format"'),
        ("observation_width", 1, "observations["),
        ("controls", manifest["controls"] * 2, "another width than there are controls"),
    ]:
        (place / "p.json").write_text(json.dumps({**manifest, name: value}))
        raises(ValueError, why, lambda: ostler.Policy(place / "p.onnx"))


def test_a_file_of_another_policy_is_refused():
    place = Path(tempfile.mkdtemp())
    for name in ("cartpole", "half_cheetah"):
        run = small(name, iterations=1)
        ostler.program.run("export", run.folder, "--format", "onnx", "--out", place, "--name", name)
    os.replace(place / "half_cheetah.json", place / "cartpole.json")
    e = raises(ValueError, "another policy than cartpole.json says", lambda: ostler.Policy(place / "cartpole.onnx"))
    assert "not [N, 17]" in str(e), e
    (place / "cartpole.onnx").unlink()
    raises(ValueError, "cartpole.onnx is not there", lambda: ostler.Policy(place / "cartpole.onnx"))


def test_a_file_is_of_the_agent_that_is_asked_for():
    run = small("half_cheetah_legs", iterations=1)
    place = Path(tempfile.mkdtemp())
    agent = "back"
    ostler.program.run("export", run.folder, "--agent", agent, "--out", place, "--name", "p")
    assert ostler.Policy(place / "p.onnx", agent=agent).manifest["agent"] == agent
    raises(ValueError, f'the policy of agent "{agent}", not of "front"', lambda: ostler.Policy(place / "p.onnx", agent="front"))
    run = small(iterations=1)
    ostler.program.run("export", run.folder, "--out", place, "--name", "q")
    raises(ValueError, "of a task without agents", lambda: ostler.Policy(place / "q.onnx", agent=agent))


def test_a_run_whose_process_dies_loses_no_iteration():
    seen = []
    faults = ["kill phase=update iteration=8", "kill phase=update iteration=11"]
    options = {"fault.inject": faults, "runner.save_interval": 5}
    run = small(callback=seen.append, iterations=14, **options)
    told = [line["iteration"] for line in seen]
    assert set(told) == set(range(1, 15)), told
    # What was done again came again.
    assert {line["iteration"]: line for line in seen} == {
        line["iteration"]: line for line in run.metrics
    }


def test_metrics_that_are_written_anew_are_read_anew():
    from ostler.training import _Metrics

    place = Path(tempfile.mkdtemp())
    file, metrics = place / "metrics.jsonl", _Metrics(place)

    def told(text):
        file.write_text(text)
        return [line["i"] for line in metrics.new()]

    assert told('{"i": 1}\n{"i": 2}\n{"i": 3}\n{"i') == [1, 2, 3]
    assert told('{"i": 1}\n{"i": 2}\n{"i": 3}\n{"i": 4}\n') == [4]
    # Cut back; written anew with lines of other lengths, up to beyond where it was.
    assert told('{"i": 1}\n') == []
    assert told('{"i": 1}\n{"i":  22}\n{"i": 33}\n') == [22, 33]
    assert told('{"i": 1}\n{"i":  22}\n{"i":    333}\n{"i": 44}\n{"i": 55}\n') == [333, 44, 55]
