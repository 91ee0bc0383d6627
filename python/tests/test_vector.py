"""Gymnasium's rules for vector environments."""

import tempfile
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import (
    ClipAction,
    DictInfoToList,
    NormalizeReward,
    RecordEpisodeStatistics,
)

import ostler

GENERIC = {"sim": {"specialize": "off", "threads": 1}}


def make(name="cartpole", num_envs=8, **options):
    return ostler.make_vec(name, num_envs, **{**GENERIC, **options})


def steps(env, count, seed=0):
    env.action_space.seed(seed)
    for _ in range(count):
        yield env.step(env.action_space.sample())


def test_spaces_and_shapes_are_those_of_gymnasium():
    for name in ostler.configurations():
        try:
            env = make(name, 5)
        except ValueError as e:
            assert "agents" in str(e), e
            continue
        assert isinstance(env, gymnasium.vector.VectorEnv)
        assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
        obs, info = env.reset(seed=1)
        assert obs in env.observation_space and obs[0] in env.single_observation_space
        assert obs.dtype == np.float32 and info == {}
        for obs, reward, terminated, truncated, info in steps(env, 20):
            assert obs in env.observation_space
            assert reward.shape == terminated.shape == truncated.shape == (5,)
            assert terminated.dtype == truncated.dtype == np.bool_
            assert reward.dtype == np.float32 and np.isfinite(reward).all()
        env.close()


def test_bounds_are_the_robots():
    space = make("half_cheetah").single_action_space
    assert (space.low == -1).all() and (space.high == 1).all() and space.shape == (6,)
    assert make("half_cheetah").single_observation_space.shape == (17,)


def test_the_same_seed_gives_the_same_numbers_and_another_one_others():
    a, b = make("hopper", seed=5), make("hopper")
    first, _ = a.reset()
    again, _ = b.reset(seed=5)
    np.testing.assert_array_equal(first, again)
    for x, y in zip(steps(a, 200), steps(b, 200)):
        for p, q in zip(x[:4], y[:4]):
            np.testing.assert_array_equal(p, q)
    repeated, _ = a.reset(seed=5)
    np.testing.assert_array_equal(first, repeated)
    assert (a.reset(seed=6)[0] != first).any()
    # Without a seed it goes on.
    assert (a.reset()[0] != a.reset()[0]).any()


def test_threads_change_no_bit():
    a = make("ant", 200, sim={"specialize": "off", "threads": 1})
    b = make("ant", 200, sim={"specialize": "off", "threads": 3})
    np.testing.assert_array_equal(a.reset(seed=1)[0], b.reset(seed=1)[0])
    for x, y in zip(steps(a, 30), steps(b, 30)):
        np.testing.assert_array_equal(x[0], y[0])


def test_the_last_observation_is_that_before_the_reset():
    # Of a short episode the same environment without a time-out shows how it would go on.
    short = make("half_cheetah", 3, env={"episode_length_s": 0.5})
    long = make("half_cheetah", 3, env={"episode_length_s": 50.0})
    a, b = short.reset(seed=2)[0], long.reset(seed=2)[0]
    np.testing.assert_array_equal(a, b)
    limit = short.max_episode_steps
    for t, (x, y) in enumerate(zip(steps(short, limit), steps(long, limit)), 1):
        obs, _, terminated, truncated, info = x
        assert not terminated.any() and truncated.all() == (t == limit)
        if t < limit:
            assert info == {}
            np.testing.assert_array_equal(obs, y[0])
    assert info["_final_obs"].all()
    np.testing.assert_array_equal(info["final_obs"], y[0])
    assert (obs != y[0]).any()


def test_an_end_has_its_last_observation_too():
    env = make("cartpole", 64)
    env.reset(seed=0)
    ends = 0
    for obs, reward, terminated, truncated, info in steps(env, 300):
        done = terminated | truncated
        assert bool(info) == bool(done.any())
        if not info:
            continue
        ends += terminated.sum()
        np.testing.assert_array_equal(info["_final_obs"], done)
        # The pole has left its range there, and stands again in the first observation.
        angle = np.abs(info["final_obs"][terminated, 1])
        assert (angle > 0.2).all() and (np.abs(obs[terminated, 1]) < 0.1).all()
        assert (info["final_obs"][~done] == 0).all()
    assert ends > 100


