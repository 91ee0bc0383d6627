"""Worlds that MuJoCo itself steps, so that a policy can be judged by it.

Used by mujoco_states.py (operation "worlds": what = "opened", "reset" or "step").
Numbers travel in two files of float32: what is asked for in IN, the answer in OUT.
Every array is [k][N], the world's index fastest. A step is asked for with controls, and
behind them, where numbers of the models vary or bodies are pushed: which worlds have news (1
numbers, 2 velocities), all numbers, all velocities. OUT is qpos, qvel, body_pos,
body_quat, body_lin_vel, body_ang_vel, contact_force, actuator_force, qacc, sensordata (of
the sensors that are measured while a world steps) and broken [N], one after
the other, as after the last step.
"""

import copy

import mujoco
import mujoco_motors
import mujoco_varied
import numpy as np

BROKEN = [
    int(getattr(mujoco.mjtWarning, "mjWARN_" + name))
    for name in ("BADQPOS", "BADQVEL", "BADQACC", "BADCTRL")
]


MEASURED = {
    int(getattr(mujoco.mjtSensor, "mjSENS_" + name))
    for name in ("ACCELEROMETER", "FORCE", "TORQUE", "TOUCH", "FRAMELINACC", "FRAMEANGACC")
}


def is_measured(model, i):
    """Whether a sensor is one that Ostler measures in a step."""
    if model.sensor_type[i] not in MEASURED:
        return False
    if model.sensor_objtype[i] == mujoco.mjtObj.mjOBJ_CAMERA:
        return False
    if any(np.any(x[i]) for x in (model.sensor_delay, model.sensor_interval, model.sensor_history)):
        return False
    forces = (mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE)
    # The world has no parent to measure against.
    return model.sensor_type[i] not in forces or model.site_bodyid[model.sensor_objid[i]] != 0


def measured(model, sensors=None):
    """Where in sensordata the numbers of `sensors` are: of all that are measured in a step."""
    if sensors is None:
        sensors = [i for i in range(model.nsensor) if is_measured(model, i)]
    first = model.sensor_adr
    ranges = [range(first[i], first[i] + model.sensor_dim[i]) for i in sensors]
    return np.array([place for r in ranges for place in r], int)


class Worlds:
    def __init__(self, path, count, timestep, sensors, skipped, given, answer, varied=(), motors=(), changes=None):
        self.model = model = mujoco_motors.model_with(path, motors, changes)
        model.opt.timestep = timestep
        # A world that breaks is to be seen, not started anew.
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        # A flag of the file's that only says what MuJoCo reports.
        model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
        self.given, self.answer = given, answer
        # Worlds with numbers of their own have models of their own.
        # Numbers of motors' laws are not MuJoCo's.
        laws = {row["actuator"] for row in motors if row["motor"] and not row["motor"]["mujoco"]}
        own = {(f, i) for f, i in varied if f == "delay" or f in ("kp", "kd", "effort") and i in laws}
        self.varied = mujoco_varied.Varied(model, varied, own) if varied else None
        self.models = [copy.copy(model) if varied else model for _ in range(count)]
        self.worlds = [mujoco.MjData(own) for own in self.models]
        self.motors = [mujoco_motors.Motors(model, motors) for _ in self.worlds]
        # Ostler leaves out geoms that are only seen.
        self.geoms = np.setdiff1d(np.arange(model.ngeom), skipped)
        ngeom = len(self.geoms)
        widths = (model.nq, model.nv, *(k * model.nbody for k in (3, 4, 3, 3)), ngeom, model.nu, model.nv)
        self.sensors = measured(model, sensors)
        widths = (*widths, len(self.sensors), 1)
        ends = np.cumsum(widths)
        self.out = np.zeros((ends[-1], count), np.float32)
        self.parts = [slice(end - width, end) for end, width in zip(ends, widths)]

    def read(self, rows):
        return np.fromfile(self.given, np.float32).reshape(rows, len(self.worlds)).astype(np.float64)

    def write(self, e, contact_force):
        """What is known of world e now goes into column e."""
        model, data = self.models[e], self.worlds[e]
        broken = any(data.warning[w].number for w in BROKEN)
        if not (broken or np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all()):
            broken = True
        self.out[-1, e] = broken
        if broken:
            return
        # A step leaves the positions of bodies where it found them.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        turn, shift = data.cvel[:, :3], data.cvel[:, 3:]
        arm = data.xpos - data.subtree_com[model.body_rootid]
        values = (
            data.qpos,
            data.qvel,
            data.xpos.ravel(),
            data.xquat.ravel(),
            (shift + np.cross(turn, arm)).ravel(),
            turn.ravel(),
            contact_force[self.geoms],
            data.actuator_force,
            data.qacc,
            data.sensordata[self.sensors],
        )
        for part, value in zip(self.parts, values):
            self.out[part, e] = value

    def add_contacts(self, data, force):
        """Adds each contact's normal force to both geoms."""
        six = np.zeros(6)
        for i, (a, b) in enumerate(data.contact.geom):
            mujoco.mj_contactForce(data.model, data, i, six)
            for geom in (a, b):
                if geom >= 0:
                    force[geom] += six[0]

    def advance(self, data, force):
        """One time step; what touched at its start is added to `force`."""
        model = data.model
        if model.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4:
            mujoco.mj_step(model, data)
            self.add_contacts(data, force)
            return
        # mj_step in parts: its stages replace the contacts, sensors see the first.
        mujoco.mj_checkPos(model, data)
        mujoco.mj_checkVel(model, data)
        mujoco.mj_forward(model, data)
        mujoco.mj_checkAcc(model, data)
        self.add_contacts(data, force)
        mujoco.mj_RungeKutta(model, data, 4)

    def reset(self):
        model = self.model
        rows = self.read(1 + model.nq + model.nv)
        for e in np.flatnonzero(rows[0]):
            data = self.worlds[e]
            mujoco.mj_resetData(self.models[e], data)
            data.qpos[:] = rows[1 : 1 + model.nq, e]
            data.qvel[:] = rows[1 + model.nq :, e]
            data.sensordata[:] = 0
            data.qacc[:] = 0
            self.motors[e].reset()
            self.write(e, np.zeros(model.ngeom))

    def step(self, substeps):
        nu, nv = self.model.nu, self.model.nv
        rows = np.fromfile(self.given, np.float32).reshape(-1, len(self.worlds)).astype(np.float64)
        ctrl, news = rows[:nu], rows[nu:]
        for e in np.flatnonzero(news[0]) if len(news) else ():
            if self.varied:
                state = self.varied.apply(self.models[e], (news[1:-nv, e],))
                self.worlds[e].xfrc_applied[:] = state.xfrc
                self.motors[e].numbers = state.numbers
            if int(news[0, e]) & 2:
                self.worlds[e].qvel[:] = news[-nv:, e]
        for e, data in enumerate(self.worlds):
            if self.out[-1, e]:
                continue
            target = ctrl[:, e]
            force = np.zeros(self.model.ngeom)
            for _ in range(substeps):
                self.motors[e].apply(data, target)
                self.advance(data, force)
            self.write(e, force / substeps)


OPEN = {}


def opened(model, **request):
    worlds = OPEN["worlds"] = Worlds(model, **request)
    m = worlds.model
    return {"nq": m.nq, "nv": m.nv, "nu": m.nu, "nbody": m.nbody, "ngeom": m.ngeom}


def reset():
    OPEN["worlds"].reset()
    return answer()


def step(substeps):
    OPEN["worlds"].step(substeps)
    return answer()


def answer():
    worlds = OPEN["worlds"]
    worlds.out.tofile(worlds.answer)
    return {}
