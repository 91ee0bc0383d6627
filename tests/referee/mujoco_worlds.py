"""Worlds that MuJoCo itself steps, so that a policy can be judged by it.

Used by mujoco_states.py (operation "worlds": what = "opened", "reset" or "step").
Numbers travel in two files of float32: what is asked for in IN, the answer in OUT.
Every array is [k][N], the world's index fastest. A step is asked for with controls, with the
delays of actuators in every time step where these change, and behind them, where numbers of the models vary or bodies are pushed: which worlds have news (1
numbers, 2 velocities), all numbers, all velocities. OUT is qpos, qvel, body_pos,
body_quat, body_lin_vel, body_ang_vel, contact_force, actuator_force, qacc, sensordata (of
the sensors that are measured while a world steps), the readings of contact sensors, act and
broken [N], one after the other, as after the last step.
"""

import mujoco
import mujoco_motors
import mujoco_varied
import numpy as np

BROKEN = [
    int(getattr(mujoco.mjtWarning, "mjWARN_" + name))
    for name in ("BADQPOS", "BADQVEL", "BADQACC", "BADCTRL")
]


JOINTS = tuple(int(getattr(mujoco.mjtTrn, "mjTRN_" + k)) for k in ("JOINT", "JOINTINPARENT"))

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
    forces = (int(mujoco.mjtSensor.mjSENS_FORCE), int(mujoco.mjtSensor.mjSENS_TORQUE))
    # The world has no parent to measure against.
    return model.sensor_type[i] not in forces or model.site_bodyid[model.sensor_objid[i]] != 0


def measured(model, sensors=None):
    """Where in sensordata the numbers of `sensors` are: of all that are measured in a step."""
    if sensors is None:
        sensors = [i for i in range(model.nsensor) if is_measured(model, i)]
    first = model.sensor_adr
    ranges = [range(first[i], first[i] + model.sensor_dim[i]) for i in sensors]
    return np.array([place for r in ranges for place in r], int)


class ContactSensor:
    """What a task reads of the contacts between two sets of geoms, over physics steps."""

    def __init__(self, of, with_, reads, above, last):
        self.of, self.with_, self.reads, self.above = frozenset(of), frozenset(with_), reads, above
        self.timed = reads in ("held", "free")
        self.last = last
        self.summed = not (last or self.timed or reads == "count")
        self.width = 3 if reads in ("net", "place", "normal") else 1

    def side(self, a, b):
        """1 where a force on geom b is on the first set, -1 where one on a is, else 0."""
        ahead = b in self.of and a in self.with_
        behind = a in self.of and b in self.with_
        if ahead and behind:
            return 1 if b > a else -1
        return int(ahead) - int(behind)

    def read(self, contacts, before, timestep):
        """After a physics step with these contacts (pairs of geoms, places, normals, forces on the
        second geom): what it read before it goes on."""
        if self.timed:
            there = any(self.side(*geoms) != 0 for geoms, *_ in contacts)
            return before + timestep if there == (self.reads == "held") else np.zeros(1)
        out = np.zeros(self.width)
        for (a, b), place, normal, pressure, force in contacts:
            side = self.side(a, b)
            if side != 0:
                values = {"net": side * force, "place": pressure * place, "normal": side * pressure * normal}
                out += values.get(self.reads, pressure)
        if self.reads == "count":
            return before + (out > self.above)
        return out if self.last else before + out


class Swapped:
    """Numbers of one model that differ between worlds, and are set before a world steps. With a
    model each, every world would have all meshes of its own: 71 MB for a Unitree G1."""

    # Nothing that varies: shapes, pictures, names, counts. Nor do statistics (model.stat), which
    # mj_setConst leaves as they are.
    CONSTANT = tuple("_ mesh_ hfield_ tex_ mat_ skin_ flex_ bvh_ oct_ name text_ tuple_ key_ paths".split())

    def __init__(self, model):
        found = {name: getattr(model, name) for name in dir(model) if not name.startswith(self.CONSTANT)}
        self.arrays = {name: x for name, x in found.items() if isinstance(x, np.ndarray) and x.size}
        self.arrays["gravity"] = model.opt.gravity
        # Boxes around bodies' geoms, in frames of their inertia; those of meshes follow.
        boxes = [first + count for first, count in zip(model.body_bvhadr, model.body_bvhnum) if count]
        self.arrays["boxes"] = model.bvh_aabb[: max(boxes, default=0)]
        self.base = {name: x.copy() for name, x in self.arrays.items()}
        self.changing = set()

    def taken(self):
        """What differs from the model as it was."""
        numbers = {n: x.copy() for n, x in self.arrays.items() if not np.array_equal(x, self.base[n])}
        self.changing.update(numbers)
        return numbers

    def put(self, numbers):
        for name in self.changing:
            self.arrays[name][...] = numbers.get(name, self.base[name])


