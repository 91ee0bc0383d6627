"""Exported C policies move robots in MuJoCo's own worlds; their returns are worked out here.

    closed_loop.py TASK FOLDER NAME ROBOT.xml STARTS.json

TASK: `quadruped` or `crab`, a class below: rewards and ends by NumPy, from what MuJoCo knows.
STARTS.json has the starts and commands of an evaluation, and how its first steps went. Prints one
JSON object: returns and lengths of the episodes; by engine, the largest errors of positions and of
rewards in the earliest steps, and which share of all compared ones is within a tolerance.

What the loop has of a training: the delays that the task gives to sensors and outputs (a robot has
its own; here they are made). What it has not: noise, biases, events.
"""

import json
import sys
from pathlib import Path

import mujoco
import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "referee"))
import exported

exported.SHIM += """
void action(const void *m, float *to);
void action(const void *m, float *to) {{
  int k;
  for (k = 0; k < {n}_NUM_OUTPUTS; k++) to[k] = ((const {n}_state *)m)->action[k];
}}
"""


class Late:
    """Values by so many control steps late; before the first one has come, that."""

    def __init__(self, steps):
        self.steps, self.way = steps, []

    def __call__(self, x):
        self.way.append(np.array(x, float))
        return self.way[max(0, len(self.way) - 1 - self.steps)]


class Robot:
    """One world, and what can be known of it."""

    def __init__(self, file):
        self.model = mujoco.MjModel.from_xml_path(file)
        self.data = mujoco.MjData(self.model)

    def id(self, kind, name):
        found = mujoco.mj_name2id(self.model, getattr(mujoco.mjtObj, "mjOBJ_" + kind), name)
        assert found >= 0, (kind, name)
        return found

    def begin(self, qpos, qvel):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        self.data.sensordata[:] = 0
        self.force = np.zeros(self.model.ngeom)
        self.frames()

    def frames(self):
        """Poses and velocities of the present state; what sensors measured stays."""
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_comVel(self.model, self.data)

    def step(self, control, substeps):
        self.data.ctrl[:] = control
        self.force[:] = 0
        six = np.zeros(6)
        for _ in range(substeps):
            mujoco.mj_step(self.model, self.data)
            for i, pair in enumerate(self.data.contact.geom):
                mujoco.mj_contactForce(self.model, self.data, i, six)
                self.force[pair] += six[0] / substeps
        self.frames()

    def velocity(self, kind, name, own):
        """Angular and linear, in the element's axes or in the world's."""
        six = np.zeros(6)
        kinds = {"BODY": mujoco.mjtObj.mjOBJ_XBODY, "SITE": mujoco.mjtObj.mjOBJ_SITE}
        mujoco.mj_objectVelocity(self.model, self.data, kinds[kind], self.id(kind, name), six, int(own))
        return six[:3], six[3:]

    def turn(self, body):
        return self.data.xmat[self.id("BODY", body)].reshape(3, 3)

    def site(self, name):
        return self.data.site_xpos[self.id("SITE", name)]

    def contact(self, *geoms):
        """Mean normal force on each over the last control step (N)."""
        return np.array([self.force[self.id("GEOM", g)] for g in geoms])

    def joint(self, name, velocity=False):
        j = self.id("JOINT", name)
        ball = self.model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL
        if velocity:
            at = self.model.jnt_dofadr[j]
            return self.data.qvel[at : at + 3] if ball else self.data.qvel[at]
        at = self.model.jnt_qposadr[j]
        return self.data.qpos[at : at + 4] if ball else self.data.qpos[at]

    def sensor(self, name):
        s = self.id("SENSOR", name)
        at = self.model.sensor_adr[s]
        return self.data.sensordata[at : at + self.model.sensor_dim[s]]

    def measured(self, field, joints):
        """A field of the header, as a robot measures it."""
        base = self.model.body(1).name
        if field in ("joint_pos", "joint_vel"):
            return [self.joint(j, field == "joint_vel") for j in joints]
        if field == "orientation":
            return self.data.xquat[1]
        if field == "gyro":
            return self.velocity("BODY", base, True)[0]
        for prefix, read in [
            ("ball_vel_", lambda n: self.joint(n, True)),
            ("ball_", self.joint),
            ("sensor_", self.sensor),
        ]:
            if field.startswith(prefix):
                return read(field.removeprefix(prefix))
        raise KeyError(field)


