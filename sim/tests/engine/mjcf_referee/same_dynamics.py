"""Accelerations of two MJCF files on the same random states, in MuJoCo.

Arguments: pairs OURS THEIRS, where THEIRS is the stem of one of Gymnasium's
files. Prints one JSON object: OURS -> {contacts, error}, where error is the
largest difference of qacc, relative to its largest entry.
"""

import json
import os
import sys

import gymnasium
import mujoco
import numpy as np

ASSETS = os.path.join(os.path.dirname(gymnasium.__file__), "envs/mujoco/assets")


def compare(ours, theirs):
    models = [
        mujoco.MjModel.from_xml_path(p) for p in (ours, os.path.join(ASSETS, theirs + ".xml"))
    ]
    for m in models:
        m.opt.tolerance, m.opt.ls_tolerance, m.opt.iterations = 0, 1e-12, 200
    a, b = models
    if not np.array_equal(a.qpos0, b.qpos0) or a.nu != b.nu:
        return {"error": 1e300, "contacts": 0}
    datas = [mujoco.MjData(m) for m in models]
    rng = np.random.default_rng(0)
    error, contacts = 0.0, 0
    for _ in range(200):
        qpos = b.qpos0 + 0.3 * rng.normal(size=b.nq)
        # Down to the floor, where the robot has one.
        height = 2 if b.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE else 1
        if b.nq > 3:
            qpos[height] -= 0.3
        qvel = 2 * rng.normal(size=b.nv)
        ctrl = 4 * rng.uniform(-1, 1, size=b.nu)
        for m, d in zip(models, datas):
            mujoco.mj_resetData(m, d)
            d.qpos[:], d.qvel[:], d.ctrl[:] = qpos, qvel, ctrl
            mujoco.mj_normalizeQuat(m, d.qpos)
            mujoco.mj_forward(m, d)
        x, y = (d.qacc for d in datas)
        error = max(error, np.abs(x - y).max() / max(1.0, np.abs(y).max()))
        if datas[0].ncon != datas[1].ncon:
            error = 1e300
        contacts += datas[1].ncon
    options = all(
        np.array_equal(getattr(a.opt, k), getattr(b.opt, k))
        for k in ("timestep", "integrator", "gravity", "cone")
    )
    return {"error": error if options else 1e300, "contacts": contacts}


args = sys.argv[1:]
print(json.dumps({o: compare(o, t) for o, t in zip(args[::2], args[1::2])}))
