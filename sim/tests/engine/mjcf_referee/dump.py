"""Prints what MuJoCo makes of MJCF files, one JSON object by path.

Arguments: paths of MJCF files; "gymnasium" stands for all of Gymnasium's.
A file that MuJoCo refuses gets {"error": message}.
"""

import glob
import json
import os
import sys

import mujoco
import numpy as np


def names(m, kind, n):
    return [mujoco.mj_id2name(m, kind, i) for i in range(n)]


def flags(m):
    """Flags that are not at their default."""
    out = []
    for bits, value, on in (
        (mujoco.mjtDisableBit, m.opt.disableflags, False),
        (mujoco.mjtEnableBit, m.opt.enableflags, True),
    ):
        for name, bit in bits.__members__.items():
            if name.startswith(("mjDSBL_", "mjENBL_")) and value & int(bit):
                out.append([name.split("_", 1)[1].lower(), on])
    return out


def tensors(m):
    out = []
    for quat, moments in zip(m.body_iquat, m.body_inertia):
        r = np.zeros(9)
        mujoco.mju_quat2Mat(r, quat)
        r = r.reshape(3, 3)
        out.append((r @ np.diag(moments) @ r.T).ravel().tolist())
    return out


def dump(path):
    try:
        m = mujoco.MjModel.from_xml_path(path)
    except ValueError as e:
        return {"error": str(e)}
    obj = mujoco.mjtObj
    out = {
        "names": {
            "body": names(m, obj.mjOBJ_BODY, m.nbody),
            "joint": names(m, obj.mjOBJ_JOINT, m.njnt),
            "geom": names(m, obj.mjOBJ_GEOM, m.ngeom),
            "site": names(m, obj.mjOBJ_SITE, m.nsite),
            "actuator": names(m, obj.mjOBJ_ACTUATOR, m.nu),
            "tendon": names(m, obj.mjOBJ_TENDON, m.ntendon),
            "equality": names(m, obj.mjOBJ_EQUALITY, m.neq),
            "sensor": names(m, obj.mjOBJ_SENSOR, m.nsensor),
            "key": names(m, obj.mjOBJ_KEY, m.nkey),
        },
        # MuJoCo finds the axes of meshes to about 1e-6.
        "fitted": bool(m.nmesh),
        "flags": flags(m),
        "tensor": tensors(m),
        "option": {
            k: np.ravel(getattr(m.opt, k)).astype(float).tolist()
            for k in (
                "timestep gravity wind magnetic density viscosity impratio integrator cone solver "
                "iterations tolerance ls_iterations ls_tolerance ccd_iterations ccd_tolerance"
            ).split()
        },
    }
    for field in dir(m):
        if field.startswith(
            ("body_", "jnt_", "dof_", "geom_", "site_", "actuator_", "pair_", "exclude_", "key_", "tendon_", "wrap_", "eq_", "sensor_objid", "sensor_refid", "mesh_vert", "mesh_face", "mesh_graph", "hfield_")
        ) or field in ("qpos0", "nq", "nv", "nu", "na", "neq", "ntendon", "qpos_spring"):
            value = np.asarray(getattr(m, field))
            if value.dtype.kind in "biuf":
                rows = value.reshape(len(value), -1) if value.size and value.ndim else value
                out[field] = rows.astype(float).tolist()
    return out


def paths():
    for arg in sys.argv[1:]:
        if arg == "gymnasium":
            import gymnasium

            here = os.path.dirname(gymnasium.__file__)
            yield from sorted(glob.glob(os.path.join(here, "envs/mujoco/assets/*.xml")))
        else:
            yield arg


# NaN and infinities are not JSON; MuJoCo uses neither in what is compared.
print(json.dumps({p: dump(p) for p in paths()}).replace("NaN", "null").replace("Infinity", "1e300"))
