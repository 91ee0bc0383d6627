"""Several agents in one environment: dictionaries by agent."""

import re
import shutil
import tempfile
from pathlib import Path

import gymnasium
import numpy as np

import ostler

GENERIC = {"sim": {"specialize": "off", "threads": 1}}
TASKS = {
    "spread": ["a", "b", "c"],
    "ant_sumo": ["red", "blue"],
    "half_cheetah_legs": ["back", "front"],
}


def make(name="spread", num_envs=4, **options):
    return ostler.make_marl(name, num_envs, **{**GENERIC, **options})


def sample(env, seed):
    """The same actions for the same seed."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.uniform(-1, 1, space.shape).astype(np.float32)
        for name, space in env.batched_action_spaces.items()
    }


def steps(env, count):
    for t in range(count):
        yield env.step(sample(env, t))


def raises(kind, words, call):
    try:
        call()
    except kind as e:
        assert re.search(words, str(e), re.S), f"{e!s} has not {words!r}"
        return
    raise AssertionError(f"no {kind.__name__}")


def unequal():
    """Two legs of which the front one sees, does and knows less."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(ostler.find("half_cheetah_legs").parent / "robots", folder / "robots")
    text = ostler.find("half_cheetah_legs").read_text()
    alike = '[[task.action]]\nactuators = ["{agent}_*"]\n'
    assert alike in text
    other = (
        '[[task.action]]\nactuators = ["back_*", "front_foot"]\nagents = ["back"]\n\n'
        '[[task.action]]\nactuators = ["front_thigh", "front_shin"]\nagents = ["front"]\n\n'
        '[[task.observation]]\nname = "feet"\nexpr = "[1.5, 2.5]"\nagents = ["back"]\n\n'
        '[[task.observation]]\nname = "hidden"\nexpr = "joint_pos(\\"{agent}_foot\\")"\n'
        'group = "critic"\n\n'
        '[[task.observation]]\nname = "spare"\nexpr = "qvel[0:2]"\ngroup = "teacher"\n\n'
    )
    path = folder / "unequal.toml"
    path.write_text(text.replace(alike, other, 1))
    return path


def test_dictionaries_have_every_agents_arrays():
    for task, names in TASKS.items():
        env = make(task, 5)
        assert env.possible_agents == env.agents == names
        assert env.num_agents == env.max_num_agents == len(names) and env.num_envs == 5
        assert env.unwrapped is env and env.action_space(names[0]) is env.action_spaces[names[0]]
        obs, infos = env.reset(seed=1)
        assert list(obs) == names and infos == {name: {} for name in names}
        for obs, reward, terminated, truncated, infos in steps(env, 10):
            for told in (obs, reward, terminated, truncated, infos):
                assert list(told) == names
            for name in names:
                assert obs[name] in env.batched_observation_spaces[name]
                assert obs[name][0] in env.observation_spaces[name]
                assert obs[name].dtype == reward[name].dtype == np.float32
                assert reward[name].shape == terminated[name].shape == (5,)
                assert terminated[name].dtype == truncated[name].dtype == np.bool_
            assert env.state() in gymnasium.vector.utils.batch_space(env.state_space, 5)
        env.close()


def test_one_agent_is_told_from_several():
    raises(
        ValueError, r"cartpole.toml has no \[agents\]: ostler.make_vec", lambda: make("cartpole")
    )
    raises(ValueError, "agents a, b, c: ostler.make_marl", lambda: ostler.make_vec("spread", 2))
    raises(ValueError, '"policy" or "dict"', lambda: make(observations="all"))


