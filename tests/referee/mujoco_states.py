"""MuJoCo's answers, for comparison: states of a model and what MuJoCo makes of them.

Needs mujoco and numpy. Two ways to call it:

    python mujoco_states.py states MODEL.xml OUT.npz [--states 10000] [--seed 0]
    python mujoco_states.py refresh
    python mujoco_states.py serve

`refresh` writes the small reference files beside this script again.
`serve` reads requests from standard input, one JSON object a line, each with an
"op" (a function of OPS below, the rest are its arguments), and answers each with
one line: {"ok": {...}} or {"error": "..."}.

A reference file holds K states and the answers: qpos [K,nq], qvel [K,nv],
ctrl [K,nu], act [K,na] (float32, so that single precision starts from the same
numbers); qacc [K,nv], sensordata [K,n] of the sensors that are measured in a step,
qpos_next, qvel_next, act_next after one step with the model's own timestep and
integrator (float64); ncon [K] and, of the constraints'
rows, contact_rows, limit_rows, other_rows [K]; iterative [K] is 1 where MuJoCo finds
a contact by an iterative method, iterative_next [K] where one of the step's stages
does; choice [K] where one of them is of a pair for which it chooses (is_choice). How
far MuJoCo's own qacc or sensordata moves, relative to its largest entry (or 1): noise [K]
when its solver starts elsewhere or the positions change by 1e-13, noise_single [K] when
they and the model's LENGTHS change by a float32 ulp, search [K] when its collision search ends at a hundred times
the tolerance or a tenth, or positions change by 1e-9; noise_next, noise_single_next, search_next [K]: the next state.
"""

import argparse
import collections
import importlib.util
import json
import os
import sys

import mujoco
import mujoco_motors
import mujoco_varied
import mujoco_worlds
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
# A contact's depth is as exact as this where its search ends there, its normal and
# place as the square root. Below 1e-12 rounding ends the search as early.
CCD_TOLERANCE = 1e-12


def load(path, written=False):
    """The model of a file, with a solver that is exact to rounding, or as `written` in the file."""
    model = mujoco_motors.read(path)
    opt = model.opt
    own = opt.solver, opt.tolerance, opt.iterations, opt.ls_tolerance, opt.ls_iterations
    # All solvers seek the same optimum; this one reaches it.
    opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    elliptic = opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    # Elliptic cones converge without an end that is exact: until nothing moves.
    opt.tolerance, opt.iterations = (0, 40) if elliptic else (1e-20, 300)
    opt.ls_tolerance, opt.ls_iterations = 1e-10, 200
    if written:
        opt.solver, opt.tolerance, opt.iterations, opt.ls_tolerance, opt.ls_iterations = own
    opt.ccd_tolerance, opt.ccd_iterations = CCD_TOLERANCE, max(500, opt.ccd_iterations)
    # Bodies never sleep in the engines.
    opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    # What is measured, whole: cutoffs belong to who reads it.
    opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
    model.sensor_cutoff[:] = 0
    return model


def single(x):
    """Rounded to float32, as float64."""
    return np.asarray(x, np.float32).astype(np.float64)


def control_ranges(model):
    low, high = model.actuator_ctrlrange.T.copy()
    free = (model.actuator_ctrllimited == 0) | ~np.isfinite(high - low)
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


# Beyond this (m/s, rad/s) a model has blown up: what its next step is, rounding decides.
FASTEST = 1e3


def broken(data):
    """MuJoCo has reset or warned about the state, or it flies apart."""
    if np.abs(data.qvel).max(initial=0) > FASTEST:
        return True
    bad = (
        mujoco.mjtWarning.mjWARN_BADQPOS,
        mujoco.mjtWarning.mjWARN_BADQVEL,
        mujoco.mjtWarning.mjWARN_BADQACC,
        mujoco.mjtWarning.mjWARN_BADCTRL,
    )
    return any(data.warning[int(w)].number for w in bad)


