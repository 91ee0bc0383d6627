"""Exported policies in onnxruntime, in C by gcc, and in MuJoCo's worlds.

    exported.py vectors FOLDER NAME      the manifest's test vectors: largest errors of each file
    exported.py contract FOLDER NAME     metadata of both files, and what the ONNX file decides
    exported.py sensors FOLDER NAME ROBOT.xml TERMS.json
                                         C's observations from MuJoCo's measurements
    exported.py balance FOLDER NAME ROBOT.xml EPISODES STEPS DECIMATION START
                                         the C policy closes the loop on a cart-pole

Each prints one JSON object.
"""

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

SHIM = """
#include "{n}_policy.h"
unsigned state_size(void);
unsigned state_size(void) {{ return sizeof({n}_state); }}
void init(void *m);
void init(void *m) {{ {n}_init(({n}_state *)m); }}
void policy(void *m, const float *terms, float *action, float *control);
void policy(void *m, const float *terms, float *action, float *control) {{
  {n}_state *s = ({n}_state *)m;
  int k;
  {n}_policy(s, terms, control);
  for (k = 0; k < {n}_NUM_OUTPUTS; k++) action[k] = s->action[k];
}}
void observe(void *m, const void *s, float *terms);
void observe(void *m, const void *s, float *terms) {{ {n}_observe(({n}_state *)m, (const {n}_sensors *)s, terms); }}
void step(void *m, const void *s, float *control);
void step(void *m, const void *s, float *control) {{ {n}_step(({n}_state *)m, (const {n}_sensors *)s, control); }}
"""


class Policy:
    """The header, compiled: C99, every warning an error; as C++ it compiles, too."""

    def __init__(self, folder, name):
        header = (folder / f"{name}_policy.h").read_text()
        # A comment may speak of a joint that is free.
        code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
        assert not re.search(r"\b(malloc|calloc|realloc|free|alloca)\b", code)
        source = folder / f"{name}_shim.c"
        source.write_text(SHIM.format(n=name))
        library = folder / f"{name}_shim.so"
        strict = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
        subprocess.run(["gcc", "-std=c99", "-O2", *strict, "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
        subprocess.run(["g++", "-std=c++11", "-x", "c++", "-fsyntax-only", *strict, source], check=True)
        self.lib = ctypes.CDLL(str(library))
        body = re.search(r"typedef struct \{\n((?:  .*\n)*)\} %s_sensors;" % re.escape(name), header).group(1)
        self.fields, at = {}, 0
        for field, size in re.findall(r"^  float (\w+)\[(\d+)\];", body, re.M):
            self.fields[field] = slice(at, at + int(size))
            at += int(size)
        self.sensors = np.zeros(max(at, 1), np.float32)
        self.sizes = {k: int(re.search(rf"#define {name}_NUM_{k} (\d+)", header).group(1)) for k in ("TERMS", "OUTPUTS", "CONTROLS")}
        self.state = ctypes.create_string_buffer(self.lib.state_size())
        self.reset()

    def reset(self):
        self.lib.init(self.state)

    def policy(self, terms):
        action, control = (np.zeros(self.sizes[k], np.float32) for k in ("OUTPUTS", "CONTROLS"))
        self.lib.policy(self.state, at(terms), at(action), at(control))
        return action, control

    def observe(self):
        terms = np.zeros(self.sizes["TERMS"], np.float32)
        self.lib.observe(self.state, at(self.sensors), at(terms))
        return terms

    def step(self):
        control = np.zeros(self.sizes["CONTROLS"], np.float32)
        self.lib.step(self.state, at(self.sensors), at(control))
        return control


def at(x):
    assert x.dtype == np.float32 and x.flags.c_contiguous
    return x.ctypes.data_as(ctypes.c_void_p)


def off(got, wanted):
    """Largest error, relative to numbers beyond 1."""
    wanted = np.asarray(wanted, np.float64)
    return float(np.max(np.abs(np.asarray(got, np.float64).ravel() - wanted) / np.maximum(1.0, np.abs(wanted)), initial=0.0))


def vectors(folder, name):
    manifest = json.loads((folder / f"{name}.json").read_text())
    steps = manifest["test_vectors"]["steps"]
    result = {"steps": len(steps), "moved": float(np.ptp([s["controls"] for s in steps]))}
    if (folder / f"{name}.onnx").exists():
        import onnx
        import onnxruntime

        onnx.checker.check_model(onnx.load(folder / f"{name}.onnx"), full_check=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
        widths = {i.name: i.shape[1] for i in session.get_inputs()}
        outputs = [o.name for o in session.get_outputs()]
        kept, worst = {}, 0.0
        for step in steps:
            if step["first"]:
                kept = {"history": np.zeros((1, widths.get("history", 0)), np.float32), "h_in": np.zeros((1, widths.get("h_in", 0)), np.float32)}
            feed = {"obs": np.array([step["obs"]], np.float32), "first": np.array([[step["first"]]], np.float32), **kept}
            out = dict(zip(outputs, session.run(None, {k: v for k, v in feed.items() if k in widths})))
            kept = {"history": out.get("history_out"), "h_in": out.get("h_out")}
            worst = max(worst, off(out["actions"], step["actions"]), off(out["controls"], step["controls"]))
        result["onnx"] = worst
        result["metadata"] = dict(session.get_modelmeta().custom_metadata_map)
    if (folder / f"{name}_policy.h").exists():
        c, worst = Policy(folder, name), 0.0
        for step in steps:
            if step["first"]:
                c.reset()
            action, control = c.policy(np.array(step["obs"], np.float32))
            worst = max(worst, off(action, step["actions"]), off(control, step["controls"]))
        result["c"] = worst
    return result


def contract(folder, name):
    """What a program finds that knows the files' metadata, and actions and controls for an observation."""
    import zipfile

    import onnxruntime

    session = onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
    metadata = dict(session.get_modelmeta().custom_metadata_map)
    with zipfile.ZipFile(folder / f"{name}.pt") as archive:
        assert archive.testzip() is None
        extra = {n.split("/extra/")[1]: archive.read(n).decode() for n in archive.namelist() if "/extra/" in n}
    assert extra == metadata, (extra, metadata)
    widths = {i.name: i.shape[1] for i in session.get_inputs()}
    rng = np.random.default_rng(3)
    feed = {k: rng.normal(size=(1, width)).astype(np.float32) for k, width in widths.items()}
    actions, controls = (x[0].tolist() for x in session.run(["actions", "controls"], feed))
    lists = {k: v.split(",") if v else [] for k, v in metadata.items()}
    numbers = ("stiffness", "damping", "pos", "scale", "offset")
    # As JSON has no NaN.
    number = lambda x: None if np.isnan(float(x)) else float(x)
    lists = {k: [number(x) for x in v] if k.endswith(numbers) else v for k, v in lists.items()}
    return {"lists": lists, "actions": actions, "controls": controls}


def measure(c, model, data, joints, base):
    """What a robot of MuJoCo's would measure."""
    import mujoco

    for field, part in c.fields.items():
        if field in ("joint_pos", "joint_vel"):
            ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, j) for j in joints]
            values = [data.qpos[model.jnt_qposadr[j]] if field == "joint_pos" else data.qvel[model.jnt_dofadr[j]] for j in ids]
        elif field == "orientation":
            values = data.xquat[base]
        elif field == "gyro":
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, base, velocity, 1)
            values = velocity[:3]
        else:
            values = np.zeros(part.stop - part.start)
        c.sensors[part] = values


