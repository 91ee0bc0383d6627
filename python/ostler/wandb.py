"""Weights & Biases: `ostler.train("half_cheetah", callback=ostler.wandb.callback(project="runs"))`."""


def callback(run=None, **options):
    """A callback of `ostler.train` that logs every number of every iteration.

    The x axis is `env_steps`. `run`: one that `wandb.init` gave; else `options` are those of
    `wandb.init` (`project`, `name`, `config`, `mode="offline"`, ...). `callback.run` is it; call
    its `finish()` after the last training.
    """
    try:
        import wandb
    except ImportError:
        raise ImportError("Weights & Biases is not installed: pip install wandb") from None
    run = run if run is not None else wandb.init(**options)
    run.define_metric("env_steps")
    run.define_metric("*", step_metric="env_steps")

    def log(iteration):
        run.log({tag: x for tag, x in iteration.items() if isinstance(x, (int, float))})

    log.run = run
    return log