def test_agents_of_one_policy_can_be_rows():
    for task, names in TASKS.items():
        by, rows = make(task, 7), ostler.make_vec(task, 7, agents="rows", **GENERIC)
        assert rows.num_envs == 7 * len(names)
        assert rows.single_action_space == by.action_spaces[names[0]]
        seen, _ = by.reset(seed=3)
        flat, _ = rows.reset(seed=3)
        interleave = lambda told: np.stack(list(told.values()), axis=1).reshape(rows.num_envs, -1)  # noqa: E731
        np.testing.assert_array_equal(interleave(seen), flat)
        ended = 0
        for t in range(160):
            actions = sample(by, t)
            x, y = by.step(actions), rows.step(interleave(actions))
            for p, q in zip(x[:4], y[:4]):
                np.testing.assert_array_equal(interleave(p), q.reshape(rows.num_envs, -1))
            first = x[4][names[0]]
            assert ("episode" in first) == ("episode" in y[4])
            if "episode" in first:
                ended += 1
                for key in ("r", "l"):
                    column = {a: x[4][a]["episode"][key] for a in names}
                    np.testing.assert_array_equal(interleave(column)[:, 0], y[4]["episode"][key])
                last = {a: x[4][a]["final_obs"] for a in names}
                np.testing.assert_array_equal(interleave(last), y[4]["final_obs"])
                assert len(y[4]["episode"]["t"]) == rows.num_envs
        assert ended or task == "half_cheetah_legs"
    raises(
        ValueError,
        "alike.*16.*17|alike.*19.*17",
        lambda: ostler.make_vec(unequal(), 2, agents="rows", **GENERIC),
    )
    raises(ValueError, 'None or "rows"', lambda: ostler.make_vec("spread", 2, agents="all"))


def test_ends_have_last_observations_and_returns_by_agent():
    env = make("spread", 3, env={"episode_length_s": 0.5})
    env.reset(seed=1)
    limit = env.max_episode_steps
    sums = {name: np.zeros(3, np.float32) for name in env.agents}
    for t, (obs, reward, terminated, truncated, infos) in enumerate(steps(env, 2 * limit), 1):
        for name in env.agents:
            sums[name] += reward[name]
        if t % limit:
            assert infos == {name: {} for name in env.agents}
            continue
        for name in env.agents:
            info = infos[name]
            assert truncated[name].all() and not terminated[name].any()
            assert info["_final_obs"].all() and info["_episode"].all()
            assert (info["final_obs"] != obs[name]).any() and "broken" not in info
            assert info["final_obs"] in env.batched_observation_spaces[name]
            np.testing.assert_allclose(info["episode"]["r"], sums[name], rtol=1e-5)
            assert (info["episode"]["l"] == limit).all() and (info["episode"]["t"] > 0).all()
            sums[name][:] = 0
        # The agents' rewards differ by whom they bump into.
        last = np.concatenate([infos[name]["final_obs"] for name in env.agents], axis=1)
        np.testing.assert_array_equal(infos["a"]["final_state"], last)
    told = env.statistics()
    assert told["episodes"] == 6 and set(told["agents"]) == {"a", "b", "c"}
    assert np.isclose(np.mean(list(told["agents"].values())), told["return"])
    assert "a/bump" in told["rewards"] and "goal_1" in told["rewards"]


def test_an_agent_that_loses_has_another_return_than_the_other():
    env = make("ant_sumo", 16)
    env.reset(seed=1)
    ended, differ = 0, 0
    for obs, reward, terminated, truncated, infos in steps(env, 300):
        np.testing.assert_array_equal(terminated["red"], terminated["blue"])
        if "episode" in infos["red"]:
            mask = infos["red"]["_episode"]
            np.testing.assert_array_equal(mask, terminated["red"] | truncated["red"])
            red, blue = (infos[name]["episode"]["r"] for name in ("red", "blue"))
            ended += mask.sum()
            differ += (red != blue).sum()
            assert (red[~mask] == 0).all()
    assert ended > 5 and differ > 5
    told = env.statistics()["agents"]
    assert told["red"] != told["blue"]


def test_state_is_what_critics_see():
    # All observations, which have no noise here, with a critic of all ...
    env = make("spread", 3)
    obs, _ = env.reset(seed=1)
    np.testing.assert_array_equal(env.state(), np.concatenate(list(obs.values()), axis=1))
    assert env.state_space.shape == env.state().shape[1:]
    # ... and without one.
    env = make("half_cheetah_legs", 3)
    obs, _ = env.reset(seed=1)
    np.testing.assert_array_equal(env.state(), np.concatenate(list(obs.values()), axis=1))
    # What critics alone see follows each agent's own.
    env = make(unequal(), 3, observations="dict")
    obs, _ = env.reset(seed=1)
    both = np.concatenate([obs[name]["critic"] for name in ("back", "front")], axis=1)
    np.testing.assert_array_equal(env.state(), both)
    assert both.shape[1] == env.state_space.shape[0] == 19 + 1 + 17 + 1
    fresh = make()
    raises(gymnasium.error.ResetNeeded, "reset", fresh.state)


