"""Prints MuJoCo's sensor readings in random states, with the state they are of.

Arguments: paths of MJCF files. One JSON object: path -> list of states, each with qpos,
qvel, frames of the bodies (pos, quat, lin, ang), force of the actuators, readings by
sensor, and the same without cutoffs (uncut).
"""

import json
import sys

import mujoco
import numpy as np


def single(x):
    return np.asarray(x, np.float32).astype(np.float64)


def read(model, data):
    return {model.sensor(i).name: data.sensor(i).data.tolist() for i in range(model.nsensor)}


def states(model, count):
    rng = np.random.default_rng(3)
    data = mujoco.MjData(model)
    for _ in range(count):
        data.qpos[:] = model.qpos0 + rng.uniform(-0.7, 0.7, model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        data.qpos[:] = single(data.qpos)
        data.qvel[:] = single(rng.normal(size=model.nv))
        data.ctrl[:] = rng.uniform(-1, 1, model.nu)
        mujoco.mj_forward(model, data)
        lin, ang = [], []
        for body in range(model.nbody):
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
            ang.extend(velocity[:3])
            lin.extend(velocity[3:])
        readings = read(model, data)
        cutoff = model.sensor_cutoff.copy()
        model.sensor_cutoff[:] = 0
        mujoco.mj_forward(model, data)
        uncut = read(model, data)
        model.sensor_cutoff[:] = cutoff
        yield {
            "qpos": data.qpos.tolist(),
            "qvel": data.qvel.tolist(),
            "pos": data.xpos.ravel().tolist(),
            "quat": data.xquat.ravel().tolist(),
            "lin": lin,
            "ang": ang,
            "force": data.actuator_force.tolist(),
            "readings": readings,
            "uncut": uncut,
        }


answer = {}
for path in sys.argv[1:]:
    answer[path] = list(states(mujoco.MjModel.from_xml_path(path), 16))
print(json.dumps(answer))