class Quadruped:
    """configs/quadruped.toml."""

    substeps, dt = 4, 0.02
    late_fields, late_controls = {}, {}
    feet = ["foot_fl", "foot_fr", "foot_rl", "foot_rr"]

    def __init__(self, robot):
        self.robot = robot

    def begin(self, command):
        self.touched, self.since = np.zeros(4, bool), np.zeros(4)
        self.last = np.zeros(12)

    def inputs(self):
        return {"input_lin_vel": self.robot.velocity("BODY", "trunk", True)[1]}

    def reward(self, action, command, following):
        r, force = self.robot, self.robot.data.actuator_force
        forward, turn = command["velocity"], command["turn"][0]
        moving = np.linalg.norm(forward) + abs(turn) > 0.1
        x, y = r.turn("trunk")[:2, 0]
        heading = np.arctan2(y, x)
        c, s = np.cos(heading), np.sin(heading)
        vx, vy = r.velocity("BODY", "trunk", False)[1][:2]
        error = forward - [c * vx + s * vy, c * vy - s * vx]
        ang, lin = r.velocity("BODY", "trunk", True)
        turn_error = turn - ang[2]
        gravity = -r.turn("trunk")[2]
        touch = r.contact(*self.feet) > 0
        landed = touch & ~self.touched
        diagonal = touch[0] == touch[3] and touch[1] == touch[2]
        height = np.array([r.site(f)[2] for f in self.feet])
        speed = np.array([np.linalg.norm(r.velocity("SITE", f, False)[1][:2]) for f in self.feet])
        e2, t2 = error @ error, turn_error**2
        terms = [
            1.0 * (np.exp(-e2 / 0.25) + 0.5 * np.exp(-e2 / 0.02)),
            0.75 * (np.exp(-t2 / 0.25) + 0.5 * np.exp(-t2 / 0.03)),
            0.4 * (moving and diagonal and touch[0] != touch[1]),
            2.0 * moving * np.sum(landed * np.clip(self.since - 0.25, -0.25, 0.1)),
            -1.0 * moving * (np.abs(height - 0.09) @ speed),
            -2.0 * lin[2] ** 2,
            -0.05 * ang[:2] @ ang[:2],
            -2.0 * gravity[:2] @ gravity[:2],
            -0.0001 * force @ force,
            -0.01 * np.sum((action - self.last) ** 2),
        ]
        self.touched, self.last = touch, action
        self.since = np.where(touch, 0.0, self.since + self.dt)
        ended = r.contact("trunk", "head").sum() > 1 or r.turn("trunk")[2, 2] < 0.3
        return np.clip(np.sum(terms) * self.dt, 0.0, 10.0), ended


class Crab:
    """crab.toml."""

    substeps, dt = 4, 0.02
    late_fields = {"sensor_acc": 2, "sensor_touch_b": 1}
    # Outputs of the slides come a control step late.
    late_controls = {4: 1, 5: 1, 6: 1, 7: 1}

    def __init__(self, robot):
        self.robot = robot

    def begin(self, command):
        self.phase, self.last = 0.0, np.zeros(8)

    def inputs(self):
        return {"input_lin_vel": self.robot.velocity("SITE", "imu", True)[1]}

    def reward(self, action, command, following):
        r = self.robot
        height, up = r.data.xpos[1][2], r.turn("trunk")[2]
        lean = -up[:2] - command["lean"]
        mast = r.velocity("BODY", "mast", True)[0]
        terms = [
            1.0 * np.exp(-lean @ lean / 0.02),
            1.0 * np.exp(-((height - 0.3 - 0.03 * np.sin(self.phase)) ** 2) / 0.0008),
            -0.02 * mast @ mast,
            0.05 * np.sum(r.contact("foot_a", "foot_b", "foot_c", "foot_d") > 0),
            -1e-5 * r.data.actuator_force @ r.data.actuator_force,
            -0.01 * np.sum((action - self.last) ** 2),
        ]
        # Rewards see the phase before it goes on, which it does by the command that comes next.
        self.phase += 2 * np.pi * self.dt * following["pace"][0]
        self.last = action
        return np.sum(terms), up[2] < 0.6 or height < 0.15


def play(task, c, joints, start, episode):
    """One episode: its return, its positions and its rewards, step by step."""
    robot, names = task.robot, start["commands"]
    robot.begin(start["qpos"][episode], start["qvel"][episode])

    def command(step):
        row = np.array(start["given"][min(step, start["steps"] - 1)][episode], float)
        return {name: row[first : first + size] for name, first, size in names}

    c.reset()
    task.begin(command(0))
    late = {field: Late(steps) for field, steps in task.late_fields.items()}
    held = {u: Late(steps) for u, steps in task.late_controls.items()}
    trail, rewards, action = [], [], np.zeros(c.sizes["OUTPUTS"], np.float32)
    for step in range(start["steps"]):
        now = command(step)
        given = {f"command_{name}": x for name, x in now.items()} | task.inputs()
        for field, part in c.fields.items():
            value = given[field] if field in given else robot.measured(field, joints)
            c.sensors[part] = late[field](value) if field in late else value
        control = c.step()
        c.lib.action(c.state, exported.at(action))
        for u, way in held.items():
            control[u] = way(control[u])
        robot.step(control, task.substeps)
        reward, ended = task.reward(action.astype(float), now, command(step + 1))
        trail.append(robot.data.qpos.copy())
        rewards.append(float(reward))
        if ended:
            break
    return trail, rewards


def main(what, folder, name, file, start):
    folder, start = Path(folder), json.loads(Path(start).read_text())
    task = {"quadruped": Quadruped, "crab": Crab}[what](Robot(file))
    c, joints = exported.Policy(folder, name), exported.joints_of(folder, name)
    returns, lengths, spread = [], [], []
    # By engine: how far positions and rewards of the compared steps are off.
    off = {engine: [] for engine in start["trail"]}
    for episode in range(start["episodes"]):
        trail, rewards = play(task, c, joints, start, episode)
        returns.append(sum(rewards))
        lengths.append(len(rewards))
        spread.append(np.ptp(trail, axis=0).max())
        for engine, steps in start["trail"].items():
            theirs = (step[episode] for step in steps)
            off[engine].append([[exported.off(x, p), exported.off(y, r)] for x, y, (p, r) in zip(trail, rewards, theirs)])
    early, all = {}, {}
    for engine, episodes in off.items():
        early[engine] = np.concatenate([e[: start["early"]] for e in episodes]).max(axis=0).tolist()
        all[engine] = (np.concatenate(episodes) < start["tolerance"]).mean(axis=0).tolist()
    return {"returns": returns, "lengths": lengths, "early": early, "same": all, "moved": float(np.median(spread))}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
