"""What Gymnasium's own tests of vector environments and of its checker ask, asked of Ostler's."""

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import (
    check_env,
    check_space_limit,
    data_equivalence,
    data_shares_objects,
)
from gymnasium.utils.passive_env_checker import check_action_space, check_observation_space
from gymnasium.vector import VectorWrapper
from gymnasium.wrappers import vector as wrappers

import ostler

GENERIC = {"sim": {"specialize": "off", "threads": 1}}
NAMES = ["cartpole", "hopper", "half_cheetah", "quadruped"]


def make(name="hopper", num_envs=3, **options):
    return ostler.make_vec(name, num_envs, **{**GENERIC, **options})


def steps(env, count, seed=0):
    env.action_space.seed(seed)
    for _ in range(count):
        yield env.step(env.action_space.sample())


def raises(kind, words, call):
    try:
        call()
    except kind as e:
        assert words in str(e), f"{e!s} has not {words!r}"
        return
    raise AssertionError(f"no {kind.__name__}")


class One(gymnasium.Env):
    """The only environment of a batch, as Gymnasium has single ones."""

    metadata = {"render_modes": []}

    def __init__(self, name, **options):
        self.batch = make(name, 1, **options)
        self.observation_space = self.batch.single_observation_space
        self.action_space = self.batch.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        obs, info = self.batch.reset(seed=seed)
        return obs[0], info

    def step(self, action):
        obs, reward, terminated, truncated, info = self.batch.step(np.asarray(action)[None])
        return obs[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def close(self):
        self.batch.close()


def test_the_checker_of_single_environments_finds_nothing():
    # Spaces, types, the same numbers for the same seed and others for another one, no arrays
    # that are used again.
    for name in NAMES:
        env = One(name)
        check_env(env, skip_render_check=True, skip_close_check=False)
    # It does find what is wrong.
    reused = One("hopper", copy=False)
    raises(AssertionError, "share an object", lambda: check_env(reused, skip_render_check=True))


def test_spaces_are_sound():
    for name in NAMES:
        env = make(name)
        check_action_space(env.single_action_space)
        check_observation_space(env.single_observation_space)
        check_space_limit(env.single_observation_space, "observation")
        assert env.action_space.sample() in env.action_space
        rows = list(gymnasium.vector.utils.iterate(env.action_space, env.action_space.sample()))
        assert len(rows) == 3 and all(row in env.single_action_space for row in rows)


def test_equal_environments_give_equivalent_results():
    # `test_vector_env_equal`: of the two ways to step the same environments.
    one = make("hopper", 4, sim={"specialize": "off", "threads": 1})
    other = make("hopper", 4, sim={"specialize": "off", "threads": 2})
    for space in ("observation_space", "single_observation_space", "action_space"):
        assert getattr(one, space) == getattr(other, space)
    assert data_equivalence(one.reset(seed=0), other.reset(seed=0), exact=True)
    ended = 0
    for x, y in zip(steps(one, 100), steps(other, 100)):
        if x[4] and y[4]:
            ended += 1
            # Seconds are a clock's.
            x[4]["episode"]["t"][:] = y[4]["episode"]["t"][:] = 0
        assert data_equivalence(x, y, exact=True)
    assert ended > 0


def test_a_seed_stays_until_the_next_one():
    # `test_random_seeding_basics`; the batch has one seed.
    env = make()
    env.reset(seed=42)
    assert env.np_random_seed == 42
    env.reset()
    assert env.np_random_seed == 42


def test_actions_are_as_many_as_environments():
    # `test_action_count_compatibility`.
    env = make()
    env.reset(seed=1)
    good = env.action_space.sample()
    assert all(len(x) == 3 for x in env.step(good)[:4])
    raises(ValueError, "(3, 3)", lambda: env.step(good[:2]))
    raises(ValueError, "(3, 3)", lambda: env.step(np.concatenate([good, good[:1]])))
    raises(ValueError, "(3, 3)", lambda: env.step(0))
    # A mask of resets belongs to another mode of resets.
    mask = {"reset_mask": np.array([True, False, False])}
    raises(ValueError, "reset_mask", lambda: env.reset(options=mask))


def test_last_observations_come_in_the_step_of_the_end():
    # `test_autoreset_within_step` and `test_final_obs_info`.
    env = make("cartpole", 4, env={"episode_length_s": 0.2})
    first, info = env.reset(seed=1)
    assert info == {}
    for t in range(1, 3 * env.max_episode_steps + 1):
        obs, _, terminated, truncated, info = env.step(np.zeros((4, 1), np.float32))
        ended = t % env.max_episode_steps == 0
        assert not terminated.any() and truncated.all() == ended and truncated.any() == ended
        assert ("final_obs" in info) == ("_final_obs" in info) == ended
        if ended:
            assert set(info) >= {"final_obs", "_final_obs", "final_info", "_final_info"}
            assert info["_final_obs"].all() and info["final_obs"].shape == obs.shape
            assert all(row in env.single_observation_space for row in info["final_obs"])
            assert (info["final_obs"] != obs).any()


def test_results_are_not_used_again():
    env = make("hopper", 3)
    results = [env.reset(seed=1)[0], *(x[:4] for x in steps(env, 3))]
    for i, one in enumerate(results):
        for other in results[i + 1 :]:
            assert not data_shares_objects(one, other)


def test_wrappers_hand_on_what_they_wrap():
    # `test_vector_wrapper.py`.
    class Counting(VectorWrapper):
        count = 0

        def reset(self, *, seed=None, options=None):
            self.count += 1
            return super().reset(seed=seed, options=options)

    env = make()
    wrapped = Counting(env)
    wrapped.reset(seed=1)
    assert wrapped.count == 1 and wrapped.unwrapped is env
    assert wrapped.metadata == env.metadata and wrapped.num_envs == 3
    assert wrapped.observation_space == env.observation_space
    wrapped.close()
    raises(ostler.StateError, "closed", lambda: env.reset())


def test_wrappers_of_actions_and_rewards_do_what_they_say():
    # As `test_vector_wrapper_equivalence`: what a wrapper makes is computed here beside.
    def alike(wrapped, plain, actions_of, reward_of):
        assert data_equivalence(wrapped.reset(seed=3), plain.reset(seed=3), exact=True)
        wrapped.action_space.seed(3)
        for _ in range(60):
            given = wrapped.action_space.sample()
            x, y = wrapped.step(given), plain.step(actions_of(given))
            assert np.allclose(x[1], reward_of(y[1]), rtol=1e-5)
            for i in (0, 2, 3):
                assert data_equivalence(x[i], y[i], exact=True)

    def own(x):
        return x

    low, high = np.float32(-0.25), np.float32(0.75)
    alike(wrappers.ClipReward(make(), low, high), make(), own, lambda r: np.clip(r, low, high))
    alike(wrappers.TransformReward(make(), lambda r: 2 * r), make(), own, lambda r: 2 * r)
    wide = wrappers.RescaleAction(make("half_cheetah"), -10.0, 10.0)
    alike(wide, make("half_cheetah"), lambda a: a / 10, own)
    assert wide.single_action_space.high.max() == 10
    clipped = wrappers.ClipAction(make("half_cheetah"))
    alike(clipped, make("half_cheetah"), lambda a: np.clip(a, -1, 1), own)
    turned = wrappers.TransformAction(make("half_cheetah"), lambda a: -a)
    alike(turned, make("half_cheetah"), lambda a: -a, own)


def test_normalised_rewards_have_the_variance_of_discounted_returns():
    env = wrappers.NormalizeReward(make("half_cheetah", 16), gamma=0.9)
    plain = make("half_cheetah", 16)
    env.reset(seed=1), plain.reset(seed=1)
    ratios = []
    for x, y in zip(steps(env, 300), steps(plain, 300)):
        ratios.append(x[1] / y[1])
    # One factor for all, which settles.
    assert np.allclose(ratios[-1], ratios[-1][0], rtol=1e-4)
    assert abs(ratios[-1][0] / ratios[-50][0] - 1) < 0.05
    assert ratios[-1][0] > 0


def test_infos_become_a_list_for_each_environment():
    env = wrappers.DictInfoToList(make("cartpole", 8))
    plain = make("cartpole", 8)
    env.reset(seed=1), plain.reset(seed=1)
    ended = 0
    for x, y in zip(steps(env, 80), steps(plain, 80)):
        for i, one in enumerate(x[4]):
            done = bool(y[2][i] | y[3][i])
            assert ("final_obs" in one) == done
            if done:
                ended += 1
                assert np.array_equal(one["final_obs"], y[4]["final_obs"][i])
                assert one["episode"]["l"] == y[4]["episode"]["l"][i]
    assert ended > 8


def test_wrappers_of_observations_say_that_they_want_another_mode_of_resets():
    # Should Gymnasium take SAME_STEP one day, docs/python.md may say so.
    raises(ValueError, "SAME_STEP", lambda: wrappers.NormalizeObservation(make()))
    raises(ValueError, "SAME_STEP", lambda: wrappers.FlattenObservation(make()))
