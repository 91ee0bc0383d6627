"""What a task changes in a robot's file, in MuJoCo's worlds: a floor, a terrain in its place, a
free base, contacts, options, actuators.

A PD law becomes MuJoCo's own position servo. DC motors and networks are computed here before
every time step and applied by a MuJoCo motor, as Isaac Lab's and mjlab's explicit actuators are:
DC motor: isaaclab/actuators/actuator_pd.py, networks: actuator_net.py. Delays count time steps.
"""

import os

import mujoco
import numpy as np

ACTIVATIONS = {
    "nothing": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "tanh": np.tanh,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
}


ALL = 2**31 - 1


def has_joints(body):
    return bool(body.joints) or any(has_joints(b) for b in body.bodies)


def root_of(spec, name):
    """The robot's body: of that name, else the one on the world that moves and has none."""
    named = next((b for b in spec.bodies if b.name == name), None)
    moving = [b for b in spec.worldbody.bodies if has_joints(b) and not b.name]
    if not named and len(moving) != 1:
        raise ValueError(f"no body is called {name}")
    return named or moving[0]


def raised(body, height):
    """Puts a body at a height (m) above the world's origin."""
    pos, quat, above, way = np.array(body.pos), np.array([1.0, 0, 0, 0]), body.parent, []
    while above.name != "world":
        way.append((np.array(above.pos), np.array(above.quat)))
        above = above.parent
    # Links that do not move become part of the world.
    origin, turn = np.zeros(3), quat
    for p, q in reversed(way):
        there, both = np.zeros(3), np.zeros(4)
        mujoco.mju_rotVecQuat(there, p, turn)
        mujoco.mju_mulQuat(both, turn, q / np.linalg.norm(q))
        origin, turn = origin + there, both
    place, back = np.zeros(3), np.zeros(4)
    mujoco.mju_rotVecQuat(place, pos, turn)
    place += origin
    place[2] = height
    mujoco.mju_negQuat(back, turn)
    mujoco.mju_rotVecQuat(pos, place - origin, back)
    body.pos[:] = pos


def balanced(spec):
    """Inertias whose moments are not positive, which MuJoCo refuses: their mean."""
    for body in spec.bodies:
        full = np.array(body.fullinertia)
        if np.isnan(full[0]):
            continue
        xx, yy, zz, xy, xz, yz = full
        least = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[0]
        mean, zero = (xx + yy + zz) / 3, 1e-14 * max(1, np.abs(full).max())
        if least < 1e-14 and mean > 0 and not (spec.compiler.boundinertia > 0 and least >= -zero):
            body.fullinertia[:] = [mean, mean, mean, 0, 0, 0]


def has_equality(spec, follower, leader):
    """Whether MuJoCo has read it from the file, as version 4 does."""
    return any(
        (e.type, e.name1, e.name2) == (mujoco.mjtEq.mjEQ_JOINT, follower, leader) for e in spec.equalities
    )


def changed(spec, changes):
    """Adds what stands in the tree of bodies and is not there."""
    floor, root = changes["floor"], changes["root"]
    if floor:
        geom = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
        geom.pos[:] = [0, 0, floor["height"]]
        geom.contype = geom.conaffinity = ALL
        geom.condim, geom.friction[:] = 3, floor["friction"]
    if changes["free"]:
        body = root_of(spec, root)
        if not any(j.type == mujoco.mjtJoint.mjJNT_FREE for j in body.joints):
            body.add_freejoint()
    if changes["height"] is not None:
        raised(root_of(spec, root), changes["height"])
    if changes["balance"]:
        spec.compiler.balanceinertia = True
        balanced(spec)
    for follower, leader, polynomial in changes["mimics"]:
        if has_equality(spec, follower, leader):
            continue
        equality = spec.add_equality(name1=follower, name2=leader, type=mujoco.mjtEq.mjEQ_JOINT)
        equality.objtype = mujoco.mjtObj.mjOBJ_JOINT
        equality.data[:5] = polynomial


def laid(spec, terrain):
    """Adds a terrain's boxes and height fields, which touch as its floor did, on a body of their
    own behind all others, so that nothing else gets another number. Returns the heights of the
    fields, in parts of theirs: compiling stretches them."""
    numbers = np.fromfile(terrain["file"], np.float64)
    boxes, numbers = np.split(numbers, [6 * terrain["boxes"]])
    body = spec.worldbody.add_body(name="ostler terrain")
    # Compiling notes what a body's geoms touch.
    touches = terrain["touches"]
    for box in boxes.reshape(-1, 6):
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=box[:3], size=box[3:], **touches)
    heights = []
    for i, (rows, columns) in enumerate(terrain["fields"]):
        (x, y, cell, bottom), field, numbers = np.split(numbers, [4, 4 + (rows + 1) * (columns + 1)])
        low, high = field.min(), field.max()
        # A field of one height has some height, too.
        top = max(high - low, 1e-3)
        half = 0.5 * cell * np.array([columns, rows])
        name = f"ostler terrain {i}"
        data = (field - low) / top
        sizes = {"nrow": rows + 1, "ncol": columns + 1, "size": [*half, top, low - bottom]}
        spec.add_hfield(name=name, userdata=data, **sizes)
        place = [x + half[0], y + half[1], low]
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=name, pos=place, **touches)
        heights.append(data)
    paired(spec, terrain["name"], body)
    # What is between the world and a body is not, either.
    for pair in spec.excludes:
        names = pair.bodyname1, pair.bodyname2
        if "world" in names:
            other = names[names[0] == "world"]
            spec.add_exclude(bodyname1=body.name, bodyname2=other)
    return heights


