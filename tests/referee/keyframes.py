"""A model from each of its keyframes on, under controls of zero.

python keyframes.py MODEL STEPS prints {name: [[act...] at the start, [qpos...] and [act...]
after so many steps]}.
"""

import json
import sys

import mujoco


def main(path, steps):
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    found = {}
    for key in range(model.nkey):
        mujoco.mj_resetDataKeyframe(model, data, key)
        data.ctrl[:] = 0
        start = data.act.tolist()
        for _ in range(steps):
            mujoco.mj_step(model, data)
        found[model.key(key).name] = [start, data.qpos.tolist(), data.act.tolist()]
    print(json.dumps(found))


main(sys.argv[1], int(sys.argv[2]))
