"""mjlab's Go1 as one file for `versus_mujoco`: its model with a floor, its position actuators and
armatures, all of its shapes colliding.

    python tests/referee/go1_scene.py FOLDER_OF_MJLAB OUT.xml [standing | lying] [field]

`standing` holds the targets of its joints near a pose, `lying` does so with a thousandth of the
gains; `field` gives it waves and noise to stand on.

Needs mujoco; FOLDER_OF_MJLAB is that of the installed package `mjlab`. Meshes are only seen, so
the file does without them.
"""

import math
import sys
from pathlib import Path

import mujoco
import numpy as np

#: Rotor inertia (kg m^2), gear ratios, efforts (N m): asset_zoo/robots/unitree_go1/go1_constants.py.
ROTOR, HIP, KNEE = 0.000111842, (6.0, 23.7), (9.0, 35.55)
FREQUENCY, DAMPING_RATIO = 10 * 2 * math.pi, 2.0


#: Angles at which it stands (rad).
POSE = {"hip": 0.1, "thigh": 0.9, "calf": -1.8}


def hold(spec, gain):
    """Targets within 0.02 rad of the pose, and gains times `gain`."""
    for act in spec.actuators:
        angle = next(angle for joint, angle in POSE.items() if joint in act.name)
        act.inheritrange, act.ctrllimited, act.ctrlrange = 0, 1, [angle - 0.02, angle + 0.02]
        act.gainprm[0], act.biasprm[1] = gain * act.gainprm[0], gain * act.biasprm[1]
        act.biasprm[2] *= gain**0.5


def lay(spec):
    """A field of 12 m by 12 m, 121 by 121 heights, in the floor's place."""
    x = np.linspace(-6, 6, 121)
    noise = np.random.default_rng(1).random((121, 121)) - 0.5
    height = 0.25 * np.sin(2 * x)[None, :] * np.cos(1.5 * x)[:, None] + 0.1 * noise
    height = (height - height.min()) / (height.max() - height.min())
    spec.add_hfield(name="field", nrow=121, ncol=121, size=[6, 6, 0.06, 0.2], userdata=height.ravel())
    floor = next(geom for geom in spec.geoms if geom.name == "floor")
    floor.type, floor.hfieldname = mujoco.mjtGeom.mjGEOM_HFIELD, "field"
    next(body for body in spec.bodies if body.name == "trunk").pos[2] = 0.42


def main(mjlab, out, *words):
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
    if "standing" in words or "lying" in words:
        hold(spec, 1.0 if "standing" in words else 1e-3)
    if "field" in words:
        lay(spec)
    spec.compile()
    Path(out).write_text(spec.to_xml())


if __name__ == "__main__":
    main(*sys.argv[1:])