def paired(spec, floor, body):
    """Pairs of the file with its floor become pairs with every geom of the ground."""
    numbers = "adhesion", "condim", "friction", "gap", "margin", "solimp", "solref", "solreffriction"
    for pair in list(spec.pairs):
        names = [pair.geomname1, pair.geomname2]
        if not floor or floor not in names:
            continue
        values = {name: getattr(pair, name) for name in numbers}
        for i, geom in enumerate(body.geoms):
            geom.name = f"ostler terrain {i}"
            own = [geom.name if name == floor else name for name in names]
            spec.add_pair(geomname1=own[0], geomname2=own[1], **values)
        spec.delete(pair)


def terrain_geoms(model):
    """Numbers of the terrain's geoms."""
    return np.flatnonzero(model.geom_bodyid == model.nbody - 1)


def stand_in(model, terrain, heights):
    """Gives a terrain's fields their heights, and lets nothing touch the floor."""
    floor = terrain["geom"]
    for field, values in enumerate(heights):
        first = model.hfield_adr[model.hfield(f"ostler terrain {field}").id]
        model.hfield_data[first : first + len(values)] = values
    model.geom_contype[floor] = model.geom_conaffinity[floor] = 0


def target(spec, row):
    """The name of the joint that an actuator acts on; one without gets Ostler's."""

    def joints(body):
        yield from body.joints
        for inner in body.bodies:
            yield from joints(inner)

    name = row["target"]
    if all(joint.name != name for joint in spec.joints):
        # In the order of the compiled model, which is not that of spec.joints.
        joint = list(joints(spec.worldbody))[row["joint"]]
        if joint.name:
            raise ValueError(f"joint {row['joint']} is called {joint.name}; here it is {name}")
        joint.name = name
    return name


def actuator(spec, row):
    """The file's actuator that the task changes, or a new one."""
    if row["added"]:
        return spec.add_actuator()
    act = list(spec.actuators)[row["actuator"]]
    if act.name not in ("", row["name"]):
        raise ValueError(f"actuator {row['actuator']} is called {act.name}; here it is {row['name']}")
    return act


def without_unseen(spec, path):
    """Meshes and pictures whose files are missing leave the model where they were only to be
    seen, as Ostler leaves them out: geoms of such meshes become points, so that all keep their
    numbers. Whether there were some."""
    base = os.path.dirname(os.path.abspath(path))

    def lost(assets, folder, files):
        gone = lambda file: file and not os.path.exists(os.path.join(base, folder, file))
        stem = lambda asset: os.path.splitext(os.path.basename(files(asset)[0]))[0]
        # A sky needs no name, and has none where its sides have files of their own.
        return {a.name or stem(a) or i: a for i, a in enumerate(assets) if any(map(gone, files(a)))}

    meshes = lost(spec.meshes, spec.meshdir, lambda mesh: [mesh.file])
    users = [geom for geom in spec.geoms if geom.meshname in meshes]
    for needed in {geom.meshname for geom in users if geom.contype or geom.conaffinity}:
        del meshes[needed]
    for geom in users:
        if geom.meshname in meshes:
            geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_SPHERE, ""
            geom.size[:], geom.mass = 1e-6, 0
    pictures = lost(spec.textures, spec.texturedir, lambda texture: [texture.file, *texture.cubefiles])
    for material in spec.materials:
        material.textures = ["" if name in pictures else name for name in material.textures]
    for asset in [*meshes.values(), *pictures.values()]:
        spec.delete(asset)
    return bool(meshes or pictures)


def read(path):
    """The model of a file, without what is only seen and missing."""
    spec = mujoco.MjSpec.from_file(path)
    return spec.compile() if without_unseen(spec, path) else mujoco.MjModel.from_xml_path(path)


def model_with(path, rows, changes):
    """The model of a file with these actuators and changes."""
    tree = changes["floor"] or changes["free"] or changes["height"] is not None
    tree = tree or changes["balance"] or changes["mimics"] or changes["terrain"]
    spec = mujoco.MjSpec.from_file(path)
    if not (without_unseen(spec, path) or rows or tree):
        return options(mujoco.MjModel.from_xml_path(path), changes)
    changed(spec, changes)
    terrain = changes["terrain"]
    heights = laid(spec, terrain) if terrain else []
    for row in rows:
        act = actuator(spec, row)
        act.name = row["name"]
        act.trntype = mujoco.mjtTrn.mjTRN_JOINT
        act.target = target(spec, row)
        act.gear[:] = row["gear"]
        act.dyntype = mujoco.mjtDyn.mjDYN_NONE
        act.gaintype, act.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        act.gainprm[:3], act.biasprm[:3] = row["gain"], row["bias"]
        act.ctrllimited = act.actlimited = 0
        act.armature = 0  # the joint's has it
        act.forcelimited = int(row["forcerange"] is not None)
        if row["forcerange"] is not None:
            act.forcerange[:] = row["forcerange"]
    model = spec.compile()
    for row in rows:
        joint = model.joint(row["target"])
        joint.armature[:], joint.frictionloss[:] = row["armature"], row["frictionloss"]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    options(model, changes)
    if terrain:
        stand_in(model, terrain, heights)
    return model


