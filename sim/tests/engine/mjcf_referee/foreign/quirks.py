"""Quirks of foreign robots: what they are, where their files lie, how these are written.

Add one for what is met outside: a function of the drawn robot and dice of its own."""

from drawn import fixed, inertial, moving, shape
from files import near

QUIRKS = {}


def quirk(*kinds, group=None):
    """Registers a quirk for files of these kinds; of a group one robot has one at most."""

    def register(apply):
        QUIRKS[apply.__name__] = (kinds or ("urdf", "mjcf"), group, apply)
        return apply

    return register


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
    if r["meaning"] == "same":
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
        # MuJoCo takes .Obj for no mesh; a URDF's meshes get names of their own there.
        m["kind"], m["obj"] = d.choice(("obj", "stl", "msh", "STL", "Obj" if r["kind"] == "urdf" else "obj")), d.choice(("quads", "negative", "slashes", "crlf", "coloured"))


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
