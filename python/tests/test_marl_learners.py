"""Environments of several agents, with the libraries that they are for."""

import warnings

import gymnasium
import numpy as np
import torch

import ostler

GENERIC = {"sim": {"specialize": "off", "threads": 1}}
TASKS = {"spread": 0.5, "ant_sumo": 0.5, "half_cheetah_legs": 0.5}


def parallel(name="spread", seconds=0.5, **options):
    from ostler.pettingzoo import parallel_env

    return parallel_env(name, env={"episode_length_s": seconds}, **GENERIC, **options)


def test_pettingzoos_own_tests_find_nothing():
    from pettingzoo.test import parallel_api_test, parallel_seed_test
    from pettingzoo.test.state_test import state_test
    from pettingzoo.utils import parallel_to_aec

    for name, seconds in TASKS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parallel_api_test(parallel(name, seconds), num_cycles=200)
            parallel_seed_test(lambda: parallel(name, seconds), num_cycles=200)  # noqa: B023
        with warnings.catch_warnings():
            # It warns of bounds that are infinite.
            warnings.simplefilter("ignore")
            state_test(parallel_to_aec(parallel(name, seconds)), parallel(name, seconds))


def test_pettingzoos_agents_may_take_turns():
    from pettingzoo.test import api_test
    from pettingzoo.utils import parallel_to_aec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(parallel_to_aec(parallel("spread", 2.0)), num_cycles=100)


def test_a_parallel_environment_has_the_numbers_of_a_batch():
    one, batch = parallel(), ostler.make_marl("spread", 1, env={"episode_length_s": 0.5}, **GENERIC)
    seen, _ = one.reset(seed=4)
    told, _ = batch.reset(seed=4)
    assert str(one) == "spread" and one.metadata["is_parallelizable"]
    ends = 0
    for t in range(40):
        if not one.agents:
            seen, infos = one.reset()
            assert infos == {name: {} for name in "abc"}
            # The last step of the batch has begun this one.
        for name in one.agents:
            assert np.array_equal(seen[name], told[name][0])
        rng = np.random.default_rng(t)
        actions = {name: rng.uniform(-1, 1, 2).astype(np.float32) for name in one.agents}
        seen, reward, terminated, truncated, infos = one.step(actions)
        x = batch.step({name: action[None] for name, action in actions.items()})
        told = x[0]
        over = t % 10 == 9
        for name in "abc":
            assert reward[name] == x[1][name][0] and type(reward[name]) is float
            assert truncated[name] is over and terminated[name] is False
            if over:
                assert np.array_equal(seen[name], x[4][name]["final_obs"][0])
                assert infos[name]["episode"]["l"] == 10
        if over:
            ends += 1
            assert one.agents == [] and (one.state() != batch.state()[0]).any()
            raises(gymnasium.error.ResetNeeded, "reset", lambda: one.step(actions))  # noqa: B023
        else:
            assert np.array_equal(one.state(), batch.state()[0])
    assert ends == 4
    one.reset()
    raises(ValueError, "of b, c are missing", lambda: one.step({"a": np.zeros(2)}))
    raises(TypeError, "dictionary by agent", lambda: one.step(np.zeros((3, 2))))
    one.close()
    raises(ostler.StateError, "closed", lambda: one.reset(seed=1))


def raises(kind, words, call):
    try:
        call()
    except kind as e:
        assert words in str(e), f"{e!s} has not {words!r}"
        return
    raise AssertionError(f"no {kind.__name__}")


def test_torchrl_checks_it_and_collects():
    from torchrl.envs.utils import check_env_specs

    from ostler.torchrl import make_marl

    groups = {
        "spread": {name: [name] for name in "abc"},
        "ant_sumo": {"shared": ["red", "blue"]},
    }
    for name, group_map in groups.items():
        # At random ages some are reset while others go on.
        options = {"env": {"episode_length_s": 0.5}, "random_ages": True, **GENERIC}
        env, plain = make_marl(name, 4, **options), ostler.make_marl(name, 4, **options)
        assert env.group_map == group_map
        check_env_specs(env)
        env.set_seed(2)
        td, _ = env.reset(), plain.reset(seed=2)
        for _ in range(3):
            td = env.rand_action(td)
            actions = {
                agent: td[group, "action"][:, m]
                for group, agents in group_map.items()
                for m, agent in enumerate(agents)
            }
            td = env.step(td)["next"]
            reward = plain.step(actions)[1]
            for group, agents in group_map.items():
                for m, agent in enumerate(agents):
                    assert np.array_equal(td[group, "reward"][:, m, 0], reward[agent])
        env.set_seed(1)
        rolled = env.rollout(30, break_when_any_done=False)
        assert rolled.batch_size == (4, 30)
        done = rolled["next", "done"][..., 0]
        assert done.any() and not done.all()
        for group in group_map:
            now, following = rolled["next", group, "observation"], rolled[group, "observation"]
            same = (now[:, :-1] == following[:, 1:]).flatten(2).all(-1)
            # The next row goes on from the last one, unless that was an episode's.
            assert (same == ~done[:, :-1]).all()
            assert rolled["next", group, "reward"].shape[2:] == (len(group_map[group]), 1)
        assert rolled["state"].shape[-1] == env.observation_spec["state"].shape[-1]


