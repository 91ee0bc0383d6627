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

from drawn import draw
from files import mesh_bytes, mjcf, task, text_of, urdf, words
from quirks import LAYOUTS, QUIRKS


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