def velocities(model, rng, size):
    """Random velocities, of this standard deviation. Where damping leaves next to nothing of one
    in a time step, as much as it leaves: no motion has more, and MuJoCo takes the acceleration
    of more for a fault."""
    damping = np.array([np.ravel(d)[0] for d in model.dof_damping])
    left = model.dof_M0 / (model.dof_M0 + model.opt.timestep * damping)
    return rng.normal(size=model.nv) * size * np.where(left < 0.01, left, 1)


def start(model, data, rng):
    mujoco.mj_resetData(model, data)
    if model.nkey and rng.random() < 0.5:
        mujoco.mj_resetDataKeyframe(model, data, rng.integers(model.nkey))
    data.qvel[:] = velocities(model, rng, 0.5)
    data.act[:] = activations(model, rng)


class Unstable(ValueError):
    """MuJoCo's own roll-outs fly apart, or its steps break."""


REMEDY = "a smaller timestep, or more armature or damping of light joints, may help"


def name_of_joint(model, joint):
    body = model.body(int(model.jnt_bodyid[joint])).name
    return model.joint(joint).name or f"the joint of {body}"


def unstable(model, fastest):
    """Says where: `fastest` counts the degrees of freedom that were so in the end."""
    dof = max(fastest, key=fastest.get, default=0)
    name = name_of_joint(model, int(model.dof_jntid[dof]))
    return (
        f"MuJoCo's roll-outs under random controls fly apart on most of their way (beyond "
        f"{FASTEST:g} m/s or rad/s), mostly at {name}; {REMEDY} (timestep "
        f"{model.opt.timestep:g}, armature {model.dof_armature[dof]:g} and damping "
        f"{np.ravel(model.dof_damping[dof])[0]:g} there)"
    )


def visited(model, data, rng, count):
    """States of roll-outs under random controls; last the solver's warm start there."""
    step, most, fastest = 0, 2000 + 100 * count, collections.Counter()
    while count > 0:
        if step > most:
            raise Unstable(unstable(model, fastest))
        if step % 200 == 0 or broken(data):
            start(model, data, rng)
        if step % 5 == 0:
            data.ctrl[:] = controls(model, rng)
        state = [x.copy() for x in (data.qpos, data.qvel, data.ctrl, data.act, data.qacc_warmstart)]
        mujoco.mj_step(model, data)
        step += 1
        if broken(data) and model.nv:
            # A step that breaks leaves zeros.
            fastest[int(np.maximum(np.abs(state[1]), np.abs(data.qvel)).argmax())] += 1
        elif step % 11 == 0 and not broken(data):
            count -= 1
            yield state


def place(model, data, rng):
    """A random configuration: near the floor, near and beyond limits."""
    for j in range(model.njnt):
        at, kind = model.jnt_qposadr[j], model.jnt_type[j]
        limited = model.jnt_limited[j] and np.isfinite(model.jnt_range[j]).all()
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
        data.qvel[:] = velocities(model, rng, 2)
        yield data.qpos.copy(), data.qvel.copy(), controls(model, rng), activations(model, rng)