def test_torchrl_wraps_a_parallel_environment():
    from torchrl.envs import PettingZooWrapper
    from torchrl.envs.utils import check_env_specs

    env = PettingZooWrapper(parallel(), use_mask=False, categorical_actions=True)
    check_env_specs(env)
    assert env.rollout(25, break_when_any_done=False).batch_size == (25,)


def test_skrl_learns_with_agents_of_their_own():
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.multi_agents.torch.mappo import MAPPO, MAPPO_CFG
    from skrl.trainers.torch import SequentialTrainer

    class Policy(GaussianMixin, Model):
        def __init__(self, **spaces):
            Model.__init__(self, **spaces)
            GaussianMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, self.num_actions)
            self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

        def compute(self, inputs, role=""):
            return self.net(inputs["observations"]), {"log_std": self.log_std}

    class Value(DeterministicMixin, Model):
        def __init__(self, **spaces):
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_states, 1)

        def compute(self, inputs, role=""):
            return self.net(inputs["states"]), {}

    batch = ostler.make_marl("spread", 8, env={"episode_length_s": 1}, **GENERIC)
    env = wrap_env(batch, wrapper="pettingzoo")
    assert env.num_envs == 8 and env.possible_agents == ["a", "b", "c"]
    obs, _ = env.reset()
    assert obs["a"].shape == (8, 14)
    actions = {name: torch.zeros(8, 2) for name in env.possible_agents}
    obs, reward, terminated, truncated, _ = env.step(actions)
    assert reward["b"].shape == terminated["b"].shape == truncated["b"].shape == (8, 1)
    state = env.state()
    assert state["a"].shape == (8, 42) and env.state_spaces["c"].shape == (42,)
    models, memories = {}, {}
    for name in env.possible_agents:
        spaces = {
            "observation_space": env.observation_space(name),
            "state_space": env.state_space(name),
            "action_space": env.action_space(name),
            "device": "cpu",
        }
        models[name] = {"policy": Policy(**spaces), "value": Value(**spaces)}
        memories[name] = RandomMemory(memory_size=16, num_envs=8, device="cpu")
    none = {name: {} for name in env.possible_agents}
    optional = ("learning_rate_scheduler", "observation_preprocessor", "state_preprocessor")
    optional = {f"{key}_kwargs": none for key in (*optional, "value_preprocessor")}
    cfg = MAPPO_CFG(rollouts=16, **optional)
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    spaces = ("observation_spaces", "state_spaces", "action_spaces")
    spaces = {key: getattr(env, key) for key in spaces}
    agent = MAPPO(
        possible_agents=env.possible_agents,
        models=models,
        memories=memories,
        device="cpu",
        cfg=cfg,
        **spaces,
    )
    parts = [models[name][part] for name in models for part in ("policy", "value")]
    before = [part.net.weight.detach().clone() for part in parts]
    settings = {"timesteps": 48, "headless": True, "disable_progressbar": True}
    SequentialTrainer(env=env, agents=agent, cfg=settings).train()
    after = [part.net.weight for part in parts]
    assert all((x != y).any() and torch.isfinite(y).all() for x, y in zip(before, after))


def test_one_policy_learns_from_all_rows():
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    from ostler.sb3 import make_vec

    class Returns(BaseCallback):
        means = []

        def _on_step(self):
            return True

        def _on_rollout_end(self):
            if self.model.ep_info_buffer:
                self.means.append(np.mean([info["r"] for info in self.model.ep_info_buffer]))

    short = {"episode_length_s": 5}
    env = make_vec("half_cheetah_legs", num_envs=16, agents="rows", env=short, **GENERIC)
    assert env.num_envs == 32
    torch.set_num_threads(1)
    settings = {"n_steps": 50, "batch_size": 400, "learning_rate": 1e-3, "seed": 1}
    PPO("MlpPolicy", env, gamma=0.98, **settings).learn(100_000, callback=Returns())
    assert Returns.means[-1] > Returns.means[0] + 8, Returns.means


def test_these_adapters_step_on_the_processor():
    import ostler.sb3
    import ostler.torchrl

    for make in (ostler.sb3.make_vec, ostler.torchrl.make_vec, ostler.torchrl.make_marl):
        try:
            make("spread", 2, device="cuda:0")
        except ValueError as e:
            assert 'device="cpu"' in str(e)
        else:
            raise AssertionError(make)
