"""Files of the robots that robots.py draws: meshes, URDF, MJCF, the text of XML, a task."""

import json
import math
import random
import struct


def near(x, digits=4):
    return round(x, digits) + 0.0


def words(values):
    return " ".join(repr(float(v)) for v in values)


def matrix(rpy):
    (cr, sr), (cp, sp), (cy, sy) = [(math.cos(a), math.sin(a)) for a in rpy]
    return [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]


def turned(full, rpy):
    """xx yy zz xy xz yz about turned axes."""
    xx, yy, zz, xy, xz, yz = full
    own, r = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], matrix(rpy)
    t = [[sum(r[i][k] * own[k][m] * r[j][m] for k in range(3) for m in range(3)) for j in range(3)] for i in range(3)]
    return [t[0][0], t[1][1], t[2][2], t[0][1], t[0][2], t[1][2]]


def triangles(faces):
    return [(f[0], f[k], f[k + 1]) for f in faces for k in range(1, len(f) - 1)]


def mesh_bytes(mesh, kind):
    vertices, faces = mesh["shape"]
    corners = triangles(faces)
    if kind == "stl":
        rows = [struct.pack("<12fH", 0, 0, 0, *(x for i in t for x in vertices[i]), 0) for t in corners]
        return b"solid binary all the same".ljust(80) + struct.pack("<I", len(rows)) + b"".join(rows)
    if kind == "msh":
        floats = [x for v in vertices for x in v]
        head = struct.pack("<4i", len(vertices), 0, 0, len(corners))
        return head + struct.pack(f"<{len(floats)}f", *floats) + struct.pack(f"<{3 * len(corners)}i", *sum(corners, ()))
    style, n = mesh["obj"], len(vertices)
    lines = ["# a mesh", "mtllib gone.mtl", "o part"] if style else []
    lines += [f"v {words(v)}" + (" 0.5 0.5 0.5" if style == "coloured" else "") for v in vertices]
    if style == "slashes":
        lines += ["vn 0 0 1", "vt 0 0"]
    spell = {"negative": lambda i: str(i - n), "slashes": lambda i: f"{i + 1}/1/1"}.get(style, lambda i: str(i + 1))
    lines += [" ".join(["f", *map(spell, f)]) for f in (faces if style else corners)]
    return ("\r\n" if style == "crlf" else "\n").join(lines + [""]).encode()


def e(tag, attrs=(), *children):
    return tag, {k: v for k, v in dict(attrs).items() if v is not None}, [c for c in children if c]


def place(r, xyz, rpy, names=("xyz", "rpy")):
    return e("origin", {names[0]: words(xyz), names[1]: words(rpy) if any(rpy or ()) else None}) if xyz is not None else None


def urdf(r, address, plain):
    """The tree of elements; `address` of a mesh at a scale."""
    out = []
    compiler = dict(r["compiler"])
    if not plain:
        compiler.update(r["extra"].get("attrs", {}))
    if compiler:
        out.append(e("mujoco", (), e("compiler", compiler)))
    for i in r["link_order"]:
        link, parts = r["links"][i], []
        if link["inertial"]:
            m = link["inertial"]
            full = [sum(m["full"][:3]) / 3] * 3 + [0] * 3 if m.get("dummy") and plain else m["full"]
            tensor = dict(zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), map(repr, full)))
            parts.append(e("inertial", (), place(r, m["xyz"], m["rpy"]), e("mass", {"value": m["mass"]}), e("inertia", tensor)))
        for s in link["shapes"]:
            size = s["size"]
            inner = {
                "box": lambda: e("box", {"size": words(2 * x for x in size)}),
                "sphere": lambda: e("sphere", {"radius": size[0]}),
                "cylinder": lambda: e("cylinder", {"radius": size[0], "length": 2 * size[1]}),
                "mesh": lambda: e("mesh", address(s)),
            }[s["what"]]()
            parts.append(e(s["use"], {"name": s["name"]}, place(r, s["xyz"], s["rpy"]), e("geometry", (), inner)))
        if link.get("gone") is not None and not plain and r["compiler"].get("discardvisual") != "false":
            parts.append(e("visual", (), e("geometry", (), e("mesh", {"filename": link["gone"]})), e("material", {"name": "m"}, e("texture", {"filename": "gone.png"}))))
        out.append(e("link", {"name": link["name"]}, *parts))
    for i in r["joint_order"]:
        j = r["joints"][i]
        parts = [e("parent", {"link": r["links"][j["parent"]]["name"]}), e("child", {"link": r["links"][j["child"]]["name"]})]
        parts.append(place(r, j["xyz"], j["rpy"]))
        if j["axis"] and j["type"] not in ("fixed", "floating"):
            parts.append(e("axis", {"xyz": words(j["axis"])}))
        kind, limit, effort = j["type"], j["limit"], j["effort"]
        if plain and limit and isinstance(limit[0], str):  # inf
            kind, limit = "continuous", None
        if plain and isinstance(effort, str):
            effort = None
        if limit:
            parts.append(e("limit", {"lower": limit[0], "upper": limit[1], "effort": effort, "velocity": 3}))
            if j.get("again") and not plain:
                parts.append(e("limit", {"lower": -0.1, "upper": 0.1, "effort": 1}))
        elif kind in ("continuous", "revolute") and effort:
            # Without an end the range is empty.
            parts.append(e("limit", {"effort": effort, "velocity": 3}))
        if kind != "fixed":
            parts.append(e("dynamics", {"damping": j["damping"], "friction": j["friction"] or None}))
        if j["mimic"]:
            other, times, plus = j["mimic"]
            parts.append(e("mimic", {"joint": other["name"], "multiplier": times, "offset": plus}))
        out.append(e("joint", {"name": j["name"], "type": kind}, *parts))
    return e("robot", {"name": r["name"]}, *out)


