"""Weights & Biases: `ostler.train("half_cheetah", callback=ostler.wandb.callback(project="runs"))`.

The program starts this text with the Python of `log.wandb.python`, too: `main` is its side then.
"""

#: The x axis of all curves.
AXIS = "env_steps"


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
    _axes(run)

    def log(iteration):
        run.log(_numbers(iteration))

    log.run = run
    return log


def _axes(run):
    run.define_metric(AXIS)
    run.define_metric("*", step_metric=AXIS)


def _numbers(iteration):
    """The numbers of a line of metrics; those that are not known are left out."""
    return {tag: x for tag, x in iteration.items() if isinstance(x, (int, float))}


def _begin(asked):
    """The run that the program asks for."""
    import wandb

    settings = {
        "console": "off",
        "disable_code": True,
        "disable_git": True,
        "disable_job_creation": True,
        "init_timeout": asked["timeout"],
        "finish_timeout": asked["timeout"],
        "save_code": False,
        "silent": True,
        # Links belong into no run's folder.
        "symlink": False,
        "x_save_requirements": False,
        # Its load is the training's.
        "x_stats_pid": asked["process"],
    }
    known = getattr(wandb.Settings, "model_fields", settings)
    own = ("mode", "project", "name", "entity", "group", "tags", "dir", "id", "config")
    options = {key: asked[key] for key in own}
    if asked["resume"]:
        options["resume"] = "allow"
    kept = {key: value for key, value in settings.items() if key in known}
    run = wandb.init(**options, settings=wandb.Settings(**kept))
    _axes(run)
    return run


def _say(stream, answer):
    import json

    stream.write(json.dumps(answer) + "\n")
    stream.flush()


def main():
    """A line of JSON says what to begin; then comes one for each iteration, and one for the end."""
    import json
    import os
    import signal

    # It ends with its input: the program has more to say behind a Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lines, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    try:
        run = _begin(json.loads(lines.readline()))
    except ImportError as e:
        return _say(out, {"error": str(e), "missing": True})
    except Exception as e:
        return _say(out, {"error": f"{type(e).__name__}: {e}", "missing": False})
    # There is none before it is uploaded.
    _say(out, {"id": run.id, "url": run.url if run.settings.mode == "online" else None})
    first, code = run.step, 255
    for line in lines:
        told = json.loads(line)
        if "exit" in told:
            code = told["exit"]
            break
        # What a run that goes on does again is there already.
        if told["iteration"] >= first:
            run.log(_numbers(told), step=told["iteration"])
    try:
        run.finish(exit_code=code)
    except Exception as e:
        return _say(out, {"error": f"{type(e).__name__}: {e}", "missing": False})
    _say(out, {"id": run.id, "url": None})


if __name__ == "__main__":
    main()
