"""Small robots as strangers write them, drawn by seeds; each with a plain twin for MuJoCo.

    foreign_robots.py FOLDER FIRST COUNT [--only QUIRKS] [--train]

A robot is drawn plain: a tree of links, joints, inertias, shapes. Then quirks are drawn that
change how it is written, or what it is; each has its own dice, so that `--only a,b` writes the
same robot with these alone. FOLDER/SEED has the robot as a stranger would have it; FOLDER/SEED
/plain the twin: every mesh beside it under a name of its own, XML by the book. Standard output
is one JSON object, by seeds: {robot, folder, plain, quirks, meaning}. meaning: "same" as the
twin, "or refused" where the field does not agree, "balanced" where task.balance_inertia is
needed. `--train` writes a task with its motors, too (task.toml), and what belongs to each name.
"""

import argparse
import json
import os
import random
import shutil
from pathlib import Path

from files import mesh_bytes, mjcf, near, task, text_of, turned, urdf, words

QUIRKS = {}


def quirk(*kinds, group=None):
    """Registers a quirk for files of these kinds; of a group one robot has one at most."""

    def register(apply):
        QUIRKS[apply.__name__] = (kinds or ("urdf", "mjcf"), group, apply)
        return apply

    return register


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


# What the robot is.
@quirk("urdf")
def links_shuffled(r, d):
    d.shuffle(r["link_order"])


@quirk("urdf")
def joints_shuffled(r, d):
    d.shuffle(r["joint_order"])


NAMES = ["a b", " blank ", "Größe", "手", "x&y", "a<b", "a>b", 'say "hi"', "it's", "a/b", "a:b", "a.b", "1", "2e3", "-1", "nan", "true",
    "LINK", "link", "Link", "*", "a*", "[x]", "{y}", "a,b", "#c", "%s", "joint", "qpos", "root", "floor", "$(arg x)", "ü" * 40, "n" * 300]  # fmt: skip


@quirk()
def odd_names(r, d):
    for part in (r["links"][1:], r["joints"]):
        for e, name in zip(part, d.sample(NAMES, len(part))):
            if d.random() < 0.7:
                e["name"] = name
    r["name"] = d.choice(["bot", "", "pick & place", "x*/y", "Größe"])


@quirk()
def joints_named_like_links(r, d):
    for j in r["joints"]:
        j["name"] = r["links"][d.choice((j["parent"], j["child"]))]["name"] if d.random() < 0.3 else r["links"][j["child"]]["name"]
    named = [j["name"] for j in r["joints"]]
    for j in r["joints"]:
        if named.count(j["name"]) > 1:
            j["name"] = r["links"][j["child"]]["name"] + "_"


@quirk()
def turned_joints(r, d):
    for j in r["joints"]:
        j["rpy"] = [near(d.uniform(-3, 3), 2) for _ in range(3)]


@quirk("urdf")
def long_axes(r, d):
    for j in r["joints"]:
        j["axis"] = [near(d.uniform(0.2, 3) * x, 3) for x in j["axis"]]


@quirk("urdf")
def absent_axes_and_origins(r, d):
    for j in r["joints"]:
        if d.random() < 0.5:
            j["axis"] = None
        if d.random() < 0.4:
            j["xyz"], j["rpy"] = None, [0.0] * 3


@quirk("urdf")
def infinite_limits(r, d):
    for j in r["joints"]:
        if j["type"] == "revolute":
            j["limit"] = d.choice((["-inf", "inf"], ["-INFINITY", "Infinity"], ["-inf", "inf"]))


@quirk("urdf")
def infinite_efforts(r, d):
    for j in moving(r):
        j["effort"] = d.choice(("inf", "Infinity", "INF"))


@quirk("urdf")
def absent_limits(r, d):
    for j in r["joints"]:
        j["limit"] = None


