"""Physics steps per second of Ostler, MuJoCo Warp and MJX: same model, time step, batch.

    python3 versus.py [--device cuda:0|cpu] [--ostler bin/ostler] [--seconds S]
                      [--only ostler,warp,mjx] MODEL.xml NUM_ENVS

Prints one JSON object: steps per second of each, ratios of Ostler's to the others', and
why where one was not measured; what the engines print goes to standard error. All engines
integrate by Euler's method and solve contacts by Newton's, hold the controls
(drawn from the control ranges) for 5 time steps and start from the model's own pose with
small random velocities, after so many steps that robots have fallen into contact. Versions:
pip's mujoco-warp, and mujoco-mjx with jax[cuda13].
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HOLD = 5
SETTLE = 200


def rate(steps, seconds, call, wait):
    """Calls until the time is over; steps per second."""
    call()
    wait()
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(4):
            call()
            done += steps
        wait()
    return done / (time.perf_counter() - start)


def load(path):
    import mujoco

    return mujoco.MjModel.from_xml_path(path)


def comparable(path, folder):
    """The model with Euler's integrator, which MJX and MuJoCo Warp are fastest with, and
    Newton's method, the one solver that all have."""
    import xml.etree.ElementTree as xml

    tree = xml.parse(path)
    option = tree.getroot().find("option")
    if option is None:
        option = xml.SubElement(tree.getroot(), "option")
    option.set("integrator", "Euler")
    option.set("solver", "Newton")
    changed = os.path.join(folder, os.path.basename(path))
    tree.write(changed)
    return changed


def controls(model, rng, shape):
    limited = model.actuator_ctrllimited.astype(bool)
    low = [r[0] if on else -1.0 for r, on in zip(model.actuator_ctrlrange, limited)]
    high = [r[1] if on else 1.0 for r, on in zip(model.actuator_ctrlrange, limited)]
    return rng.uniform(low, high, size=shape + (model.nu,)).astype("float32")


def ostler(args):
    command = [args.ostler, "bench", "physics", args.model, "--num-envs", str(args.num_envs)]
    command += ["--seconds", str(args.seconds), "--substeps", str(HOLD), "--json"]
    if args.device != "cpu":
        command += ["--device", args.device]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:])
    found = json.loads(done.stdout)
    return found["physics_steps_per_s"], "robots broke" if found["broken"] else ""


def warp(args):
    import mujoco
    import mujoco_warp as mjw
    import numpy as np
    import warp as wp

    wp.config.quiet = True
    model, rng, n = load(args.model), np.random.default_rng(0), args.num_envs
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    with wp.ScopedDevice(args.device):
        m = mjw.put_model(model)
        # Room for the contacts and rows of a robot that lies on the ground.
        d = mjw.put_data(model, data, nworld=n, nconmax=args.contacts, njmax=6 * args.contacts)
        velocity = rng.normal(size=(n, model.nv)).astype("float32") * 0.1
        wp.copy(d.qvel, wp.array(velocity, dtype=float))
        plans = [wp.array(controls(model, rng, (n,)), dtype=float) for _ in range(4)]

        def hold(plan):
            wp.copy(d.ctrl, plan)
            for _ in range(HOLD):
                mjw.step(m, d)

        hold(plans[0])
        graphs = None
        if args.device != "cpu":
            graphs = []
            for plan in plans:
                with wp.ScopedCapture() as capture:
                    hold(plan)
                graphs.append(capture.graph)
        turn = [0]

        def call():
            k = turn[0] = (turn[0] + 1) % len(plans)
            if graphs:
                wp.capture_launch(graphs[k])
            else:
                hold(plans[k])

        for _ in range(SETTLE // HOLD):
            call()
        found = rate(n * HOLD, args.seconds, call, wp.synchronize)
        finite = bool(np.isfinite(d.qpos.numpy()).all())
    return found, "" if finite else "positions are not finite"


def mjx(args):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if args.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import numpy as np
    from mujoco import mjx as engine

    if args.device != "cpu" and jax.default_backend() != "gpu":
        raise RuntimeError("jax has no GPU here")
    model, rng, n = load(args.model), np.random.default_rng(0), args.num_envs
    m = engine.put_model(model)
    one = engine.make_data(m)
    velocity = rng.normal(size=(n, model.nv)).astype("float32") * 0.1
    d = jax.vmap(lambda v: one.replace(qvel=v))(velocity)
    plans = [jax.numpy.asarray(controls(model, rng, (n,))) for _ in range(4)]

    def hold(d, ctrl):
        d = d.replace(ctrl=ctrl)
        return jax.lax.fori_loop(0, HOLD, lambda _, d: engine.step(m, d), d)

    step = jax.jit(jax.vmap(hold))
    state, turn = [d], [0]

    def call():
        turn[0] = (turn[0] + 1) % len(plans)
        state[0] = step(state[0], plans[turn[0]])

    def wait():
        state[0].qpos.block_until_ready()

    for _ in range(SETTLE // HOLD):
        call()
    found = rate(n * HOLD, args.seconds, call, wait)
    finite = bool(np.isfinite(np.asarray(state[0].qpos)).all())
    return found, "" if finite else "positions are not finite"


def main():
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cli.add_argument("model")
    cli.add_argument("num_envs", type=int)
    cli.add_argument("--device", default="cuda:0")
    here = os.path.dirname(os.path.abspath(__file__))
    cli.add_argument("--ostler", default=os.path.join(here, "bin", "ostler"))
    cli.add_argument("--seconds", type=float, default=5.0)
    cli.add_argument("--contacts", type=int, default=32, help="room per environment, for MuJoCo Warp")
    cli.add_argument("--only", default="ostler,warp,mjx")
    args = cli.parse_args()
    # Engines print what they compile, to the one place where nothing else may be.
    out = os.dup(1)
    os.dup2(2, 1)
    folder = tempfile.TemporaryDirectory()
    args.model = comparable(args.model, folder.name)
    result = {"model": os.path.basename(args.model), "num_envs": args.num_envs, "device": args.device}
    for name in args.only.split(","):
        try:
            found, note = {"ostler": ostler, "warp": warp, "mjx": mjx}[name](args)
            result[name + ".steps_per_s"] = round(found)
            if note:
                result[name + ".note"] = note
        except ImportError as error:
            result[name + ".missing"] = str(error)
        except Exception as error:  # One engine's failure leaves the others'.
            result[name + ".error"] = str(error)[-500:]
    own = result.get("ostler.steps_per_s")
    for name in ["warp", "mjx"]:
        if own and result.get(name + ".steps_per_s"):
            result["ratio." + name] = round(own / result[name + ".steps_per_s"], 2)
    with os.fdopen(out, "w") as file:
        print(json.dumps(result), file=file)
    return 1 if any(k.endswith(".error") or k.endswith(".note") for k in result) else 0


if __name__ == "__main__":
    sys.exit(main())