def sample(model, count, seed):
    """Half visited, half scattered: qpos, qvel, ctrl, act, float32 in value; and why all are
    scattered, if roll-outs are unstable."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    half = count // 2
    exact = model.opt.tolerance, model.opt.iterations
    # On the way to a state nothing has to be exact.
    model.opt.tolerance, model.opt.iterations = 1e-8, 50
    why, rows = None, []
    try:
        rows += [row[:4] for row in visited(model, data, rng, half)]
    except Unstable as e:
        why, rows = str(e), []
    rows += scattered(model, data, rng, count - len(rows))
    model.opt.tolerance, model.opt.iterations = exact
    widths = model.nq, model.nv, model.nu, model.na
    columns = zip(zip(*rows), widths)
    return [single(np.array(column).reshape(count, width)) for column, width in columns], why


def write(data, state, warmstart=0.0):
    mujoco.mj_resetData(data.model, data)
    for field, value in zip((data.qpos, data.qvel, data.ctrl, data.act), state):
        field[:] = value
    mujoco_varied.push(data, state)
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


HFIELD, MESH = int(mujoco.mjtGeom.mjGEOM_HFIELD), int(mujoco.mjtGeom.mjGEOM_MESH)


def is_choice(model, data):
    """Whether a contact is of a pair for which MuJoCo chooses between contacts by the
    path of its search, the order of a mesh's faces, or rounding: which corners of a cap
    it keeps (moving the shapes by 1e-12 changes them in one state of ten), which line
    of a cylinder's side that stands on a corner (any point of its rim that the search
    came by), which of a mesh's edges (the first in the order of its hull's faces)."""
    for a, b in data.contact.geom:
        kinds = {int(model.geom_type[g]) for g in (a, b) if g >= 0}
        if PLANE in kinds:
            continue
        if MESH in kinds and kinds & {BOX, CYLINDER, CAPSULE} or kinds == {MESH}:
            return True
        if kinds in ({CYLINDER}, {CYLINDER, BOX}):
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


RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
COUNTS = "ncon contact_rows limit_rows other_rows iterative iterative_next choice broken".split()
DOUBTS = [x + y for x in ("noise", "noise_single", "search") for y in ("", "_next")]


def answer(model, data, state, warmstart=0.0):
    """qacc, what sensors read, and the next state's qpos, qvel, act, each a copy; `data`
    after the step."""
    write(data, state, warmstart)
    if model.opt.integrator == RK4:
        # Its stages write over qacc.
        mujoco.mj_forward(model, data)
        qacc = data.qacc.copy()
        write(data, state, warmstart)
        mujoco.mj_step(model, data)
    else:
        mujoco.mj_step(model, data)
        qacc = data.qacc.copy()
    sensed = data.sensordata[mujoco_worlds.measured(model)]
    return qacc, sensed, data.qpos.copy(), data.qvel.copy(), data.act.copy()


def moved(a, b):
    """How far two answers are apart, relative: qacc and sensors, next state."""
    gaps = [np.abs(x - y).max(initial=0) / max(1.0, np.abs(x).max(initial=0)) for x, y in zip(a, b)]
    return max(gaps[:2]), max(gaps[2:])


# An engine of single precision rounds these, as it rounds positions. Distances are differences
# of them: a capsule's end may lie within a box's face by less than their rounding.
LENGTHS = "body_pos body_ipos jnt_pos geom_pos geom_size site_pos actuator_cranklength".split()


def doubts(model, data, state, first, smooth, searches, rng):
    """How far MuJoCo's own answer `first` moves; keys as DOUBTS."""
    qpos = np.maximum(np.abs(state[0]), 0.1)

    def sides(size, lengths=()):
        """To one side and to the other: a contact that is about to begin does so on one."""
        qsign = rng.choice((-1.0, 1.0), model.nq)
        own = {name: getattr(model, name).copy() for name in lengths}
        signs = {name: rng.choice((-1.0, 1.0), x.shape) for name, x in own.items()}
        gaps = []
        for side in (size, -size):
            for name, x in own.items():
                getattr(model, name)[:] = x * (1 + side * signs[name])
            there = (state[0] + side * qpos * qsign, *state[1:])
            gaps.append(moved(first, answer(model, data, there)))
        for name, x in own.items():
            getattr(model, name)[:] = x
        return gaps

    # From the smooth acceleration instead of zero: the same optimum, as far as the
    # solver knows it.
    exact = [moved(first, answer(model, data, state, smooth))] + sides(1e-13)
    coarse = exact + sides(6e-8, LENGTHS) + sides(6e-8, LENGTHS)
    search = [(0.0, 0.0)]
    if searches:
        for factor in (100, 0.1):
            model.opt.ccd_tolerance = factor * CCD_TOLERANCE
            search.append(moved(first, answer(model, data, state)))
        model.opt.ccd_tolerance = CCD_TOLERANCE
        # A search that ends where nothing falls any more ends elsewhere.
        search += sides(1e-9)
    most = [max(column) for rows in (exact, coarse, search) for column in zip(*rows)]
    return dict(zip(DOUBTS, most))