def mjcf(r, address, plain):
    meshes = {}

    def geom(s):
        sizes = {"mesh": None}.get(s["what"], words(s["size"]))
        seen = {"contype": 0, "conaffinity": 0, "mass": 0, "group": 2} if s["use"] == "visual" else {}
        mesh = None
        if s["what"] == "mesh":
            key = json.dumps([s["mesh"], s["scale"]])
            mesh = meshes.setdefault(key, (f"m{len(meshes)}", address(s)))[0]
        euler = words(s["rpy"]) if any(s["rpy"]) else None
        return e("geom", {"type": s["what"], "size": sizes, "mesh": mesh, "pos": words(s["xyz"]), "euler": euler, **seen})

    def body(i, joint):
        link, parts = r["links"][i], []
        attrs = {"name": link["name"]}
        if joint:
            attrs.update(pos=words(joint["xyz"]), euler=words(joint["rpy"]))
            kind = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide"}.get(joint["type"])
            if kind:
                span = {"range": words(joint["limit"])} if joint["limit"] else {}
                parts.append(e("joint", {"name": joint["name"], "type": kind, "axis": words(joint["axis"]), "damping": joint["damping"], **span}))
        if link["inertial"]:
            m = link["inertial"]
            full = words(near(x, 9) for x in turned(m["full"], m["rpy"]))
            parts.append(e("inertial", {"pos": words(m["xyz"]), "mass": m["mass"], "fullinertia": full}))
        parts += [geom(s) for s in link["shapes"]]
        parts += [body(j["child"], j) for j in r["joints"] if j["parent"] == i]
        return e("body", attrs, *parts)

    world = e("worldbody", (), body(0, None))
    compiler = {"angle": "radian", "eulerseq": "XYZ", **r["compiler"], **({} if plain else r["extra"].get("attrs", {}))}
    compiler.pop("discardvisual", None)
    assets = [e("mesh", {"name": n, "file": a["filename"], "scale": a["scale"]}) for n, a in meshes.values()]
    if r["extra"].get("skin"):
        bone = e("bone", {"body": r["links"][0]["name"], "bindpos": "0 0 0", "bindquat": "1 0 0 0", "vertid": "0 1 2", "vertweight": "1 1 1"})
        assets.append(e("skin", {"name": "skin", "vertex": "0 0 0 1 0 0 0 1 0", "face": "0 1 2"}, bone))
    gains = {"motor": "gear", "position": "kp", "velocity": "kv"}
    drives = [e(kind, {"name": f"drive {j['name']}", "joint": j["name"], gains[kind]: k}) for kind, j, k in r["actuators"]]
    return e("mujoco", {"model": r["name"]}, e("compiler", compiler), e("asset", (), *assets) if assets else None, world,
        e("actuator", (), *drives) if drives else None)  # fmt: skip


def quoted(text, spell, d):
    text = str(text)
    if "odd_numbers" in spell and " " in text and not text.strip("0123456789. -"):
        text = "".join(d.choice(("", "  ", "\n", "\t", "+")) + (n.removesuffix("0") if "." in n else n) + d.choice((" ", "\n\t")) for n in text.split()).replace("+-", "-").replace("+\n", "\n")
    text = text.replace("&", "&" if "bare_ampersand" in spell else "&amp;").replace('"', "&quot;").replace("'", "&apos;")
    text = text.replace("<", "<" if "bare_less" in spell else "&lt;")
    if "references" in spell and text.isalnum() and d.random() < 0.3:
        return f"&#{ord(text[0])};" + text[1:]
    return text


