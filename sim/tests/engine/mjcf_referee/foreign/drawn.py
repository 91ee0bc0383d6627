"""What a foreign robot is before its quirks: a dict of links, joints, meshes."""

import random

from files import near, turned


# Meshes: closed, faces look outwards.
def tetrahedron(d):
    a, b, c = (near(d.uniform(0.06, 0.2), 3) for _ in range(3))
    s = near(d.uniform(-0.03, 0.03), 3)
    return [(s, 0, 0), (a, 0, s), (0, b, 0), (s, s, c)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def brick(d):
    x, y, z = (near(d.uniform(0.03, 0.12), 3) for _ in range(3))
    k = near(d.uniform(0.5, 0.9), 2)
    low = [(-x, -y, -z), (x, -y, -z), (x, y, -z), (-x, y, -z)]
    top = [(near(k * a), near(k * b), z) for a, b, _ in low]
    faces = [(3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]
    return low + top, faces


def lump(d):
    r = [near(d.uniform(0.03, 0.12), 3) for _ in range(6)]
    v = [(r[0], 0, 0), (-r[1], 0, 0), (0, r[2], 0), (0, -r[3], 0), (0, 0, r[4]), (0, 0, -r[5])]
    faces = [(0, 2, 4), (2, 1, 4), (1, 3, 4), (3, 0, 4), (2, 0, 5), (1, 2, 5), (3, 1, 5), (0, 3, 5)]
    return v, faces


# A robot is a dict; what depends on its quirks stands in "spell".
def draw(seed):
    d = random.Random(f"robot {seed}")
    n = d.randint(1, 8)
    kind = "urdf" if d.random() < 0.75 else "mjcf"
    meshes = [{"shape": d.choice((tetrahedron, brick, lump))(d), "obj": ""} for _ in range(d.randint(1, 4))]
    for i, m in enumerate(meshes):
        m.update(stem=f"part_{i}", kind="obj", folder="")
    links, joints = [], []
    for i in range(n + 1):
        links.append({"name": f"link_{i}", "inertial": None, "shapes": []})
        moving = "fixed"
        if i > 0:
            types = ["revolute", "continuous", "prismatic", "fixed"]
            moving = d.choices(types, (4, 2, 1.5, 1.5))[0]
            joints.append({
                "name": f"joint_{i}", "type": moving, "parent": d.randrange(max(0, i - 3), i), "child": i,
                "xyz": [near(d.uniform(-0.3, 0.3), 3) for _ in range(3)], "rpy": [0.0] * 3,
                "axis": d.choice(([1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1], [0.6, 0, 0.8])),
                "limit": None, "effort": near(d.uniform(5, 50), 1), "damping": near(d.uniform(0.3, 1.5), 2),
                "friction": d.choice((0, 0, 0.1)), "mimic": None,
            })  # fmt: skip
            if moving in ("revolute", "prismatic"):
                wide = 1.5 if moving == "revolute" else 0.2
                joints[-1]["limit"] = [near(-d.uniform(0.3, 1) * wide), near(d.uniform(0.3, 1) * wide)]
        link = links[-1]
        shapes = d.choices(("box", "sphere", "cylinder", "mesh"), (1, 1, 1, 3), k=d.randint(0 if i else 1, 2))
        for what in shapes:
            link["shapes"].append(shape(d, what, len(meshes), "collision"))
        if d.random() < 0.4:
            link["shapes"].append(shape(d, d.choice(("box", "mesh")), len(meshes), "visual"))
        felt = any(s["use"] == "collision" for s in link["shapes"])
        if d.random() < 0.6 or not felt:
            link["inertial"] = inertial(d)
    if d.random() < 0.5:
        # The ground, on the root.
        links[0]["shapes"].append({**shape(d, "box", 1, "collision"), "size": [4, 4, 0.2], "xyz": [0, 0, -0.35], "rpy": [0] * 3})
    return {
        "seed": seed, "kind": kind, "name": "bot", "links": links, "joints": joints, "meshes": meshes, "compiler": {},
        "link_order": list(range(n + 1)), "joint_order": list(range(n)), "actuators": [], "spell": {}, "extra": {},
        "meaning": "same", "layout": None, "dice": random.Random(f"spelling {seed}"),
    }  # fmt: skip


def shape(d, what, meshes, use):
    sizes = {"box": 3, "sphere": 1, "cylinder": 2, "mesh": 0}[what]
    return {
        "use": use, "what": what, "size": [near(d.uniform(0.03, 0.12), 3) for _ in range(sizes)],
        "mesh": d.randrange(meshes), "scale": None, "xyz": [near(d.uniform(-0.1, 0.1), 3) for _ in range(3)],
        "rpy": [near(d.uniform(-1, 1), 2) for _ in range(3)] if d.random() < 0.5 else [0.0] * 3, "name": None,
    }  # fmt: skip


def inertial(d):
    a, b, c = (d.uniform(0.004, 0.02) for _ in range(3))
    full = turned([b + c, a + c, a + b, 0, 0, 0], [d.uniform(-1, 1) for _ in range(3)])
    return {
        "mass": near(d.uniform(0.3, 3), 3), "xyz": [near(d.uniform(-0.08, 0.08), 3) for _ in range(3)],
        "rpy": [0.0] * 3, "full": [near(x, 6) for x in full],
    }  # fmt: skip


def moving(robot):
    return [j for j in robot["joints"] if j["type"] in ("revolute", "continuous", "prismatic")]


def fixed(i, parent, child):
    return {"name": f"joint_{i + 1}", "type": "fixed", "parent": parent, "child": child, "xyz": [0.1, 0, 0], "rpy": [0.0] * 3,
        "axis": [1, 0, 0], "limit": None, "effort": 0, "damping": 0, "friction": 0, "mimic": None}  # fmt: skip
