"""MuJoCo's batches, timed: what `cargo xtask peers` measures beside Ostler.

    engines.py scene TASK.toml ROBOTS OUT.xml       a robot as the task has it, as one MJCF file
    engines.py step mjbatch|rollout SCENE.xml THREADS SECONDS [--resets]

The scene has the task's own options, contacts and actuators, mjlab's 10 solver iterations, and
as ranges of its controls the targets that actions from -1 to 1 are scaled to. `step` draws 16
sets of controls from these ranges, holds each for 4 physics steps, and takes 100 control steps
before it looks at the clock. With --resets robots stand in the task's pose at the start, and
again once they lean by more than 70 degrees. Prints control steps, seconds by the clock, and
seconds of processor time.
"""

import fnmatch
import sys
import time
import tomllib
from pathlib import Path

import mujoco
import numpy as np

WORLDS, SETS, HOLD = 128, 16, 4


def of(table, name, default):
    return next((v for glob, v in table.items() if fnmatch.fnmatch(name, glob)), default)


def scene(task, robots, out):
    task = tomllib.loads(Path(task).read_text())["task"]
    path = Path(robots, task["robot"]).resolve()
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.timestep, spec.option.iterations, spec.option.ls_iterations = 0.005, 10, 20
    named = task["option"]
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert named["integrator"] == "implicitfast"
    spec.option.cone = ["pyramidal", "elliptic"].index(named.get("cone", "pyramidal"))
    spec.option.impratio = named.get("impratio", 1.0)
    for geom in list(spec.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH:  # Only seen.
            spec.delete(geom)
            continue
        for rule in task["contact"]:
            if any(fnmatch.fnmatch(geom.name, glob) for glob in rule["geoms"]):
                for key in ("condim", "priority", "contype", "conaffinity", "solref"):
                    if key in rule:
                        setattr(geom, key, rule[key])
                friction = rule.get("friction", [])
                friction = [friction] if isinstance(friction, float) else friction
                geom.friction[: len(friction)] = friction
    for mesh in list(spec.meshes):
        spec.delete(mesh)
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    pose = next(r["value"] for r in task["reset"] if r["target"].startswith("joint_pos"))
    at = next(r["value"] for r in task["reset"] if r["target"].startswith("pos(") and "value" in r)
    scale = task["action"][0]["scale"]
    qpos = list(at) + [1, 0, 0, 0]
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_FREE:
            continue
        name = joint.name
        law = next(a for a in task["actuator"] if any(fnmatch.fnmatch(name, g) for g in a["joints"]))
        act = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        joint.armature = law["armature"]
        act.set_to_position(kp=law["stiffness"], kv=law["damping"])
        act.forcerange = [-law["effort_limit"], law["effort_limit"]]
        middle, span = of(pose, name, 0.0), of(scale, name, None)
        act.ctrlrange = [middle - span, middle + span]
        qpos.append(middle)
    # Joints at zero stretch the legs: as high as the feet then are above the ground.
    root = spec.worldbody.first_body()
    root.pos = [0, 0, 1.0]
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    solid = (model.geom_contype | model.geom_conaffinity) != 0
    solid[[g for g in range(model.ngeom) if model.geom_bodyid[g] == 0]] = False
    root.pos = [0, 0, 1.0 - float((data.geom_xpos[:, 2] - model.geom_rbound)[solid].min())]
    for key in list(spec.keys):
        spec.delete(key)
    spec.add_key(name="start", qpos=qpos)
    spec.compile()
    Path(out).write_text(spec.to_xml())


def step(engine, path, threads, seconds, resets):
    model = mujoco.MjModel.from_xml_path(path)
    low, high = model.actuator_ctrlrange.T
    draws = np.random.default_rng(0).uniform(low, high, (SETS, WORLDS, model.nu))
    if engine == "mjbatch":
        from mjbatch import Batch

        batch = Batch(model, WORLDS, num_threads=threads)
        ctrl, qpos, qvel = (batch.bind(name) for name in ("ctrl", "qpos", "qvel"))
        start = model.key_qpos[0]
        if resets:
            qpos[:] = start

        def run(count, first):
            for k in range(first, first + count):
                ctrl[:] = draws[k % SETS]
                batch.step(nstep=HOLD)
                if resets:
                    lean = 1 - 2 * (qpos[:, 4] ** 2 + qpos[:, 5] ** 2) < np.cos(np.radians(70))
                    qpos[lean], qvel[lean] = start, 0.0
    else:
        from mujoco import rollout

        pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        data = [mujoco.MjData(model) for _ in range(threads)]
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        one = np.zeros(mujoco.mj_stateSize(model, kind))
        mujoco.mj_getState(model, data[0], one, kind)
        state = [np.tile(one, (WORLDS, 1))]

        def run(count, first):
            plan = draws[np.arange(first, first + count) % SETS].transpose(1, 0, 2)
            held = np.ascontiguousarray(np.repeat(plan, HOLD, axis=1))
            end, _ = pool.rollout(model, data, state[0], held, nstep=count * HOLD)
            state[0] = np.ascontiguousarray(end[:, -1])

    run(100, 0)
    done, clock, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - clock < seconds:
        run(20, 100 + done)
        done += 20
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    print("measured", done * WORLDS, clock, cpu)


if __name__ == "__main__":
    args = sys.argv[1:]
    if args[0] == "scene":
        scene(*args[1:])
    else:
        step(args[1], args[2], int(args[3]), float(args[4]), "--resets" in args)