def written(element, spell, d, depth=0):
    tag, attrs, children = element
    equals = " = " if "blank_around_equals" in spell else "="
    mark = "'" if "single_quotes" in spell else '"'
    pairs = [f"{k}{equals}{mark}{quoted(v, spell, d)}{mark}" for k, v in attrs.items()]
    between = "" if "no_blanks" in spell and d.random() < 0.3 else " "
    head = " ".join([tag, between.join(pairs)]) if pairs else tag
    pad = "  " * depth
    if not children:
        return f"{pad}<{head}/>\n"
    inner = "".join(
        ("  " * depth + d.choice(spell["comments"]) + "\n" if spell.get("comments") and d.random() < 0.1 else "") + written(c, spell, d, depth + 1)
        for c in children
    )
    return f"{pad}<{head}>\n{inner}{pad}</{tag}>\n"


STRANGE = {
    "unknown_elements": ["<self_collision_checking a='1'/>", "<frame name='f' link='x' xyz='0 0 1'/>", "<group name='arm'><joint name='j'/></group>",
        "<author>me</author>", "<inertial><mass value='9'/></inertial>", "<disable_collisions link1='a' link2='b'/>", "<origin xyz='9 9 9'/>"],
    "undeclared_prefixes": ["<controller:p name='x'/>", "<v:property name='a' value='1'/>", "<a:link name='ghost'/>", "<a:joint name='ghost' type='fixed'/>"],
    "for_gazebo": ["<gazebo reference='link_0'><material>Gazebo/Red</material><mu1>0.2</mu1><plugin name='p' filename='lib&amp;.so'/></gazebo>"],
    "for_control": ["<transmission name='t'><type>x/Y</type><joint name='link_0'/></transmission>",
        "<ros2_control name='h' type='system'><hardware><plugin>x/Y</plugin></hardware><joint name='j'><param name='a'>1</param></joint></ros2_control>"],
    "declared_prefixes": ["<g:link xmlns:g='http://g' name='ghost'/>"],
    "sections": ["<material name='red'><color rgba='1 0 0 1'/></material>", "<material name='t'><texture filename='gone.png'/></material>"],
    "cdata": ["<gazebo><![CDATA[ a < b && c ]]></gazebo>"],
}  # fmt: skip


def text_of(r, tree):
    """The file's bytes, with its quirks of writing."""
    spell, d = dict(r["spell"]), r["dice"]
    comments = {"dashes": "<!-- plate -- weldable -->", "ruler": "<!-- ---------- arm ---------- -->"}
    spell["comments"] = [c for k, c in comments.items() if k in spell]
    tag, attrs, children = tree
    marks, lines = [], {}
    for name, choice in STRANGE.items():
        if name in spell:
            marks.append((len(marks), d.choice(choice)))
    for k, line in marks:
        lines[f"strange_{k}"] = line
        children = list(children)
        children.insert(d.randrange(len(children) + 1), e(f"strange_{k}"))
    if "unknown_elements" in spell:
        inside = [c for c in children if c[0] in ("link", "joint")]
        where = d.choice(inside)
        known = "<self_filter scale='1'/>" if where[0] == "link" else "<hardwareInterface>EffortJointInterface</hardwareInterface>"
        lines["strange_in"] = d.choice((known, "<velocity_controller/>", "<verbose value='x'/>"))
        if where[0] == "joint" and d.random() < 0.3:
            lines["strange_in"] = "<safety_controller k_velocity='1'/><calibration rising='0.1'/>"
        where[2].append(e("strange_in"))
    if "unknown_attributes" in spell:
        d.choice(children)[1]["vendor"] = attrs["version"] = "1.0"
    text = written((tag, attrs, children), spell, d)
    for mark, line in lines.items():
        text = text.replace(f"<{mark}/>", line)
    if "text_between" in spell:
        text = text.replace(">\n", ">\n stray words\n", 1)
    if "second_end" in spell:
        text += f"</{tag}>\n"
    if "second_root" in spell and "second_end" not in spell:
        text += f"<{tag}/>\n"
    if "doctype" in spell:
        text = f"<!DOCTYPE {tag}>\n" + text
    if "instruction" in spell:
        text = '<?xml-model href="x.rng"?>\n' + text
    code = {"latin1": "iso-8859-1", "utf16": "utf-16", "windows_1252": "windows-1252"}.get(next((k for k in spell if k in ("latin1", "utf16", "windows_1252")), ""), "utf-8")
    try:
        text.encode(code)
    except UnicodeEncodeError:
        code = "utf-8"
    if code != "utf-8" or "no_declaration" not in spell:
        text = f'<?xml version="1.0" encoding="{code}"?>\n' + text
    elif "leading_blanks" in spell:
        text = "\n\n  " + text
    if "byte_order_mark" in spell:
        text = "\ufeff" + text
    if "crlf" in spell:
        text = text.replace("\n", "\r\n")
    return text.encode(code)