@quirk("urdf")
def halves_of_limits(r, d):
    """Without an end, or with ends that are none: the range is as MuJoCo has it."""
    for j in r["joints"]:
        if j["type"] in ("revolute", "prismatic", "continuous"):
            j["limit"] = d.choice(([-0.5, None], [None, 0.4], [0.3, -0.3], [0, 0], [-0.2, 0.5]))
            j["effort"] = d.choice((j["effort"], None, 0, -9))


@quirk("urdf")
def limits_twice(r, d):
    for j in r["joints"]:
        if j["limit"]:
            j["again"], r["meaning"] = True, "or refused"


@quirk("urdf", group="mimic")
def mimics(r, d):
    joints = moving(r)
    for k, j in enumerate(joints[1:], 1):
        if d.random() < 0.6:
            j["mimic"] = (joints[d.randrange(k)], near(d.uniform(-2, 2), 2), d.choice((None, near(d.uniform(-0.2, 0.2), 2))))


@quirk("urdf")
def planar(r, d):
    joints = [j for j in moving(r) if not j["mimic"]]
    if joints:
        j = d.choice(joints)
        if not any(k["mimic"] and k["mimic"][0] is j for k in r["joints"]):
            j.update(type="planar", axis=d.choice(([0, 0, 1], [0, 1, 0], [1, 2, 2])), limit=d.choice((None, [-1, 1])))


@quirk("urdf")
def spherical(r, d):
    led = [j["mimic"][0] for j in r["joints"] if j["mimic"]]
    joints = [j for j in moving(r) if not j["mimic"] and j not in led]
    if joints:
        d.choice(joints).update(type="spherical", limit=None, effort=0, friction=0)


@quirk("urdf")
def floating(r, d):
    """Behind an empty root, or a chain of links that are fixed to it."""
    root = r["links"][0]
    root.update(name=d.choice(("map", "world", "odom")), inertial=None, shapes=[s for s in root["shapes"] if s["size"][:1] == [4]])
    last, drawn = 0, len(r["joints"])
    for _ in range(d.choice((0, 0, 1, 2))):
        r["links"].append({"name": f"frame_{len(r['links'])}", "inertial": None, "shapes": []})
        r["joints"].append(fixed(len(r["joints"]), last, len(r["links"]) - 1))
        last = len(r["links"]) - 1
    first = r["joints"][0]
    first.update(type="floating", parent=last, limit=None, mimic=None, xyz=[0, 0, 0.6])
    for j in r["joints"][1:drawn]:
        if j["parent"] == 0 and last:
            j["parent"] = 1
        if j["mimic"] and j["mimic"][0] is first:
            j["mimic"] = None
    r["links"][1]["inertial"] = r["links"][1]["inertial"] or inertial(d)
    for order, part in (("link_order", "links"), ("joint_order", "joints")):
        r[order] += [i for i in range(len(r[part])) if i not in r[order]]


def fixed(i, parent, child):
    return {"name": f"joint_{i + 1}", "type": "fixed", "parent": parent, "child": child, "xyz": [0.1, 0, 0], "rpy": [0.0] * 3,
        "axis": [1, 0, 0], "limit": None, "effort": 0, "damping": 0, "friction": 0, "mimic": None}  # fmt: skip


@quirk()
def turned_inertials(r, d):
    for link in r["links"]:
        if link["inertial"]:
            link["inertial"]["rpy"] = [near(d.uniform(-3, 3), 2) for _ in range(3)]


@quirk()
def no_inertials(r, d):
    for link in r["links"]:
        if any(s["use"] == "collision" for s in link["shapes"]):
            link["inertial"] = None


