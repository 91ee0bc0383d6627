"""The adapters, with the libraries that they are for."""

import numpy as np
import torch

GENERIC = {"sim": {"specialize": "off", "threads": 1}}


def test_stable_baselines3_learns_to_balance():
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from ostler.sb3 import make_vec

    env = make_vec("cartpole", num_envs=32, **GENERIC)
    torch.set_num_threads(1)
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=512, learning_rate=1e-3, seed=1)
    before, _ = evaluate_policy(model, VecMonitor(env), n_eval_episodes=32)
    model.learn(80_000)
    after, _ = evaluate_policy(model, VecMonitor(env), n_eval_episodes=32)
    assert after > 5 * before and after > 300, (before, after)
    # What its own loop has recorded of the ends.
    assert len(model.ep_info_buffer) > 10
    normal = VecNormalize(make_vec("hopper", num_envs=4, **GENERIC))
    assert np.isfinite(normal.reset()).all()
    assert np.isfinite(normal.step(np.zeros((4, 3), np.float32))[0]).all()


def test_stable_baselines3_gets_last_observations_and_truncations():
    from ostler.sb3 import make_vec

    env = make_vec("half_cheetah", num_envs=3, env={"episode_length_s": 0.5}, **GENERIC)
    env.seed(1)
    first = env.reset()
    for _ in range(env.env.max_episode_steps):
        obs, reward, done, infos = env.step(np.zeros((3, 6), np.float32))
    assert done.all() and reward.shape == (3,)
    for i, info in enumerate(infos):
        assert info["TimeLimit.truncated"] is True and info["episode"]["l"] == 10
        assert (info["terminal_observation"] != obs[i]).any()
    env.seed(1)
    np.testing.assert_array_equal(first, env.reset())
    assert (first != env.reset()).any()


def test_rsl_rl_runs_its_runner():
    from rsl_rl.runners import OnPolicyRunner

    from ostler.rsl_rl import make_vec

    env = make_vec("quadruped", num_envs=16, **GENERIC)
    obs = env.get_observations()
    assert obs.batch_size == (16,) and "policy" in obs.keys()
    obs, reward, done, extras = env.step(torch.zeros(16, env.num_actions))
    assert reward.shape == done.shape == extras["time_outs"].shape == (16,)
    network = {
        "class_name": "rsl_rl.models.MLPModel",
        "hidden_dims": [32],
        "activation": "elu",
        "obs_normalization": True,
    }
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}
    config = {
        "num_steps_per_env": 8,
        "save_interval": 100,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": 2,
            "num_mini_batches": 2,
            "rnd_cfg": None,
            "symmetry_cfg": None,
        },
        "actor": {**network, "distribution_cfg": gaussian},
        "critic": network,
        "multi_gpu": None,
    }
    runner = OnPolicyRunner(env, config, log_dir=None, device="cpu")
    before = {k: v.clone() for k, v in runner.alg.actor.state_dict().items()}
    runner.learn(2, init_at_random_ep_len=True)
    after = runner.alg.actor.state_dict()
    assert any((before[k] != after[k]).any() for k in before)


def test_torchrl_checks_it_and_collects():
    from torchrl.envs.utils import check_env_specs

    from ostler.torchrl import make_vec

    env = make_vec("cartpole", num_envs=4, **GENERIC)
    check_env_specs(env)
    env.set_seed(1)
    rolled = env.rollout(300, break_when_any_done=False)
    assert rolled.batch_size == (4, 300)
    done = rolled["next", "done"][..., 0]
    assert done.any()
    now, following = rolled["next", "observation"], rolled["observation"]
    same = (now[:, :-1] == following[:, 1:]).all(-1)
    # The next row goes on from the last one, unless that was an episode's.
    assert (same == ~done[:, :-1]).all()
    assert (now[done][:, 1].abs() > 0.2).all()


def test_gymnasiums_wrapper_gives_tensors():
    from gymnasium.wrappers.vector import ClipAction, NumpyToTorch

    import ostler

    env = NumpyToTorch(ClipAction(ostler.make_vec("half_cheetah", 4, **GENERIC)), device="cpu")
    plain = ostler.make_vec("half_cheetah", 4, **GENERIC)
    obs, _ = env.reset(seed=1)
    assert isinstance(obs, torch.Tensor) and obs.dtype == torch.float32
    assert np.array_equal(obs.numpy(), plain.reset(seed=1)[0])
    for _ in range(20):
        actions = 2 * torch.randn(4, 6)
        told = env.step(actions)[:4]
        assert all(isinstance(x, torch.Tensor) and len(x) == 4 for x in told)
        wanted = plain.step(np.clip(actions.numpy(), -1, 1))[:4]
        assert all(np.array_equal(x.numpy(), y) for x, y in zip(told, wanted))


def small_run():
    import tempfile

    import ostler

    options = {
        **GENERIC,
        "learner.threads": 1,
        "env.num_envs": 16,
        "runner.max_iterations": 3,
    }
    return ostler.train("quadruped", out=tempfile.mkdtemp() + "/run", **options)