def test_agents_may_see_and_do_different_things():
    env, twin = make(unequal(), 4), make("half_cheetah_legs", 4)
    assert [env.observation_spaces[a].shape for a in env.agents] == [(19,), (17,)]
    assert [env.action_spaces[a].shape for a in env.agents] == [(4,), (2,)]
    obs, _ = env.reset(seed=1)
    same, _ = twin.reset(seed=1)
    for t in range(50):
        assert (obs["back"][:, :2] == [1.5, 2.5]).all()
        for name in env.agents:
            np.testing.assert_array_equal(obs[name][:, -17:], same[name])
        back, front = sample(twin, t).values()
        obs = env.step({"front": front[:, :2], "back": np.hstack([back, front[:, 2:]])})[0]
        same = twin.step({"back": back, "front": front})[0]
    groups, _ = make(unequal(), 4, observations="dict").reset(seed=1)
    assert set(groups["back"]) == {"policy", "critic", "teacher"}
    assert [groups[a]["critic"].shape[1] for a in env.agents] == [20, 18]
    assert groups["front"]["teacher"].shape == (4, 2)


def test_wrong_actions_are_exceptions_and_change_nothing():
    env, twin = make(), make()
    raises(gymnasium.error.ResetNeeded, "reset", lambda: env.step(sample(env, 0)))
    env.reset(seed=1), twin.reset(seed=1)
    good = sample(env, 1)

    def wrong(kind, words, **changed):
        raises(kind, words, lambda: env.step({**good, **changed}))

    nan, late = good["b"].copy(), good["c"].copy()
    nan[2, 1], late[3, 0] = np.nan, np.inf
    wrong(ValueError, r'actions\["b"\]\[2, 1\] is NaN', b=nan)
    wrong(ValueError, r'actions\["c"\]\[3, 0\] is inf', c=late)
    wrong(ValueError, r'actions\["c"\].*shape \(4, 2\), these have \(4, 1\)', c=good["c"][:, :1])
    wrong(ValueError, r"these have \(3, 2\)", a=good["a"][:3])
    wrong(ValueError, r"these have \(8,\)", a=good["a"].ravel())
    wrong(TypeError, r'actions\["a"\] are numbers.*bool', a=good["a"] > 0)
    wrong(TypeError, "complex", a=good["a"].astype(complex))
    wrong(ValueError, "no agent is called 'd'; agents are a, b, c", d=good["a"])
    raises(ValueError, "of b, c are missing", lambda: env.step({"a": good["a"]}))
    raises(TypeError, "dictionary by agent", lambda: env.step(good["a"]))
    raises(TypeError, "dictionary by agent", lambda: env.step(list(good.values())))
    raises(ValueError, 'did you mean "red"', lambda: sumo_step(make("ant_sumo", 1)))
    raises(ValueError, "options", lambda: env.reset(options={"x": 1}))
    raises(TypeError, "one seed", lambda: env.reset(seed=[1, 2]))
    # Of any kind of numbers, in any order of memory and of agents.
    kinds = (np.float32, np.float64, np.asfortranarray, np.ndarray.tolist)
    for kind in kinds:
        given = {name: kind(good[name]) for name in ("c", "a", "b")}
        x, y = env.step(given)[0], twin.step(good)[0]
        for name in env.agents:
            np.testing.assert_array_equal(x[name], y[name])


def sumo_step(env):
    env.reset()
    env.step({"rad": 0, "blue": 0})