@quirk()
def massless_frames(r, d):
    """Links of nothing on fixed joints: frames of tools, of cameras."""
    for _ in range(d.randint(1, 3)):
        zero = {"mass": 0, "xyz": [0.1, 0, 0], "rpy": [0.0] * 3, "full": [0] * 6} if r["kind"] == "urdf" and d.random() < 0.4 else None
        r["links"].append({"name": f"tool_{len(r['links'])}", "inertial": zero, "shapes": []})
        r["joints"].append(fixed(len(r["joints"]), d.randrange(len(r["links"]) - 1), len(r["links"]) - 1))
        r["link_order"].insert(d.randrange(len(r["link_order"]) + 1), len(r["links"]) - 1)
        r["joint_order"].insert(d.randrange(len(r["joint_order"]) + 1), len(r["joints"]) - 1)


@quirk("urdf")
def lonely_link(r, d):
    r["links"].append({"name": "lonely", "inertial": inertial(d), "shapes": [shape(d, "sphere", 1, "collision")] if d.random() < 0.5 else []})
    r["link_order"].insert(d.randrange(len(r["link_order"]) + 1), len(r["links"]) - 1)


@quirk("urdf")
def gone_visuals(r, d):
    """Pictures that are not there, or of a kind that nobody here reads."""
    for link in r["links"]:
        link["gone"] = d.choice((None, "gone.dae", "package://gone/a.stl", "http://x/y.glb", ""))


@quirk("urdf")
def dummy_inertials(r, d):
    """As exporters write them for links of nothing: all six numbers alike, which no body has."""
    massless_frames(r, d)
    r["links"][-1]["inertial"] = {"mass": 1e-6, "xyz": [0] * 3, "rpy": [0] * 3, "full": [1e-6] * 6, "dummy": True}
    r["meaning"] = "balanced"


@quirk()
def impossible_inertias(r, d):
    for link in r["links"]:
        if link["inertial"] and d.random() < 0.5:
            link["inertial"]["full"] = [0.05, 0.004, 0.004, 0, 0, 0]
    r["compiler"]["balanceinertia"] = "true"


@quirk()
def compiler_tags(r, d):
    options = {"boundmass": ("0.01", "1.5"), "boundinertia": ("0.001", "0.03"), "balanceinertia": ("true",), "settotalmass": ("5",),
        "fusestatic": ("true", "false"), "discardvisual": ("true", "false"), "inertiafromgeom": ("true", "auto")}  # fmt: skip
    for name in d.sample(list(options), 3):
        # With free joints below what is not fused MuJoCo refuses; geoms may be missing.
        felt = all(any(s["use"] == "collision" for s in link["shapes"]) for link in r["links"])
        if (name != "fusestatic" or not any(j["type"] == "floating" for j in r["joints"])) and (name != "inertiafromgeom" or felt):
            r["compiler"][name] = d.choice(options[name])


# Meshes.
@quirk()
def formats(r, d):
    for m in r["meshes"]:
        m["kind"], m["obj"] = d.choice(("obj", "stl", "msh", "STL", "Obj")), d.choice(("quads", "negative", "slashes", "crlf", "coloured"))


@quirk()
def same_stems(r, d):
    if d.random() < 0.5:
        formats(r, d)
    for i, m in enumerate(r["meshes"]):
        m["stem"], m["folder"] = "base_link", f"{'abcd'[i]}/"
    if len({m["kind"] for m in r["meshes"]}) == len(r["meshes"]) and d.random() < 0.5:
        for m in r["meshes"]:
            m["folder"] = ""


@quirk()
def scales(r, d):
    for link in r["links"]:
        for s in link["shapes"]:
            if s["what"] == "mesh":
                s["scale"] = d.choice(([1, 1, 1], [1, 1, 1.0001], [0.5, 0.5, 0.5], [2, 1, 0.7], [1, -1, 1], [-1, 1, 1], None))


@quirk()
def mesh_names(r, d):
    for i, m in enumerate(r["meshes"]):
        m["stem"] = d.choice(("a b", "Größe", "UPPER", "v1.2", "x&y", "-")) + str(i)


@quirk()
def shapes_named_alike(r, d):
    for link in r["links"]:
        for s in link["shapes"]:
            s["name"] = "shape" if r["kind"] == "urdf" else None


