"""MuJoCo's answers, for comparison: states of a model and what MuJoCo makes of them.

Needs mujoco and numpy. Two ways to call it:

    python mujoco_states.py states MODEL.xml OUT.npz [--states 10000] [--seed 0]
    python mujoco_states.py serve

`serve` reads requests from standard input, one JSON object a line, each with an
"op" (a function of OPS below, the rest are its arguments), and answers each with
one line: {"ok": {...}} or {"error": "..."}.

A reference file holds K states and the answers: qpos [K,nq], qvel [K,nv],
ctrl [K,nu], act [K,na] (float32, so that single precision starts from the same
numbers); qacc [K,nv], qpos_next, qvel_next, act_next after one step with the
model's own timestep and integrator (float64); ncon [K] and, of the constraints'
rows, contact_rows, limit_rows, other_rows [K]; iterative [K] is 1 where MuJoCo finds
a contact by an iterative method; noise [K] is how far MuJoCo's qacc moves when
its solver starts elsewhere, relative to its largest entry (or 1).
"""

import argparse
import json
import sys

import mujoco
import numpy as np

SPHERE, CAPSULE, BOX, PLANE = (
    int(getattr(mujoco.mjtGeom, "mjGEOM_" + k)) for k in ("SPHERE", "CAPSULE", "BOX", "PLANE")
)
CYLINDER = int(mujoco.mjtGeom.mjGEOM_CYLINDER)
# Pairs for which MuJoCo has closed formulas; every other pair is iterated.
CLOSED = {
    (a, b)
    for a, b in (
        [(SPHERE, k) for k in (SPHERE, CAPSULE, CYLINDER, BOX)]
        + [(CAPSULE, CAPSULE), (CAPSULE, BOX), (BOX, BOX)]
    )
}


def load(path):
    """The model of a file, with a solver that is exact to rounding."""
    model = mujoco.MjModel.from_xml_path(path)
    opt = model.opt
    # All solvers seek the same optimum; this one reaches it.
    opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    opt.tolerance, opt.iterations = 1e-15, 300
    opt.ls_tolerance, opt.ls_iterations = 1e-6, 200
    opt.ccd_tolerance, opt.ccd_iterations = 1e-12, max(200, opt.ccd_iterations)
    return model


def single(x):
    """Rounded to float32, as float64."""
    return np.asarray(x, np.float32).astype(np.float64)


def control_ranges(model):
    low, high = model.actuator_ctrlrange.T.copy()
    free = model.actuator_ctrllimited == 0
    low[free], high[free] = -1.0, 1.0
    return low, high


def controls(model, rng):
    """Uniform over the ranges; one time in five up to half beyond them."""
    low, high = control_ranges(model)
    if rng.random() < 0.2:
        middle, half = (low + high) / 2, (high - low) / 2
        low, high = middle - 1.5 * half, middle + 1.5 * half
    return rng.uniform(low, high)


def activations(model, rng):
    act = rng.normal(size=model.na) * 0.5
    for i in range(model.nu):
        n = model.actuator_actnum[i]
        if n and model.actuator_actlimited[i]:
            low, high = model.actuator_actrange[i]
            first = model.actuator_actadr[i]
            act[first : first + n] = rng.uniform(low, high, size=n)
    return act


def broken(data):
    """MuJoCo has reset or warned about the state."""
    bad = (
        mujoco.mjtWarning.mjWARN_BADQPOS,
        mujoco.mjtWarning.mjWARN_BADQVEL,
        mujoco.mjtWarning.mjWARN_BADQACC,
        mujoco.mjtWarning.mjWARN_BADCTRL,
    )
    return any(data.warning[int(w)].number for w in bad)


def start(model, data, rng):
    mujoco.mj_resetData(model, data)
    if model.nkey and rng.random() < 0.5:
        mujoco.mj_resetDataKeyframe(model, data, rng.integers(model.nkey))
    data.qvel[:] = rng.normal(size=model.nv) * 0.5
    data.act[:] = activations(model, rng)


def visited(model, data, rng, count):
    """States of roll-outs under random controls."""
    step = 0
    while count > 0:
        if step % 200 == 0 or broken(data):
            start(model, data, rng)
        if step % 5 == 0:
            data.ctrl[:] = controls(model, rng)
        state = [x.copy() for x in (data.qpos, data.qvel, data.ctrl, data.act)]
        mujoco.mj_step(model, data)
        step += 1
        if step % 11 == 0 and not broken(data):
            count -= 1
            yield state


def place(model, data, rng):
    """A random configuration: near the floor, near and beyond limits."""
    for j in range(model.njnt):
        at, kind = model.jnt_qposadr[j], model.jnt_type[j]
        limited = model.jnt_limited[j]
        if kind == mujoco.mjtJoint.mjJNT_BALL:
            data.qpos[at : at + 4] = rng.normal(size=4) * 0.4 + [1, 0, 0, 0]
        elif kind == mujoco.mjtJoint.mjJNT_FREE:
            height = data.qpos[at + 2]
            data.qpos[at : at + 2] += rng.uniform(-1, 1, 2)
            data.qpos[at + 2] = height * rng.uniform(0.4, 1.2)
            data.qpos[at + 3 : at + 7] = rng.normal(size=4) * 0.5 + [1, 0, 0, 0]
        elif limited:
            low, high = model.jnt_range[j]
            beyond = 0.05 * (high - low)
            data.qpos[at] = rng.uniform(low - beyond, high + beyond)
        else:
            data.qpos[at] += rng.uniform(-0.5, 0.3)
    mujoco.mj_normalizeQuat(model, data.qpos)