def options(model, changes):
    """Sets what a compiled model may change."""
    model.opt.noslip_iterations = changes["noslip_iterations"]
    if changes["iterations"]:
        model.opt.iterations, model.opt.solver = changes["iterations"], mujoco.mjtSolver.mjSOL_NEWTON
    for flag, off in zip(("NATIVECCD", "MULTICCD"), changes["convex_off"]):
        bit = int(getattr(mujoco.mjtDisableBit, "mjDSBL_" + flag, 0))
        model.opt.disableflags = model.opt.disableflags & ~bit | bit * off
    model.opt.integrator = changes["integrator"]
    model.opt.cone = changes["cone"]
    model.opt.impratio = changes["impratio"]
    for row in changes["geoms"]:
        g = row.pop("geom")
        for key, value in row.items():
            getattr(model, "geom_" + key)[g] = value
    return model


class Network:
    def __init__(self, config):
        self.config = config
        matrix = lambda l: np.reshape(l["weight"], (-1, l["inputs"]))
        self.cells = [(matrix(l), np.array(l["bias"])) for l in config["cells"]]
        self.layers = [(matrix(l), np.array(l["bias"]), ACTIVATIONS[l["then"]]) for l in config["layers"]]
        self.reset()

    def reset(self):
        back = max(self.config["steps"], default=0)
        self.past = np.zeros((back + 1, 2))
        self.state = [(np.zeros(len(b) // 4), np.zeros(len(b) // 4)) for _, b in self.cells]

    def effort(self, error, vel):
        by_error, by_vel, by_effort = self.config["scales"]
        if self.cells:
            x = np.array([error * by_error, vel * by_vel])
            sigmoid = ACTIVATIONS["sigmoid"]
            for k, (weight, bias) in enumerate(self.cells):
                h, c = self.state[k]
                i, f, g, o = np.split(weight @ np.concatenate([x, h]) + bias, 4)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                x = sigmoid(o) * np.tanh(c)
                self.state[k] = (x, c)
        else:
            self.past = np.roll(self.past, 1, axis=0)
            self.past[0] = error, vel
            seen = self.past[self.config["steps"]]
            parts = [seen[:, 0] * by_error, seen[:, 1] * by_vel]
            x = np.concatenate(parts[::-1] if self.config["velocities_first"] else parts)
        for weight, bias, then in self.layers:
            x = then(weight @ x + bias)
        return x[0] * by_effort


class Motors:
    """The motors of one world. `numbers` are delay, kp, kd and effort of some of them."""

    def __init__(self, model, rows):
        self.rows = [row for row in rows if row["motor"]]
        self.places = [(model.jnt_qposadr[r["joint"]], model.jnt_dofadr[r["joint"]]) for r in self.rows]
        self.networks = [Network(r["motor"]["network"]) if r["motor"]["network"] else None for r in self.rows]
        self.numbers = {}
        self.reset()

    def reset(self):
        self.way = [None for _ in self.rows]
        for network in self.networks:
            if network:
                network.reset()

    def apply(self, data, target, redrawn=()):
        """Sets the controls of a time step; `target` [nu] is what the task gave, `redrawn` has
        the delays that change within an episode."""
        data.ctrl[:] = target
        for i, (row, (q, d)) in enumerate(zip(self.rows, self.places)):
            u, law = row["actuator"], row["motor"]
            number = lambda name, own: self.numbers.get((name, u), own)
            if self.way[i] is None:
                self.way[i] = [target[u]] * (law["most_delay"] + 1)
            self.way[i] = [target[u], *self.way[i][:-1]]
            late = number("delay", law["delay"])
            if law["redrawn"] is not None and len(redrawn):
                late = redrawn[law["redrawn"]]
            goal = self.way[i][int(late)]
            if law["mujoco"]:
                data.ctrl[u] = goal
                continue
            error, vel = goal - data.qpos[q], data.qvel[d]
            if self.networks[i]:
                effort = self.networks[i].effort(error, vel)
            else:
                kp, kd = law["gains"]
                effort = number("kp", kp) * error - number("kd", kd) * vel
            most = number("effort", np.inf if law["effort"] is None else law["effort"])
            low, high = -most, most
            if law["fall"]:
                stall, speed = law["fall"]
                end = speed * (1 + most / stall)
                part = np.clip(vel, -end, end) / speed
                low, high = max(stall * (-1 - part), -most), min(stall * (1 - part), most)
            data.ctrl[u] = np.clip(effort, low, high)
