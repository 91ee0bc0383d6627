"""A sweep with Optuna: learning rate, clipping and entropy of PPO on a configuration.

    pip install optuna
    python examples/sweep.py configs/cartpole.toml --trials 20

Every trial is a run of its own in sweep/, so that `ostler plot`, `play` and `eval` take it;
the study is kept in sweep/study.db, and the same command goes on with it.
"""

import argparse
import json
import pathlib
import subprocess

import optuna


def ostler(program, *words):
    """Runs the program; its standard output. A run that fails is a trial that fails."""
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode == 130:
        raise KeyboardInterrupt
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", help="a configuration")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=60, help="of each run")
    parser.add_argument("--episodes", type=int, default=100, help="that judge a run")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("sweep"))
    parser.add_argument("--ostler", default="ostler", help="the program")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)

    def objective(trial):
        values = {
            "ppo.learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
            "ppo.clip_param": trial.suggest_float("clip_param", 0.1, 0.3),
            "ppo.entropy_coef": trial.suggest_float("entropy_coef", 1e-4, 1e-1, log=True),
            "ppo.num_learning_epochs": trial.suggest_int("num_learning_epochs", 2, 8),
            "runner.max_iterations": args.iterations,
        }
        run = args.folder / f"trial_{trial.number:04}"
        settings = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        ostler(args.ostler, "train", args.config, "--quiet", "--out", run, *settings)
        result = json.loads(ostler(args.ostler, "eval", run, "--episodes", args.episodes, "--json"))
        return result["mean_return"]

    study = optuna.create_study(
        study_name=pathlib.Path(args.config).stem,
        storage=f"sqlite:///{args.folder / 'study.db'}",
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=1),
    )
    study.optimize(objective, n_trials=args.trials, catch=(RuntimeError,))
    print(f"best: {study.best_value:.1f} in trial_{study.best_trial.number:04}")
    for name, value in study.best_params.items():
        print(f"  {name} = {value:.4g}")


if __name__ == "__main__":
    main()