def evaluate(model, states, varied=None, starts=None):
    """MuJoCo's answers for all states: a dict of arrays. `varied`: numbers of the model that
    differ between them, the last column of a state. `starts`: warm starts of a solver that does
    not go to the end; nothing is then said about how far its answers move."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(7)
    sensors = len(mujoco_worlds.measured(model))
    wide = {"qacc": model.nv, "sensordata": sensors}
    wide.update({"qpos_next": model.nq, "qvel_next": model.nv, "act_next": model.na})
    out = {name: [] for name in (*wide, *COUNTS, *DOUBTS)}
    for k, state in enumerate(zip(*states)):
        start = 0.0 if starts is None else starts[k]
        if varied:
            state = varied.apply(model, state)
        write(data, state, start)
        mujoco.mj_forward(model, data)
        smooth = data.qacc_smooth.copy()
        row = {"ncon": data.ncon, "iterative": is_iterative(model, data)}
        row["choice"] = is_choice(model, data)
        row.update(zip(("contact_rows", "limit_rows", "other_rows"), rows_of(data)))
        first = answer(model, data, state, start)
        row.update(zip(wide, first))
        # After a step these are the contacts of its last stage.
        row["iterative_next"] = row["iterative"] or is_iterative(model, data)
        finite = all(np.isfinite(x).all() for x in first)
        row["choice"] = row["choice"] or is_choice(model, data)
        row["broken"] = broken(data) or not finite
        if starts is None:
            row.update(doubts(model, data, state, first, smooth, row["iterative_next"], rng))
        else:
            row.update(dict.fromkeys(DOUBTS, 0.0))
        for name, value in row.items():
            out[name].append(value)
    count = len(states[0])
    for name, rows in out.items():
        if name in wide:
            out[name] = np.array(rows, np.float64).reshape(count, wide[name])
        else:
            out[name] = np.array(rows, np.float64 if name in DOUBTS else np.int32)
    if not sensors:
        del out["sensordata"]
    return out


INPUTS = ("qpos", "qvel", "ctrl", "act", "varied")


def save(path, model, states, more):
    inputs = {name: np.asarray(x, np.float32) for name, x in zip(INPUTS, states)}
    np.savez_compressed(path, **inputs, **more)
    return {"nq": model.nq, "nv": model.nv, "nu": model.nu, "na": model.na, "states": len(states[0])}


# A distance is as exact as this in single precision, of shapes of a metre.
TOUCH = 1e-7


def touching(model, states):
    """Pairs of geoms that touch no deeper than single precision tells, in a hundredth of the
    states or more: their names, and in how many."""
    data = mujoco.MjData(model)
    found = collections.Counter()
    for state in zip(*states):
        write(data, state)
        mujoco.mj_forward(model, data)
        close = np.abs(data.contact.dist) < TOUCH
        found.update({tuple(sorted(map(int, pair))) for pair in data.contact.geom[close]})
    name = lambda g: model.geom(g).name or f"geom {g} of {model.body(model.geom_bodyid[g]).name}"
    often = [(pair, n) for pair, n in found.most_common() if 100 * n >= len(states[0])]
    return [[*(name(g) if g >= 0 else "a flex" for g in pair), n] for pair, n in often]


def op_version():
    gymnasium = importlib.util.find_spec("gymnasium")
    folder = gymnasium and os.path.join(gymnasium.submodule_search_locations[0], "envs/mujoco/assets")
    return {"mujoco": mujoco.__version__, "numpy": np.__version__, "gymnasium": folder}


def everywhere(model, states, why=None):
    """Says of states in which MuJoCo always breaks where; `why` says that of roll-outs."""
    data, fastest = mujoco.MjData(model), collections.Counter()
    for state in zip(*(x[:100] for x in states)):
        write(data, state)
        mujoco.mj_forward(model, data)
        if model.nv:
            fastest[int(np.nan_to_num(np.abs(data.qacc), nan=np.inf).argmax())] += 1
    joint = model.dof_jntid[max(fastest, key=fastest.get, default=0)] if model.nv else -1
    at = f", mostly at {name_of_joint(model, int(joint))}" if joint >= 0 else ""
    return f"MuJoCo is unstable in every state{at}; {why or REMEDY}"


def op_states(model, out, states=10000, seed=0):
    """Samples states and writes a reference file; states in which MuJoCo's own answer
    breaks are left out."""
    model = load(model)
    sampled, why = sample(model, states, seed)
    answers = evaluate(model, sampled)
    whole = answers.pop("broken") == 0
    if not whole.any():
        raise Unstable(everywhere(model, sampled, why))
    answers = {name: x[whole] for name, x in answers.items()}
    saved = save(out, model, [x[whole] for x in sampled], answers)
    told = {"touching": touching(model, sampled), "unstable": why}
    return {**saved, "robot": mujoco_worlds.named(model), **told}


def op_written(model, out, states=10000, seed=0, iterations=None):
    """The same with the solver as the file has it, or so many iterations of Newton's: states of
    roll-outs, each with the warm start that it had there."""
    model = load(model, written=True)
    if iterations:
        model.opt.solver, model.opt.iterations = mujoco.mjtSolver.mjSOL_NEWTON, iterations
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    columns = zip(*visited(model, data, rng, states))
    *sampled, starts = (single(np.array(column).reshape(states, -1)) for column in columns)
    answers = evaluate(model, sampled, starts=starts)
    whole = answers.pop("broken") == 0
    if not whole.any():
        raise Unstable(everywhere(model, sampled))
    answers = {name: x[whole] for name, x in answers.items()}
    saved = save(out, model, [x[whole] for x in sampled], {**answers, "warmstart": starts[whole]})
    return {**saved, "robot": mujoco_worlds.named(model)}


def op_varied(model, out, varied, states=1000, seed=0):
    """The same, with fields of the model that differ between states: `varied` lists pairs of
    a field and an element's name."""
    model = load(model)
    sampled, _ = sample(model, states, seed)
    varied = mujoco_varied.Varied(model, varied)
    rows = varied.draw(model, states, np.random.default_rng(seed))
    sampled.append(single(rows))
    answers = evaluate(model, sampled, varied)
    whole = answers.pop("broken") == 0
    if not whole.any():
        raise Unstable(everywhere(model, sampled))
    answers = {name: x[whole] for name, x in answers.items()}
    return save(out, model, [x[whole] for x in sampled], answers)