class Worlds:
    def __init__(self, path, count, timestep, sensors, skipped, given, answer, varied=(), motors=(), changes=None, contacts=()):
        self.model = model = mujoco_motors.model_with(path, motors, changes)
        model.opt.timestep = timestep
        # A world that breaks is to be seen, not started anew.
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        # A flag of the file's that only says what MuJoCo reports.
        model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
        self.given, self.answer = given, answer
        # Numbers of motors' laws are not MuJoCo's.
        laws = {row["actuator"] for row in motors if row["motor"] and not row["motor"]["mujoco"]}
        own = {(f, i) for f, i in varied if f == "delay" or f in ("kp", "kd", "effort") and i in laws}
        self.varied = mujoco_varied.Varied(model, varied, own) if varied else None
        self.swapped = Swapped(model) if varied else None
        self.numbers = [{} for _ in range(count)]
        self.worlds = [mujoco.MjData(model) for _ in range(count)]
        self.motors = [mujoco_motors.Motors(model, motors) for _ in self.worlds]
        # Geoms of a terrain, on a body that Ostler does not have, are its floor.
        terrain = changes and changes["terrain"]
        self.terrain = mujoco_motors.terrain_geoms(model) if terrain else np.zeros(0, int)
        self.floor = terrain["geom"] if terrain else -1
        self.counts = {"nbody": model.nbody - bool(terrain), "ngeom": model.ngeom - len(self.terrain)}
        self.own = np.arange(model.ngeom)
        self.own[self.terrain] = self.floor
        # Ostler leaves out geoms that are only seen.
        self.geoms = np.setdiff1d(np.arange(self.counts["ngeom"]), skipped)
        ngeom, nbody = len(self.geoms), self.counts["nbody"]
        widths = (model.nq, model.nv, *(k * nbody for k in (3, 4, 3, 3)), ngeom, model.nu, model.nv)
        self.sensors = measured(model, sensors)
        self.contacts = [ContactSensor(*sensor) for sensor in contacts]
        each = [s.width for s in self.contacts]
        self.summed = np.repeat([s.summed for s in self.contacts], each)
        self.timed = np.repeat([s.timed for s in self.contacts], each)
        self.readings = np.split(np.arange(len(self.summed)), np.cumsum(each)[:-1])
        widths = (*widths, len(self.sensors), len(self.summed), model.na, 1)
        ends = np.cumsum(widths)
        self.out = np.zeros((ends[-1], count), np.float32)
        self.parts = [slice(end - width, end) for end, width in zip(ends, widths)]
        self.kept = self.parts[-3]  # contact sensors' readings

    def read(self, rows):
        return np.fromfile(self.given, np.float32).reshape(rows, len(self.worlds)).astype(np.float64)

    def enter(self, e):
        """The model gets the numbers of world e."""
        if self.swapped:
            self.swapped.put(self.numbers[e])

    def write(self, e, contact_force, read):
        """What is known of world e now goes into column e."""
        model, data = self.model, self.worlds[e]
        broken = any(data.warning[w].number for w in BROKEN)
        broken |= not all(np.isfinite(x).all() for x in (data.qpos, data.qvel, data.act))
        self.out[-1, e] = broken
        if broken:
            return
        # A step leaves the positions of bodies where it found them.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        bodies = slice(self.counts["nbody"])
        turn, shift = data.cvel[bodies, :3], data.cvel[bodies, 3:]
        arm = data.xpos[bodies] - data.subtree_com[model.body_rootid[bodies]]
        values = (
            data.qpos,
            data.qvel,
            data.xpos[bodies].ravel(),
            data.xquat[bodies].ravel(),
            (shift + np.cross(turn, arm)).ravel(),
            turn.ravel(),
            contact_force[self.geoms],
            data.actuator_force,
            data.qacc,
            data.sensordata[self.sensors],
            read,
            data.act,
        )
        for part, value in zip(self.parts, values):
            self.out[part, e] = value

    def add_contacts(self, data, force, read):
        """Adds each contact's normal force to both geoms, and what contact sensors read."""
        six = np.zeros(6)
        found = []
        # A contact may have no geom.
        geoms = np.where(data.contact.geom >= 0, self.own[data.contact.geom], -1)
        for i, (a, b) in enumerate(geoms):
            mujoco.mj_contactForce(data.model, data, i, six)
            for geom in (a, b):
                if geom >= 0:
                    force[geom] += six[0]
            axes = data.contact.frame[i].reshape(3, 3)
            if data.contact.efc_address[i] < 0:
                continue
            found.append(((a, b), data.contact.pos[i].copy(), axes[0].copy(), six[0], axes.T @ six[:3]))
        for sensor, rows in zip(self.contacts, self.readings):
            read[rows] = sensor.read(found, read[rows], data.model.opt.timestep)

    def advance(self, data, force, read):
        """One time step; what touched at its start is added to `force` and `read`."""
        model = data.model
        if model.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4:
            mujoco.mj_step(model, data)
            self.add_contacts(data, force, read)
            return
        # mj_step in parts: its stages replace the contacts, sensors see the first.
        mujoco.mj_checkPos(model, data)
        mujoco.mj_checkVel(model, data)
        mujoco.mj_forward(model, data)
        mujoco.mj_checkAcc(model, data)
        self.add_contacts(data, force, read)
        mujoco.mj_RungeKutta(model, data, 4)

    def reset(self):
        model = self.model
        rows = self.read(1 + model.nq + model.nv + model.na)
        for e in np.flatnonzero(rows[0]):
            data = self.worlds[e]
            self.enter(e)
            mujoco.mj_resetData(model, data)
            data.qpos[:] = rows[1 : 1 + model.nq, e]
            data.qvel[:] = rows[1 + model.nq :, e][: model.nv]
            data.act[:] = rows[1 + model.nq + model.nv :, e]
            data.sensordata[:] = 0
            data.qacc[:] = 0
            self.motors[e].reset()
            self.write(e, np.zeros(model.ngeom), np.zeros(len(self.summed)))

    def step(self, substeps, delays=0):
        nu, nv = self.model.nu, self.model.nv
        rows = np.fromfile(self.given, np.float32).reshape(-1, len(self.worlds)).astype(np.float64)
        ctrl, news = rows[:nu], rows[nu + delays :]
        redrawn = rows[nu : nu + delays].reshape(substeps, -1, len(self.worlds))
        for e in np.flatnonzero(news[0]) if len(news) else ():
            if self.varied:
                self.swapped.put({})
                state = self.varied.apply(self.model, (news[1:-nv, e],))
                if self.floor >= 0:
                    friction = self.model.geom_friction
                    friction[self.terrain] = friction[self.floor]
                self.numbers[e] = self.swapped.taken()
                self.worlds[e].xfrc_applied[:] = state.xfrc
                self.motors[e].numbers = state.numbers
            if int(news[0, e]) & 2:
                self.worlds[e].qvel[:] = news[-nv:, e]
        for e, data in enumerate(self.worlds):
            if self.out[-1, e]:
                continue
            self.enter(e)
            target = ctrl[:, e]
            force = np.zeros(self.model.ngeom)
            # Times go on.
            read = np.where(self.timed, self.out[self.kept, e].astype(np.float64), 0.0)
            for n in range(substeps):
                self.motors[e].apply(data, target, redrawn[n, :, e])
                self.advance(data, force, read)
            self.write(e, force / substeps, np.where(self.summed, read / substeps, read))