def test_agents_may_choose():
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(ostler.find("spread").parent / "robots", folder / "robots")
    text = ostler.find("spread").read_text()
    forces = 'actuators = ["{agent}_*"]\n'
    assert forces in text
    choices = 'kind = "discrete"\nchoices = [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]\n'
    path = folder / "choices.toml"
    path.write_text(text.replace(forces, forces + choices, 1))
    env, twin = make(path, 3), make("spread", 3)
    assert env.action_spaces["a"] == gymnasium.spaces.Discrete(5)
    env.reset(seed=1), twin.reset(seed=1)
    table = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)
    rows = ostler.make_vec(path, 3, agents="rows", **GENERIC)
    rows.reset(seed=1)
    for t in range(20):
        chosen = {name: (np.arange(3) + t + k) % 5 for k, name in enumerate("abc")}
        x, y = env.step(chosen), twin.step({name: table[i] for name, i in chosen.items()})
        z = rows.step(np.stack(list(chosen.values()), axis=1).ravel())
        for m, name in enumerate("abc"):
            np.testing.assert_array_equal(x[0][name], y[0][name])
            np.testing.assert_array_equal(x[0][name], z[0][m::3])
    wrong = {**chosen, "b": np.array([0, 5, 1])}
    raises(ValueError, r'actions\["b"\]\[1\] is 5, choices are 0 to 4', lambda: env.step(wrong))
    halves = {**chosen, "b": np.array([0.5, 0, 1])}
    raises(TypeError, r'actions\["b"\] are whole numbers', lambda: env.step(halves))


def test_seeds_threads_and_states_give_the_same_bits():
    alike = lambda x, y: all(np.array_equal(x[a], y[a]) for a in x)  # noqa: E731
    one = make("ant_sumo", 70, sim={"specialize": "off", "threads": 1})
    two = make("ant_sumo", 70, sim={"specialize": "off", "threads": 2}, seed=5)
    first, _ = one.reset(seed=5)
    assert alike(first, two.reset()[0])
    for x, y in zip(steps(one, 30), steps(two, 30)):
        assert all(alike(p, q) for p, q in zip(x[:4], y[:4]))
    state = one.capture()
    after = [x[:4] for x in steps(one, 30)]
    one.restore(state)
    raises(gymnasium.error.ResetNeeded, "first state", one.state)
    for x, y in zip(after, steps(one, 30)):
        assert all(alike(p, q) for p, q in zip(x, y))
    assert alike(first, one.reset(seed=5)[0]) and not alike(first, one.reset(seed=6)[0])


def test_arrays_are_views_and_stay_unless_asked_otherwise():
    env = make("spread", 4)
    obs, _ = env.reset(seed=1)
    kept = {name: rows.copy() for name, rows in obs.items()}
    for _ in steps(env, 4):
        pass
    assert all(np.array_equal(obs[name], kept[name]) for name in kept)
    # One array for all agents, which nobody has copied.
    assert obs["a"].base is not None and not obs["a"].flags.owndata
    assert obs["b"].ctypes.data - obs["a"].ctypes.data == 4 * obs["a"].shape[1]
    assert np.from_dlpack(obs["b"]).ctypes.data == obs["b"].ctypes.data
    views = make("spread", 4, copy=False)
    views.reset(seed=1)
    at = [obs["a"].ctypes.data for obs, *_ in steps(views, 6)]
    assert len(set(at)) == 2 and at[0] == at[2] != at[1]


def test_an_environment_that_breaks_is_cut_for_all_its_agents():
    env = make("half_cheetah_legs", 4, sim={**GENERIC["sim"], "max_speed": 8.0})
    env.reset(seed=1)
    broke = 0
    for obs, reward, terminated, truncated, infos in steps(env, 300):
        for name in env.agents:
            assert np.isfinite(obs[name]).all() and np.isfinite(reward[name]).all()
            if "broken" in infos[name]:
                broken = infos[name]["broken"]
                broke += broken.sum()
                assert truncated[name][broken].all() and not terminated[name][broken].any()
                assert (reward[name][broken] == 0).all()
                assert np.isfinite(infos[name]["final_obs"]).all()
    assert broke > 0 and env.statistics()["broken"] == broke / 2


def test_what_is_closed_says_so():
    env = make()
    env.reset()
    env.close()
    env.close()
    raises(ostler.StateError, "closed", lambda: env.step(sample(env, 0)))