def test_statistics_of_episodes_are_those_of_gymnasiums_wrapper():
    env = make("cartpole", 16, episode_statistics=False)
    wrapped = RecordEpisodeStatistics(env)
    own = make("cartpole", 16)
    wrapped.reset(seed=3), own.reset(seed=3)
    episodes = 0
    for x, y in zip(steps(wrapped, 200), steps(own, 200)):
        a, b = x[4], y[4]
        assert ("episode" in a) == ("episode" in b)
        if "episode" not in a:
            continue
        episodes += a["_episode"].sum()
        np.testing.assert_array_equal(a["_episode"], b["_episode"])
        np.testing.assert_array_equal(a["_episode"], b["_final_info"])
        np.testing.assert_array_equal(a["episode"]["l"], b["episode"]["l"])
        np.testing.assert_allclose(a["episode"]["r"], b["episode"]["r"], rtol=1e-5)
        assert (b["episode"]["t"][b["_episode"]] > 0).all()
    assert episodes > 20
    told = own.statistics()
    assert told["episodes"] == episodes and told["broken"] == 0
    assert set(told["rewards"]) == set(own.facts["rewards"])
    assert own.statistics()["episodes"] == 0


def test_gymnasiums_wrappers_work():
    env = NormalizeReward(ClipAction(make("hopper", 4)))
    env.reset(seed=1)
    for obs, reward, *_ in steps(env, 50):
        assert np.isfinite(obs).all() and np.isfinite(reward).all()
    listed = DictInfoToList(make("cartpole", 4))
    listed.reset(seed=1)
    assert any("final_obs" in one for *_, infos in steps(listed, 100) for one in infos)


def test_arrays_stay_as_they_are_unless_views_are_asked_for():
    env = make("hopper", 4)
    obs, _ = env.reset(seed=1)
    kept = obs.copy()
    for _ in steps(env, 5):
        pass
    np.testing.assert_array_equal(obs, kept)
    views = make("hopper", 4, copy=False)
    views.reset(seed=1)
    seen = [id(obs) for obs, *_ in steps(views, 6)]
    assert len(set(seen)) == 2 and seen[0] == seen[2] != seen[1]
    last, previous = None, None
    for obs, *_ in steps(views, 6):
        # The one before holds until the next step.
        assert previous is None or (last == previous).all()
        last, previous = obs, obs.copy()


def test_groups_are_a_dictionary_on_request():
    env = make("quadruped", 4, observations="dict")
    obs, _ = env.reset(seed=1)
    assert set(obs) == set(env.single_observation_space.spaces) and "policy" in obs
    assert obs in env.observation_space
    plain, _ = make("quadruped", 4).reset(seed=1)
    np.testing.assert_array_equal(obs["policy"], plain)


def test_a_state_goes_on_with_the_same_bits():
    env = make("ant", 6)
    env.reset(seed=1)
    for _ in steps(env, 10):
        pass
    state = env.capture()
    first = [x[:4] for x in steps(env, 30)]
    env.restore(state)
    for x, y in zip(first, steps(env, 30)):
        for p, q in zip(x, y):
            np.testing.assert_array_equal(p, q)


def test_dlpack_shares_the_memory():
    obs, _ = make("hopper", 4).reset(seed=1)
    shared = np.from_dlpack(obs)
    assert shared.ctypes.data == obs.ctypes.data


def test_an_environment_that_breaks_is_cut_and_said():
    env = make("half_cheetah", 4, sim={**GENERIC["sim"], "max_speed": 8.0})
    env.reset(seed=1)
    broke = 0
    for obs, reward, terminated, truncated, info in steps(env, 300):
        assert np.isfinite(obs).all() and np.isfinite(reward).all()
        if "broken" in info:
            broken = info["broken"]
            broke += broken.sum()
            assert truncated[broken].all() and not terminated[broken].any()
            assert (reward[broken] == 0).all()
            assert np.isfinite(info["final_obs"]).all()
    told = env.statistics()
    assert broke > 0 and told["broken"] == broke and sum(told["causes"].values()) == broke


def test_a_task_with_events_has_a_kernel_of_its_own():
    base = Path(__file__).parents[2] / "configs/quadruped.toml"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "varied.toml"
        path.write_text(
            f'extends = "{base}"\n[[task.event]]\nname = "heavy"\nwhen = "startup"\n'
            'set = "mass(trunk)"\noperation = "scale"\nrange = [0.8, 1.2]\n'
        )
        for specialize in ("wait", "off"):
            env = make(str(path), 4, sim={"specialize": specialize})
            env.reset(seed=1)
            for _ in range(3):
                env.step(np.zeros(env.action_space.shape, np.float32))
