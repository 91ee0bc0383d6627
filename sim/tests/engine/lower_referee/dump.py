"""What MuJoCo derives from MJCF files: inverse weights, candidate contacts, and the
parameters of the constraints that appear in random states.

Arguments: paths of MJCF files; "gymnasium" stands for all of Gymnasium's.
Prints one JSON object by path.
"""

import glob
import json
import os
import sys

import mujoco
import numpy as np

STATES = 60
CNSTR = mujoco.mjtConstraint


def lists(x):
    return np.asarray(x, float).tolist()


def random_state(m, d, rng, k):
    """From the initial pose, by little or much; free bodies near the floor."""
    mujoco.mj_resetData(m, d)
    if m.nv:
        mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv) * (0.02, 0.3, 1.5)[k % 3], 1)
        d.qvel[:] = rng.normal(size=m.nv)
    for j in range(m.njnt):
        q = m.jnt_qposadr[j]
        if m.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE and k % 2:
            d.qpos[q + 2] = rng.uniform(-0.1, 0.5)
    if m.nu:
        d.ctrl[:] = rng.normal(size=m.nu)
    if m.na:
        d.act[:] = rng.normal(size=m.na)


def contacts(m, d):
    out = []
    for c in d.contact:
        row = {
            "geoms": c.geom.tolist(),
            "dist": c.dist,
            "dim": c.dim,
            "margin": c.includemargin,
            "friction": lists(c.friction),
        }
        if c.efc_address >= 0:
            rows = 1
            if c.dim > 1:
                rows = c.dim if m.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC else 2 * (c.dim - 1)
            at = slice(c.efc_address, c.efc_address + rows)
            row["R"] = lists(d.efc_R[at])
            row["KBIP"] = lists(d.efc_KBIP.reshape(-1, 4)[at])
        out.append(row)
    return out


def rows(m, d):
    """Constraints other than contacts, in order."""
    dense = np.zeros((d.nefc, m.nv))
    if d.nefc:  # the Jacobian may be sparse: by columns
        for v in range(m.nv):
            e = np.zeros(m.nv)
            e[v] = 1
            column = np.zeros(d.nefc)
            mujoco.mj_mulJacVec(m, d, column, e)
            dense[:, v] = column
    out = []
    for i in range(d.nefc):
        kind = CNSTR(d.efc_type[i]).name.removeprefix("mjCNSTR_").lower()
        if kind.startswith("contact"):
            continue
        out.append(
            {
                "kind": kind,
                "id": int(d.efc_id[i]),
                "pos": d.efc_pos[i],
                "margin": d.efc_margin[i],
                "loss": d.efc_frictionloss[i],
                "R": d.efc_R[i],
                "KBIP": lists(d.efc_KBIP.reshape(-1, 4)[i]),
                "J": lists(dense[i]),
            }
        )
    return out


def candidates(path):
    """Pairs of geoms that MuJoCo tests: all touch when margins reach everywhere."""
    m = mujoco.MjModel.from_xml_path(path)
    m.geom_margin[:] = 100
    m.body_margin[:] = 100
    m.pair_margin[:] = 100
    d = mujoco.MjData(m)
    found = set()
    rng = np.random.default_rng(1)
    # Height fields and planes have sides on which nothing touches.
    for k in range(4):
        random_state(m, d, rng, k)
        mujoco.mj_fwdPosition(m, d)
        assert not d.warning[mujoco.mjtWarning.mjWARN_CONTACTFULL].number, path
        found |= {tuple(c.geom.tolist()) for c in d.contact}
    return sorted(found)


def dump(path):
    m = mujoco.MjModel.from_xml_path(path)
    d = mujoco.MjData(m)
    rng = np.random.default_rng(0)
    states = []
    mass = np.zeros((m.nv, m.nv), bool)
    for k in range(STATES):
        random_state(m, d, rng, k)
        mujoco.mj_forward(m, d)
        full = np.zeros((m.nv, m.nv))
        if m.nv:
            mujoco.mj_fullM(m, d, full)
        mass |= full != 0
        most = {}
        for c in d.contact:
            pair = tuple(c.geom.tolist())
            most[pair] = most.get(pair, 0) + 1
        states.append(
            {
                "qpos": lists(d.qpos),
                "xpos": lists(d.xpos),
                "xquat": lists(d.xquat),
                "contacts": contacts(m, d),
                "most": max(most.values(), default=0),
                "rows": rows(m, d),
                "actuator_length": lists(d.actuator_length),
                "tendon_length": lists(d.ten_length),
            }
        )
    return {
        "body_invweight0": lists(m.body_invweight0),
        "dof_invweight0": lists(m.dof_invweight0),
        "tendon_invweight0": lists(m.tendon_invweight0),
        "meaninertia": m.stat.meaninertia,
        "mass": mass.tolist(),
        "candidates": candidates(path),
        "states": states,
    }


def paths():
    for arg in sys.argv[1:]:
        if arg == "gymnasium":
            import gymnasium

            here = os.path.dirname(gymnasium.__file__)
            yield from sorted(glob.glob(os.path.join(here, "envs/mujoco/assets/*.xml")))
        else:
            yield arg


print(json.dumps({p: dump(p) for p in paths()}))