OPEN = {}


def opened(model, **request):
    worlds = OPEN["worlds"] = Worlds(model, **request)
    return {**named(worlds.model), **worlds.counts}


def named(m):
    """What is in a model, by name: sim/engine/src/referee/names.rs compares it."""
    name = lambda kind, i: mujoco.mj_id2name(m, getattr(mujoco.mjtObj, "mjOBJ_" + kind), i) or ""
    joint = lambda i: int(m.actuator_trnid[i, 0]) if int(m.actuator_trntype[i]) in JOINTS else None
    counts = ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "neq", "ntendon", "nsensor")
    return {
        **{count: getattr(m, count) for count in counts},
        "bodies": [[name("BODY", i), int(m.body_parentid[i]), float(m.body_mass[i])] for i in range(m.nbody)],
        "joints": [[name("JOINT", i), int(m.jnt_type[i]), int(m.jnt_bodyid[i])] for i in range(m.njnt)],
        "geoms": [[name("GEOM", i), int(m.geom_bodyid[i])] for i in range(m.ngeom)],
        "actuators": [[name("ACTUATOR", i), joint(i)] for i in range(m.nu)],
        "sensors": [name("SENSOR", i) for i in range(m.nsensor)],
        "tendons": [name("TENDON", i) for i in range(m.ntendon)],
    }


def reset():
    OPEN["worlds"].reset()
    return answer()


def step(substeps, delays=0):
    OPEN["worlds"].step(substeps, delays)
    return answer()


def answer():
    worlds = OPEN["worlds"]
    worlds.out.tofile(worlds.answer)
    return {}