def op_refresh():
    """Writes the small reference files that are kept with the tests."""
    here = os.path.dirname(os.path.abspath(__file__))
    robots = os.path.join(here, "../../configs/robots")
    for kind, folder in (("robots", robots), ("features", os.path.join(here, "features"))):
        kept = os.path.join(here, "kept", kind)
        os.makedirs(kept, exist_ok=True)
        for old in os.listdir(kept):
            os.unlink(os.path.join(kept, old))
        for name in sorted(n[:-4] for n in os.listdir(folder) if n.endswith(".xml")):
            model = os.path.join(folder, name + ".xml")
            op_states(model, os.path.join(kept, name + ".npz"), 64 if kind == "robots" else 8)
    return {}


def op_saved(model, out):
    """The model's file as MuJoCo itself saves it, with its assets where they are."""
    spec = mujoco.MjSpec.from_file(model)
    folder = os.path.dirname(os.path.abspath(model))
    for name in ("meshdir", "texturedir"):
        setattr(spec, name, os.path.join(folder, getattr(spec, name)))
    mujoco_motors.without_unseen(spec, model)
    spec.compile()
    with open(out, "w") as file:
        file.write(spec.to_xml())
    return {}


def op_evaluate(model, states, out):
    """MuJoCo's answers to the states of a file, into a reference file."""
    model = load(model)
    with np.load(states) as file:
        given = [np.asarray(file[n], np.float64) if n in file else None for n in INPUTS[:4]]
    count = len(given[0])
    given = [np.zeros((count, 0)) if x is None else x for x in given]
    answers = evaluate(model, given)
    answers.pop("broken")
    return save(out, model, given, answers)