# Where files lie: (the robot's file, the folder that is named for it, the meshes' folder, how
# a mesh is addressed).
LAYOUTS = {
    "below": ("bot", None, "meshes", "meshes/"),
    "spelled": ("bot", None, "meshes", ".//meshes/../meshes/./"),
    "beside": ("urdf/bot", "", "meshes", "../meshes/"),
    "in_and_out": ("urdf/bot", None, "urdf/meshes", "../urdf/meshes/"),
    "package": ("bot", None, "pkg/meshes", "package://pkg/meshes/"),
    "package_around": ("pkg/urdf/bot", "", "pkg/meshes", "package://pkg/meshes/"),
    "package_above": ("repo/robots/bot/urdf/bot", "", "repo/robots/bot/meshes", "package://repo/robots/bot/meshes/"),
    "package_aside": ("ws/bot_description/urdf/bot", "", "ws/other/meshes", "package://other/meshes/"),
    "package_inside": ("ws/bot/bot", "", "ws/bot/deep/er/meshes", "package://bot/deep/er/meshes/"),
    "package_spelled": ("pkg/urdf/bot", "", "pkg/meshes", "package://pkg/urdf/../meshes/"),
    "model": ("pkg/urdf/bot", "", "pkg/meshes", "model://pkg/meshes/"),
}


def layout(name):
    def apply(r, d):
        r["layout"] = name

    apply.__name__ = f"layout_{name}"
    kinds = ("urdf",) if "package" in name or name == "model" else ("urdf", "mjcf")
    quirk(*kinds, group="layout")(apply)


for name in LAYOUTS:
    layout(name)


@quirk("urdf")
def one_package_each(r, d):
    """Meshes of two packages, under the same names."""
    if r["layout"] in ("package_around", "package_aside", "package"):
        for i, m in enumerate(r["meshes"]):
            m["stem"], m["folder"], m["kind"] = "base_link", "", "obj"
            m["package"] = f"pkg_{i}"


@quirk()
def linked_folder(r, d):
    r["extra"]["link"] = True


@quirk(group="meshdir")
def meshdir(r, d):
    r["extra"]["meshdir"] = d.choice(("whole", "slash", "dot"))


@quirk("urdf", group="meshdir")
def strippath(r, d):
    if len({m["stem"] + m["kind"] for m in r["meshes"]}) == len(r["meshes"]):
        r["extra"]["meshdir"] = "strip"


# MJCF.
@quirk("mjcf")
def actuators(r, d):
    joints = moving(r)
    d.shuffle(joints)
    r["actuators"] = [
        (d.choice(("motor", "position", "velocity")), j, near(d.uniform(5, 30), 1)) for j in joints if d.random() < 0.8
    ]


@quirk("mjcf")
def unnamed_joints(r, d):
    for j in r["joints"]:
        if not any(a[1] is j for a in r["actuators"]):
            j["name"] = None


@quirk("mjcf")
def skin(r, d):
    r["extra"]["skin"] = True


# How the file is written.
def spelling(name, *kinds, group=None):
    def apply(r, d):
        r["spell"][name] = d.random()

    apply.__name__ = name
    quirk(*kinds, group=group)(apply)


for name in ("dashes", "ruler", "no_blanks", "second_end", "second_root", "doctype", "crlf", "references", "single_quotes", "text_between",
    "blank_around_equals", "no_declaration", "instruction", "bare_ampersand", "bare_less", "leading_blanks", "odd_numbers"):  # fmt: skip
    spelling(name)
for name in ("unknown_elements", "undeclared_prefixes", "for_gazebo", "for_control", "declared_prefixes", "sections", "cdata", "unknown_attributes"):
    spelling(name, "urdf")