def test_a_policy_acts_on_tensors_in_both_formats():
    import json
    import tempfile
    from pathlib import Path

    import ostler
    import ostler.program

    run = small_run()
    place = Path(tempfile.mkdtemp())
    words = ["--format", "onnx,torchscript", "--out", place, "--name", "p"]
    ostler.program.run("export", run.folder, *words)
    obs = torch.randn(5, 48)
    onnx, script = (ostler.Policy(place / name)(obs) for name in ("p.onnx", "p.pt"))
    assert isinstance(script, torch.Tensor) and script.shape == (5, 12)
    assert (onnx - script).abs().max() < 1e-5
    # PyTorch by itself, on the manifest's vectors.
    module = torch.jit.load(str(place / "p.pt"))
    for step in ostler.Policy(place / "p.pt").manifest["test_vectors"]["steps"]:
        out = module(torch.tensor([step["obs"]]))[0]
        wanted = torch.tensor(step["actions"] + step["controls"])
        assert (out - wanted).abs().max() < 1e-5
    (place / "bad.pt").write_bytes((place / "p.pt").read_bytes()[:500])
    (place / "bad.json").write_text((place / "p.json").read_text())
    try:
        ostler.Policy(place / "bad.pt")
    except ValueError as e:
        assert "bad.pt is no policy" in str(e)
    else:
        raise AssertionError("a file that was cut is taken")
    about = json.loads((place / "p.json").read_text())
    about["controls"].pop()
    about["outputs"][1]["shape"][1] -= 1
    (place / "p.json").write_text(json.dumps(about))
    for name in ("p.pt", "p.onnx"):
        try:
            ostler.Policy(place / name)
        except ValueError as e:
            assert f"{name} is another policy than p.json says" in str(e), e
        else:
            raise AssertionError("a manifest of another policy is taken")


def test_weights_and_biases_gets_every_number():
    import os
    import tempfile

    import ostler
    import ostler.wandb

    os.environ["WANDB_SILENT"] = "true"
    log = ostler.wandb.callback(project="poles", mode="offline", dir=tempfile.mkdtemp())
    out = tempfile.mkdtemp() + "/run"
    options = {**GENERIC, "learner.threads": 1, "runner.max_iterations": 3}
    run = ostler.train("cartpole", log, out=out, **options)
    last = {k: v for k, v in run.metrics[-1].items() if isinstance(v, (int, float))}
    assert len(last) > 20
    for tag, value in last.items():
        assert log.run.summary[tag] == value, tag
    log.run.finish()


def wandb_records(folder):
    """Records of all files of a run that Weights & Biases has written, in their order.

    The messages are its own; the files are LevelDB's log format behind seven bytes.
    """
    import struct

    from wandb.proto import wandb_internal_pb2

    for file in sorted(folder.glob("wandb/offline-run-*/run-*.wandb")):
        data, at, whole = file.read_bytes(), 7, b""
        while at + 7 < len(data):
            left = 32768 - at % 32768
            if left < 7:
                at += left
                continue
            _, length, kind = struct.unpack("<IHB", data[at : at + 7])
            whole += data[at + 7 : at + 7 + length]
            at += 7 + length
            # Whole, or the last part.
            if kind in (1, 4):
                record = wandb_internal_pb2.Record()
                record.ParseFromString(whole)
                yield record
                whole = b""


def test_the_program_logs_to_weights_and_biases():
    import json
    import sys
    import tempfile
    from pathlib import Path

    import ostler

    out = Path(tempfile.mkdtemp()) / "run"
    table = {"project": "poles", "group": "g", "tags": ["a", "b"], "python": sys.executable}
    options = {**GENERIC, "learner.threads": 1, "log.wandb": table, "runner.eval_interval": 2}
    run = ostler.train("cartpole", out=out, allow_native=True, **options, **{"runner.max_iterations": 4})
    run = ostler.train(resume=out, allow_native=True, **{"runner.max_iterations": 7})
    records = list(wandb_records(out))
    begun = [r.run for r in records if r.WhichOneof("record_type") == "run"]
    told = {u.key: json.loads(u.value_json) for u in begun[0].config.update}
    assert {r.run_id for r in begun} == {(out / "wandb" / "run-id").read_text()} and len(begun) == 2
    assert begun[0].project == "poles" and begun[0].run_group == "g" and begun[0].tags == ["a", "b"]
    assert begun[0].display_name == "run" and told["ppo"]["gamma"] == 0.99, told
    axes = [r.metric for r in records if r.WhichOneof("record_type") == "metric"]
    assert any(m.glob_name == "*" and m.step_metric == "env_steps" for m in axes)
    rows = [r.history for r in records if r.WhichOneof("record_type") == "history"]
    assert [row.step.num for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    for row, line in zip(rows, run.metrics, strict=True):
        got = {i.key or i.nested_key[0]: json.loads(i.value_json) for i in row.item}
        got = {tag: x for tag, x in got.items() if not tag.startswith("_")}
        assert got == {tag: x for tag, x in line.items() if x is not None}
    assert "Eval/mean_reward" in run.metrics[3]
    ends = [r.exit.exit_code for r in records if r.WhichOneof("record_type") == "exit"]
    assert ends == [0, 0]