def joints_of(folder, name):
    """Names of joints in the order of the header's fields."""
    header = (folder / f"{name}_policy.h").read_text()
    said = re.search(r"/\* positions of joints[^:]*: (.*) \*/", header)
    return re.findall(r"\d+ (\S+) \((?:rad|m)\)", said.group(1)) if said else []


def sensors(folder, name, robot, terms):
    """Observations from measurements against MuJoCo's own numbers, in random states."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(robot)
    data = mujoco.MjData(model)
    wanted = json.loads(terms)
    constants = wanted.get("constants", {})
    c, rng, worst = Policy(folder, name), np.random.default_rng(1), {}
    joints = joints_of(folder, name)
    base = 1

    def body(b):
        return mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, b)

    def lin_vel(b):
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body(b), velocity, 0)
        return velocity[3:]

    # By their expressions in the task.
    by_mujoco = {
        "gravity": lambda: data.xmat[base].reshape(3, 3).T @ [0, 0, -1],
        "gyro": lambda: data.qvel[3:6],
        "joint_pos": lambda: [data.qpos[model.jnt_qposadr[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, j)]] for j in joints],
        "joint_vel": lambda: [data.qvel[model.jnt_dofadr[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, j)]] for j in joints],
        "apart": lambda: data.xpos[body(wanted["foot"])] - data.xpos[base],
        "slide": lambda: lin_vel(wanted["foot"]) - lin_vel(model.body(base).name),
        "tilt": lambda: data.xquat[body(wanted["foot"])],
    }
    for _ in range(1000):
        data.qpos[:] = rng.normal(size=model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        data.qvel[:] = rng.normal(size=model.nv)
        mujoco.mj_forward(model, data)
        measure(c, model, data, joints, base)
        c.reset()
        seen, first = c.observe(), 0
        for term, size in wanted["terms"]:
            values = np.asarray(constants[term] if term in constants else by_mujoco[term]())
            got = seen[first : first + size]
            if term == "tilt":
                values = values * np.sign(np.dot(values, got))
            worst[term] = max(worst.get(term, 0.0), off(got, values))
            first += size
    return worst


def balance(folder, name, robot, episodes, steps, decimation, start):
    """Returns of a cart-pole that gets 1 for every step until its pole leans by more than 0.2."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(robot)
    data = mujoco.MjData(model)
    c, rng, returns = Policy(folder, name), np.random.default_rng(2), []
    joints = joints_of(folder, name)
    hinge = model.jnt_qposadr[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, "hinge")]
    for _ in range(int(episodes)):
        mujoco.mj_resetData(model, data)
        data.qpos[:] = rng.uniform(-float(start), float(start), model.nq)
        c.reset()
        total = 0.0
        for _ in range(int(steps)):
            measure(c, model, data, joints, 0)
            data.ctrl[:] = c.step()
            mujoco.mj_step(model, data, int(decimation))
            total += 1.0
            if abs(data.qpos[hinge]) > 0.2:
                break
        returns.append(total)
    return {"mean": float(np.mean(returns)), "ci95": 1.96 * float(np.std(returns)) / len(returns) ** 0.5, "shortest": min(returns)}


if __name__ == "__main__":
    what, folder, name, *more = sys.argv[1:]
    print(json.dumps(globals()[what](Path(folder), name, *more)))