for name in ("byte_order_mark", "latin1", "utf16", "windows_1252"):
    spelling(name, group="encoding")


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def make(folder, seed, only=None, train=False):
    r = draw(seed)
    d = random.Random(f"quirks {seed}")
    fitting = [name for name, (kinds, _, _) in QUIRKS.items() if r["kind"] in kinds]
    drawn = set(d.sample(fitting, d.randint(3, 9)))
    groups, quirks = set(), []
    # In the order in which they are defined: they build upon one another.
    for name in fitting:
        group = QUIRKS[name][1]
        if name in drawn and group not in groups - {None} and (only is None or name in only):
            groups.add(group)
            quirks.append(name)
            QUIRKS[name][2](r, random.Random(f"{seed} {name}"))
    home = folder / str(seed)
    shutil.rmtree(home, ignore_errors=True)
    main, within, at, prefix = LAYOUTS[r["layout"] or "below"]
    if r["kind"] == "mjcf" and any(not j["xyz"] for j in r["joints"]):
        raise AssertionError(seed)
    ending = ".urdf" if r["kind"] == "urdf" else ".xml"
    attrs, how = {}, r["extra"].get("meshdir")
    if how and "://" not in prefix:
        # The same files, from a folder that is named once.
        attrs["meshdir"] = {"slash": prefix, "dot": "./" + prefix}.get(how, prefix.rstrip("/"))
        prefix = "anywhere/at/all/" if how == "strip" else ""
        if how == "strip":
            attrs["strippath"] = "true"
    r["extra"]["attrs"] = attrs

    def path_of(m):
        inner = at if "package" not in m else at.replace("pkg", m["package"]).replace("other", m["package"])
        below = "" if attrs.get("strippath") else m["folder"]
        return f"{inner}/{below}{m['stem']}.{m['kind']}"

    def address(s):
        m = r["meshes"][s["mesh"]]
        start = prefix if "package" not in m else prefix.replace("pkg", m["package"]).replace("other", m["package"])
        scale = words(s["scale"]) if s["scale"] else None
        return {"filename": f"{start}{'' if attrs.get('strippath') else m['folder']}{m['stem']}.{m['kind']}", "scale": scale}

    for m in r["meshes"]:
        data = mesh_bytes(m, m["kind"].lower())
        put(home / path_of(m), data)
    if r["extra"].get("link") and (home / at).is_dir():
        (home / at).rename(home / "elsewhere")
        (home / at).symlink_to(os.path.relpath(home / "elsewhere", (home / at).parent))
        within = ""
    made = {}

    def plainly(s):
        m = r["meshes"][s["mesh"]]
        key = json.dumps([s["mesh"], s["scale"]])
        name = made.setdefault(key, f"u{len(made)}.{m['kind'].lower()}")
        put(home / "plain" / name, mesh_bytes(m, m["kind"].lower()))
        return {"filename": name, "scale": words(s["scale"]) if s["scale"] else None}

    write = urdf if r["kind"] == "urdf" else mjcf
    put(home / f"{main}{ending}", text_of(r, write(r, address, False)))
    bare = {"spell": {}, "dice": random.Random(0)}
    plain = home / "plain" / f"plain{ending}"
    put(plain, text_of(bare, write(r, plainly, True)))
    about = {
        "robot": str(home / f"{main}{ending}"), "folder": None if within is None else str(home / within).rstrip("/"),
        "plain": str(plain), "quirks": quirks, "meaning": r["meaning"],
    }  # fmt: skip
    if train:
        task_text, about["wanted"] = task(r, f"{main}{ending}", within)
        put(home / "task.toml", task_text.encode())
        about["home"] = str(home)
    return about


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--only")
    parser.add_argument("--train", action="store_true")
    args = parser.parse_args()
    only = None if args.only is None else set(args.only.split(","))
    seeds = range(args.first, args.first + args.count)
    print(json.dumps({seed: make(args.folder, seed, only, args.train) for seed in seeds}))


if __name__ == "__main__":
    main()
