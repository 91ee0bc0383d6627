"""A sweep with Optuna: learning rate, clipping, entropy and epochs of PPO on a configuration.

    pip install optuna
    python examples/sweep.py configs/cartpole.toml --trials 20

Every trial is a run of its own, sweep/NAME/trial_0000 and so on, which `ostler plot`, `play`,
`eval` and `report` take. The study is kept in sweep/study.db: after Ctrl-C or a crash the same
command goes on until there are as many trials as --trials says, and a larger --trials adds some.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import optuna
from optuna.trial import TrialState


def ostler(program, *words):
    """Runs the program; its standard output. A run that fails is a trial that fails."""
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode == 130:
        raise KeyboardInterrupt
    if done.returncode == 2:  # a mistake in the configuration or the command: in every trial
        sys.exit(done.stderr.strip())
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", help="a configuration")
    parser.add_argument("--trials", type=int, default=20, help="of the study in all, earlier ones included")
    parser.add_argument("--iterations", type=int, default=60, help="of each run")
    parser.add_argument("--episodes", type=int, default=100, help="that judge a run")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("sweep"))
    parser.add_argument("--ostler", default="ostler", help="the program")
    args = parser.parse_args()
    if shutil.which(args.ostler) is None:
        sys.exit(f"error: there is no program {args.ostler}: give its path with --ostler")
    name = pathlib.Path(args.config).stem
    runs = args.folder / name
    runs.mkdir(parents=True, exist_ok=True)

    def objective(trial):
        values = {
            "ppo.learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
            "ppo.clip_param": trial.suggest_float("clip_param", 0.1, 0.3),
            "ppo.entropy_coef": trial.suggest_float("entropy_coef", 1e-4, 1e-1, log=True),
            "ppo.num_learning_epochs": trial.suggest_int("num_learning_epochs", 2, 8),
            "runner.max_iterations": args.iterations,
        }
        run = runs / f"trial_{trial.number:04}"
        settings = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        ostler(args.ostler, "train", args.config, "--quiet", "--out", run, *settings)
        result = json.loads(ostler(args.ostler, "eval", run, "--episodes", args.episodes, "--json"))
        return result["mean_return"]

    storage = f"sqlite:///{args.folder / 'study.db'}"
    study = optuna.create_study(
        study_name=name, storage=storage, load_if_exists=True, direction="maximize"
    )
    # Trials that were cut off do not count; a seed that differs, or the first draws come again.
    done = len(study.get_trials(states=(TrialState.COMPLETE,)))
    study.sampler = optuna.samplers.TPESampler(seed=1 + len(study.trials))
    try:
        if done < args.trials:
            study.optimize(objective, n_trials=args.trials - done, catch=(RuntimeError,))
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130
    if not study.get_trials(states=(TrialState.COMPLETE,)):
        print("error: every trial failed; the messages stand above", file=sys.stderr)
        return 1
    print(f"best: {study.best_value:.1f} in {runs / f'trial_{study.best_trial.number:04}'}")
    for key, value in study.best_params.items():
        print(f"  ppo.{key} = {value:.4g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