def task(r, robot, within):
    """A task that drives the robot, and what it says of each actuator; None without joints.

    Names stand in an order of their own, numbers beside them."""
    d = random.Random(f"task {r['seed']}")
    follows = [j for j in r["joints"] if j["mimic"]]
    free = [j for j in r["joints"] if j["type"] in ("revolute", "continuous", "prismatic") and j["name"] and j not in follows]
    lines = ["[sim]", 'specialize = "off"', "threads = 1", "[env]", "num_envs = 16", "episode_length_s = 0.2", "[actor]", "hidden_dims = [8]",
        "[critic]", "hidden_dims = [8]", "[runner]", "num_steps_per_env = 8", "max_iterations = 2", "[task]", f"robot = {json.dumps(robot)}"]  # fmt: skip
    if within is not None:
        lines.append(f"robot_folder = {json.dumps(within or '.')}")
    if r["meaning"] == "balanced":
        lines.append("balance_inertia = true")
    own = {a[1]["name"]: (f"drive {a[1]['name']}", a) for a in r["actuators"]}
    if r["kind"] == "mjcf":
        free = [j for j in free if j["name"] in own]
    # These are patterns, or stand for others, or cannot be quoted.
    free = [j for j in free if not any(c in j["name"] for c in '*{}"')]
    if not free or r["meaning"] == "or refused":
        return "", None
    d.shuffle(free)
    wanted = {}
    names = lambda joints, of=lambda n: n: json.dumps([of(j["name"]) for j in joints], ensure_ascii=False)  # noqa: E731
    cut = d.randint(1, len(free))
    for part in filter(None, (free[:cut], free[cut:])):
        draw = lambda low, high: [near(d.uniform(low, high), 3) for _ in part]  # noqa: E731
        scale, offset, kp, kd = draw(0.1, 1), draw(-0.1, 0.1), draw(5, 40), draw(0.2, 2)
        if r["kind"] == "urdf":
            d.shuffle(part)
            lines += ["[[task.actuator]]", f"joints = {names(part)}", f"stiffness = {kp}", f"damping = {kd}"]
            wanted.update({j["name"]: {"joint": j["name"], "stiffness": p, "damping": v} for j, p, v in zip(part, kp, kd)})
        else:
            gains = {"motor": (0, 0), "position": (1, 0), "velocity": (0, 1)}
            for j in part:
                kind, _, k = own[j["name"]][1]
                wanted[own[j["name"]][0]] = {"joint": j["name"], "stiffness": gains[kind][0] * k, "damping": gains[kind][1] * k}
        d.shuffle(part)
        spell = (lambda n: n) if r["kind"] == "urdf" else (lambda n: own[n][0])
        for j, s, o in zip(part, scale, offset):
            wanted[spell(j["name"])].update(scale=s, offset=o)
        kind = "position" if r["kind"] == "urdf" else "control"
        lines += ["[[task.action]]", f"actuators = {names(part, spell)}", f'kind = "{kind}"', f"scale = {scale}", f"offset = {offset}"]
    poses = {}
    for j in free:
        ends = j["limit"] or (None, None)
        low, high = ends if all(isinstance(x, float) for x in ends) and ends[0] < ends[1] else (-0.3, 0.3)
        poses[j["name"]] = near(0.5 * d.uniform(low, high), 3)
        target = f"joint_pos({json.dumps(j['name'], ensure_ascii=False)})"
        lines += ["[[task.reset]]", f"target = {json.dumps(target, ensure_ascii=False)}", f"value = {poses[j['name']]}"]
    d.shuffle(free)
    for name, call in (("q", "joint_pos_rel"), ("v", "joint_vel")):
        lines += ["[[task.observation]]", f'name = "{name}"', f"expr = {json.dumps(f'{call}({names(free)})', ensure_ascii=False)}"]
    seen = [j["name"] for j in free]
    far = json.dumps(f"abs(joint_pos({json.dumps(seen[0], ensure_ascii=False)}))", ensure_ascii=False)
    lines += ["[[task.observation]]", 'name = "last"', 'expr = "last_action"', "[[task.reward]]", 'name = "far"', f"expr = {far}"]
    for one in wanted.values() if r["kind"] == "urdf" else ():
        # Targets of joints count from the pose.
        one["offset"] += poses[one["joint"]]
    return "\n".join([*lines, ""]), {"actions": wanted, "poses": poses}
