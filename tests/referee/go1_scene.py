"""mjlab's Go1 as one file for `versus_mujoco`: its model with a floor, its position actuators and
armatures, all of its shapes colliding.

    python tests/referee/go1_scene.py FOLDER_OF_MJLAB OUT.xml

Needs mujoco; FOLDER_OF_MJLAB is that of the installed package `mjlab`. Meshes are only seen, so
the file does without them.
"""

import math
import sys
from pathlib import Path

import mujoco

#: Rotor inertia (kg m^2), gear ratios, efforts (N m): asset_zoo/robots/unitree_go1/go1_constants.py.
ROTOR, HIP, KNEE = 0.000111842, (6.0, 23.7), (9.0, 35.55)
FREQUENCY, DAMPING_RATIO = 10 * 2 * math.pi, 2.0


def main(mjlab, out):
    folder = Path(mjlab).resolve() / "asset_zoo/robots/unitree_go1/xmls"
    spec = mujoco.MjSpec.from_file(str(folder / "go1.xml"))
    spec.meshdir = str(folder / "assets")
    spec.option.timestep = 0.005
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(name="floor", type=plane, size=[0, 0, 0.05])
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_FREE:
            continue
        gear, effort = KNEE if "calf" in joint.name else HIP
        joint.armature = ROTOR * gear**2
        kind = mujoco.mjtTrn.mjTRN_JOINT
        act = spec.add_actuator(name=joint.name, target=joint.name, trntype=kind)
        stiffness = joint.armature * FREQUENCY**2
        act.set_to_position(kp=stiffness, kv=2 * DAMPING_RATIO * joint.armature * FREQUENCY)
        act.forcerange = [-effort, effort]
        act.inheritrange = 1
    spec.compile()
    Path(out).write_text(spec.to_xml())


if __name__ == "__main__":
    main(*sys.argv[1:])
