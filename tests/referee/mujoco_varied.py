"""Fields of a MuJoCo model that differ between environments: `Varied` sets them and lets
MuJoCo work out what follows (mj_setConst).

A row has the numbers of all fields, one after the other: as sim/model/src/varied.rs has them.
"""

import mujoco
import numpy as np

FORCE = {}


class Outside(tuple):
    """A state with the forces from outside, body by body [nbody, 6]."""

    xfrc = None
    # Of motors' laws: by field and actuator.
    numbers = {}


def push(data, state):
    """Outside forces of a state."""
    xfrc = getattr(state, "xfrc", None)
    if xfrc is None:
        xfrc = FORCE.get(id(data.model))
    if xfrc is not None:
        data.xfrc_applied[:] = xfrc


def principal(tensor):
    """Principal moments and axes (w, x, y, z) of xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = tensor
    moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, axes.flatten())
    return moments, quat


def tensor_of(moments, quat):
    """xx yy zz xy xz yz."""
    mat = np.zeros(9)
    mujoco.mju_quat2Mat(mat, quat)
    mat = mat.reshape(3, 3)
    full = mat @ np.diag(moments) @ mat.T
    return np.array([full[0, 0], full[1, 1], full[2, 2], full[0, 1], full[0, 2], full[1, 2]])


def reflect(model):
    """Makes what actuators add to damping and armature part of their joints' and tendons' own:
    Ostler has one number for both, which fields of a model replace."""
    joint, in_parent, tendon = (
        int(getattr(mujoco.mjtTrn, "mjTRN_" + k)) for k in ("JOINT", "JOINTINPARENT", "TENDON")
    )
    own = (model.actuator_damping, model.actuator_armature)
    if not any(x.any() for x in own):
        return
    for act in range(model.nu):
        square, target = model.actuator_gear[act, 0] ** 2, model.actuator_trnid[act, 0]
        if model.actuator_trntype[act] in (joint, in_parent):
            at = model.dof_jntid == target
            to = (model.dof_damping, model.dof_armature)
        elif model.actuator_trntype[act] == tendon:
            at, to = target, (model.tendon_damping, model.tendon_armature)
        else:
            continue
        for into, from_ in zip(to, own):
            into[at] += square * from_[act]
            from_[act] = 0
    mujoco.mj_setConst(model, mujoco.MjData(model))


class Varied:
    """Fields: a list of pairs of a name and an element's number, or a geom's name."""

    WIDTH = {"gravity": 3, "com": 3, "moments": 3, "friction": 3, "tensor": 6, "wrench": 6}

    def __init__(self, model, pairs, own=()):
        self.own = own
        reflect(model)
        self.scratch = mujoco.MjData(model)
        self.fields = [(field, self.find(model, field, element)) for field, element in pairs]
        self.first = [self.get(model, field, i) for field, i in self.fields]

    @staticmethod
    def find(model, field, element):
        return element if isinstance(element, int) else model.geom(element).id

    @staticmethod
    def dofs(model, joint):
        width = {0: 6, 1: 3}.get(int(model.jnt_type[joint]), 1)
        first = model.jnt_dofadr[joint]
        return slice(first, first + width)

    def get(self, model, field, i):
        """The model's own numbers."""
        if (field, i) in self.own:
            return np.zeros(1)
        if field == "tensor":
            return tensor_of(model.body_inertia[i], model.body_iquat[i])
        if field == "wrench":
            return np.zeros(6)
        if field in ("armature", "damping", "frictionloss"):
            return getattr(model, "dof_" + field)[self.dofs(model, i)][:1].copy()
        table = {
            "gravity": lambda: model.opt.gravity,
            "mass": lambda: model.body_mass[i : i + 1],
            "com": lambda: model.body_ipos[i],
            "moments": lambda: model.body_inertia[i],
            "friction": lambda: model.geom_friction[i],
            "stiffness": lambda: model.jnt_stiffness[i : i + 1],
            "qpos0": lambda: model.qpos0[model.jnt_qposadr[i] :][:1],
            "gain": lambda: model.actuator_gainprm[i, :1],
            "kp": lambda: model.actuator_gainprm[i, 4 * self.motor(model, i) :][:1],
            "kd": lambda: model.actuator_gainprm[i, 6:7]
            if self.motor(model, i)
            else -model.actuator_biasprm[i, 2:3],
            "effort": lambda: model.actuator_forcerange[i, 1:],
        }
        return np.array(table[field](), np.float64)

    def motor(self, model, i):
        """Whether an actuator is a DC motor, which has its controller's gains elsewhere."""
        return model.actuator_gaintype[i] == int(mujoco.mjtGain.mjGAIN_DCMOTOR)

    def set(self, model, field, i, x):
        if field == "tensor":
            model.body_inertia[i], model.body_iquat[i] = principal(x)
        elif field in ("armature", "damping", "frictionloss"):
            getattr(model, "dof_" + field)[self.dofs(model, i)] = x[0]
        elif field == "gravity":
            model.opt.gravity[:] = x
        elif field == "mass":
            model.body_mass[i] = x[0]
        elif field == "com":
            model.body_ipos[i] = x
        elif field == "moments":
            model.body_inertia[i] = x
        elif field == "friction":
            model.geom_friction[i] = x
        elif field == "stiffness":
            model.jnt_stiffness[i] = x[0]
        elif field == "qpos0":
            model.qpos0[model.jnt_qposadr[i]] = x[0]
        elif field in ("kp", "kd") and self.motor(model, i):
            model.actuator_gainprm[i, 4 if field == "kp" else 6] = x[0]
        elif field == "gain":
            model.actuator_gainprm[i, 0] = x[0]
        elif field == "kp":
            model.actuator_gainprm[i, 0] = x[0]
            model.actuator_biasprm[i, 1] = -x[0]
        elif field == "kd":
            model.actuator_biasprm[i, 2] = -x[0]
        elif field == "effort":
            model.actuator_forcelimited[i] = 1
            model.actuator_forcerange[i] = (-x[0], x[0])

    def draw(self, model, count, rng):
        """Rows of possible numbers around the model's own."""
        rows = []
        for _ in range(count):
            row = []
            for (field, i), first in zip(self.fields, self.first):
                width = self.WIDTH.get(field, 1)
                if field == "wrench":
                    x = rng.normal(size=6) * 20
                elif field == "gravity":
                    x = first + rng.normal(size=3)
                elif field == "com":
                    x = first + rng.uniform(-0.05, 0.05, 3)
                elif field == "qpos0":
                    x = first + rng.uniform(-0.1, 0.1, 1)
                elif field == "tensor":
                    # Of a second moment that is stretched: it stays possible.
                    x = first * rng.uniform(0.7, 1.4)
                    shear = rng.uniform(-0.05, 0.05, 3) * x[:3].min()
                    x[3:] += shear
                elif field == "effort":
                    x = rng.uniform(0.3, 1.5, 1) * (first if 0 < first[0] < 1e6 else 1.0)
                elif not first.any():
                    x = rng.uniform(0.0, 0.5, width)
                else:
                    x = first * rng.uniform(0.5, 1.6, width)
                row += list(x)
            rows.append(row)
        return np.array(rows, np.float64).reshape(count, -1)

    def apply(self, model, state):
        """Sets the fields to a state's last column; returns the state without it."""
        row = state[-1]
        xfrc = np.zeros((model.nbody, 6))
        at, numbers = 0, {}
        for field, i in self.fields:
            width = self.WIDTH.get(field, 1)
            x = row[at : at + width]
            at += width
            if field == "wrench":
                xfrc[i] = x
            elif (field, i) in self.own:
                numbers[field, i] = x[0]
            else:
                self.set(model, field, i, x)
        mujoco.mj_setConst(model, self.scratch)
        out = Outside(state[:-1])
        FORCE[id(model)] = xfrc
        out.xfrc, out.numbers = xfrc, numbers
        return out
