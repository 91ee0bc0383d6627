"""Constraint problems of a robot with elliptic cones, and MuJoCo's own accelerations.

    python solver_problems.py ROBOT.xml COUNT OUT

The robot stands or lies on a floor after random pushes; each state has a contact. OUT.in gets the
problems as float32, laid out as sim/tests/engine/cuda/warp_newton.cu reads them, OUT.qacc the
accelerations of mj_forward after 200 iterations without a tolerance. Prints the sizes as JSON.
"""

import json
import sys

import mujoco
import numpy as np

ELLIPTIC = mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC
ROWS, CONTACTS, DIM = 32, 16, 6


def model(path):
    spec = mujoco.MjSpec.from_file(path)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    # As mjlab's task: feet with all friction, other parts without.
    for geom in spec.geoms:
        if "_collision" in geom.name:
            foot = "foot" in geom.name
            geom.condim, geom.priority = (6, 1) if foot else (1, 0)
            if foot:
                geom.friction = [1, 5e-3, 5e-4]
    option = spec.option
    option.cone, option.impratio, option.timestep = mujoco.mjtCone.mjCONE_ELLIPTIC, 10, 0.005
    option.iterations, option.ls_iterations, option.tolerance = 200, 100, 0
    option.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return spec.compile()


def states(m, rng):
    """States of 200-step falls, each with the acceleration of the step before it."""
    d = mujoco.MjData(m)
    while True:
        mujoco.mj_resetData(m, d)
        d.qpos[7:] = m.jnt_range[1:].mean(1) + rng.uniform(-0.5, 0.5, m.nq - 7)
        turn = rng.normal(size=4)
        d.qpos[3:7] = [1, 0, 0, 0] if rng.random() < 0.5 else turn / np.linalg.norm(turn)
        d.qpos[2] = 0.3
        d.qvel[:] = rng.normal(size=m.nv) * 0.5
        for step in range(200):
            d.qfrc_applied[6:] = rng.normal(size=m.nv - 6) * 3
            before = d.qacc.copy()
            mujoco.mj_step(m, d)
            if step >= 20 and step % 12 == 0:
                mujoco.mj_forward(m, d)
                yield d, before


def packed(m, d, before):
    """One problem, or None where it is too large or has no contact."""
    kinds = d.efc_type[: d.nefc]
    plain = np.flatnonzero(kinds != ELLIPTIC)
    cones = [c for c in d.contact[: d.ncon] if c.efc_address >= 0 and kinds[c.efc_address] == ELLIPTIC]
    if len(plain) > ROWS or len(cones) > CONTACTS or not d.ncon:
        return None
    mass = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, mass)
    every = d.efc_J.reshape(d.nefc, m.nv)
    places = [(i, r) for i, r in enumerate(plain)]
    places += [(ROWS + DIM * k + i, c.efc_address + i) for k, c in enumerate(cones) for i in range(c.dim)]
    jacobian = np.zeros((ROWS + DIM * CONTACTS, m.nv))
    columns = np.zeros((4, ROWS + DIM * CONTACTS))
    for to, row in places:
        jacobian[to] = every[row]
        columns[:, to] = d.efc_D[row], d.efc_aref[row], d.efc_frictionloss[row], kinds[row]
    contacts = np.zeros((CONTACTS, DIM))
    for k, c in enumerate(cones):
        contacts[k, 0] = c.mu
        contacts[k, 1 : c.dim] = c.friction[: c.dim - 1]
    sizes = [len(plain), len(cones)]
    return np.concatenate(
        [mass.ravel(), d.qfrc_smooth, before, jacobian.ravel(), columns.ravel(), sizes, contacts.ravel()]
    )


def main(path, count, out):
    m = model(path)
    problems, answers = [], []
    for d, before in states(m, np.random.default_rng(1)):
        problem = packed(m, d, before)
        if problem is not None:
            problems.append(problem)
            answers.append(d.qacc.copy())
        if len(problems) == count:
            break
    np.array(problems, np.float32).tofile(out + ".in")
    np.array(answers, np.float32).tofile(out + ".qacc")
    print(json.dumps({"dofs": m.nv, "rows": ROWS, "contacts": CONTACTS, "dim": DIM}))


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