def scattered(model, data, rng, count):
    """Random configurations and velocities."""
    for _ in range(count):
        mujoco.mj_resetData(model, data)
        place(model, data, rng)
        data.qvel[:] = rng.normal(size=model.nv) * 2
        yield data.qpos.copy(), data.qvel.copy(), controls(model, rng), activations(model, rng)


def sample(model, count, seed):
    """Half visited, half scattered: qpos, qvel, ctrl, act, float32 in value."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    half = count // 2
    rows = list(visited(model, data, rng, half)) + list(scattered(model, data, rng, count - half))
    widths = model.nq, model.nv, model.nu, model.na
    return [
        single(np.array(column).reshape(count, width)) for column, width in zip(zip(*rows), widths)
    ]


def write(data, state, warmstart=0.0):
    mujoco.mj_resetData(data.model, data)
    for field, value in zip((data.qpos, data.qvel, data.ctrl, data.act), state):
        field[:] = value
    data.qacc_warmstart[:] = warmstart


def is_iterative(model, data):
    geoms = data.contact.geom
    for a, b in geoms:
        if a < 0 or b < 0:
            return True
        pair = tuple(sorted((int(model.geom_type[a]), int(model.geom_type[b]))))
        if PLANE not in pair and pair not in CLOSED:
            return True
    return False


def rows_of(data):
    """How many constraint rows are of contacts, of limits, of other kinds."""
    kinds = np.array(data.efc_type)
    first = int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
    contact = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_FRICTIONLESS)
    return (
        int((kinds >= contact).sum()),
        int(((kinds >= first) & (kinds < contact)).sum()),
        int((kinds < first).sum()),
    )


ANSWERS = "qacc qpos_next qvel_next act_next ncon contact_rows limit_rows other_rows iterative noise"


def evaluate(model, states):
    """MuJoCo's answers for all states: a dict of arrays."""
    data = mujoco.MjData(model)
    out = {name: [] for name in ANSWERS.split()}
    for state in zip(*states):
        write(data, state)
        mujoco.mj_forward(model, data)
        qacc = data.qacc.copy()
        out["qacc"].append(qacc)
        out["ncon"].append(data.ncon)
        for name, rows in zip(("contact_rows", "limit_rows", "other_rows"), rows_of(data)):
            out[name].append(rows)
        out["iterative"].append(is_iterative(model, data))
        # From the smooth acceleration instead of zero: the same optimum.
        write(data, state, data.qacc_smooth.copy())
        mujoco.mj_forward(model, data)
        moved = np.abs(data.qacc - qacc).max(initial=0)
        out["noise"].append(moved / max(1.0, np.abs(qacc).max(initial=0)))
        write(data, state)
        mujoco.mj_step(model, data)
        out["qpos_next"].append(data.qpos.copy())
        out["qvel_next"].append(data.qvel.copy())
        out["act_next"].append(data.act.copy())
    count = len(states[0])
    wide = {"qacc": model.nv, "qpos_next": model.nq, "qvel_next": model.nv, "act_next": model.na}
    for name, rows in out.items():
        if name in wide:
            out[name] = np.array(rows, np.float64).reshape(count, wide[name])
        else:
            out[name] = np.array(rows, np.float64 if name == "noise" else np.int32)
    return out


INPUTS = ("qpos", "qvel", "ctrl", "act")


def save(path, model, states, more):
    inputs = {name: np.asarray(x, np.float32) for name, x in zip(INPUTS, states)}
    np.savez_compressed(path, **inputs, **more)
    return {"nq": model.nq, "nv": model.nv, "nu": model.nu, "na": model.na, "states": len(states[0])}


def op_version():
    return {"mujoco": mujoco.__version__, "numpy": np.__version__, "python": sys.version.split()[0]}


def op_states(model, out, states=10000, seed=0):
    """Samples states and writes a reference file."""
    model = load(model)
    sampled = sample(model, states, seed)
    return save(out, model, sampled, evaluate(model, sampled))


OPS = {"version": op_version, "states": op_states}


def serve():
    # MuJoCo prints warnings to standard output: answers go to the original one.
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = {"ok": OPS[request.pop("op")](**request)}
        except Exception as e:  # any failure is the caller's to judge
            answer = {"error": f"{type(e).__name__}: {e}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="op", required=True)
    commands.add_parser("serve")
    commands.add_parser("version")
    states = commands.add_parser("states")
    states.add_argument("model")
    states.add_argument("out")
    states.add_argument("--states", type=int, default=10000)
    states.add_argument("--seed", type=int, default=0)
    args = vars(parser.parse_args())
    op = args.pop("op")
    if op == "serve":
        serve()
    else:
        print(json.dumps(OPS[op](**args)))


if __name__ == "__main__":
    main()