def op_trajectories(model, out, trajectories=8, steps=1000, hold=5, seed=0):
    """Roll-outs under recorded controls, each a second time from one float32 ulp away
    (of numbers near zero: an ulp of 0.5) and with a state that is kept in float32.

    Writes the starts qpos, qvel, act [B]; ctrl [B*S,nu], S = steps / hold, each row for
    `hold` steps; path and beside [B*S,nq], the positions after each row.
    """
    model = load(model)
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    starts, rows, path, beside = [], [], [], []
    for _ in range(trajectories):
        start(model, data, rng)
        begin = [single(x) for x in (data.qpos, data.qvel, data.act)]
        plan = [single(controls(model, rng)) for _ in range(steps // hold)]
        starts.append(begin)
        rows += plan
        ulp = np.spacing(np.maximum(np.abs(begin[0]), 0.5).astype(np.float32))
        moved = begin[0] + np.where(rng.random(model.nq) < 0.5, -1.0, 1.0) * ulp
        for kept, qpos in ((path, begin[0]), (beside, single(moved))):
            write(data, (qpos, begin[1], np.zeros(model.nu), begin[2]))
            for ctrl in plan:
                data.ctrl[:] = ctrl
                for _ in range(hold):
                    mujoco.mj_step(model, data)
                    if kept is beside:
                        for x in (data.qpos, data.qvel, data.act):
                            x[:] = single(x)
                kept.append(data.qpos.copy())
    qpos, qvel, act = (np.array(x).reshape(trajectories, -1) for x in zip(*starts))
    wide = np.array(rows).reshape(len(rows), model.nu)
    np.savez(out, qpos=qpos, qvel=qvel, act=act, ctrl=wide, path=np.array(path), beside=np.array(beside))
    return {"rows": len(rows)}


def op_invariants(model, states, out):
    """Energy [K], momentum [K,3], angular momentum about the centre of mass [K,3]."""
    model = load(model)
    data = mujoco.MjData(model)
    energy, momentum, spin = [], [], []
    with np.load(states) as file:
        for qpos, qvel in zip(file["qpos"], file["qvel"]):
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:] = qpos, qvel
            mujoco.mj_forward(model, data)
            mujoco.mj_energyPos(model, data)
            mujoco.mj_energyVel(model, data)
            mujoco.mj_subtreeVel(model, data)
            energy.append(data.energy.sum())
            momentum.append(data.subtree_linvel[0] * model.body_subtreemass[0])
            spin.append(data.subtree_angmom[0].copy())
    np.savez(out, energy=np.array(energy), momentum=np.array(momentum), spin=np.array(spin))
    return {"states": len(energy)}


def op_speed(**request):
    """See mujoco_speed.py, which lies beside this script."""
    import mujoco_speed

    return mujoco_speed.speed(controls=controls, **request)


def op_worlds(what, **request):
    """See mujoco_worlds.py, which lies beside this script."""
    return getattr(mujoco_worlds, what)(**request)


OPS = {
    "version": op_version,
    "states": op_states,
    "written": op_written,
    "varied": op_varied,
    "refresh": op_refresh,
    "saved": op_saved,
    "evaluate": op_evaluate,
    "trajectories": op_trajectories,
    "invariants": op_invariants,
    "speed": op_speed,
    "worlds": op_worlds,
}


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
    commands.add_parser("refresh")
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
