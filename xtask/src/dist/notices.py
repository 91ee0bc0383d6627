"""Writes the licences of everything that is linked into the wheel and the tarball.

    python3 xtask/src/dist/notices.py OUT.txt

Needs the crates' sources, all of them, as `cargo fetch` brings them. Licence texts that several
crates share, but for their copyright lines, are all there: they are the condition under which we
hand the crates on.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

#: Files of a licence, by their names.
LICENCE = re.compile(r"(un)?licen[cs]e|copying|notice|copyright", re.IGNORECASE)
LINE = "=" * 80
#: Packages that are handed on.
ROOTS = ("ostler-trainer", "ostler-python")


def linked(metadata):
    """Packages that the roots link, without what only builds or tests them."""
    by_id = {p["id"]: p for p in metadata["packages"]}
    nodes = {n["id"]: n for n in metadata["resolve"]["nodes"]}
    found = set()
    left = [i for i, p in by_id.items() if p["name"] in ROOTS]
    while left:
        here = left.pop()
        if here in found:
            continue
        found.add(here)
        for dep in nodes[here]["deps"]:
            if any(kind["kind"] is None for kind in dep["dep_kinds"]):
                left.append(dep["pkg"])
    return sorted((by_id[i] for i in found), key=lambda p: (p["name"], p["version"]))


def texts(folder):
    """Licence files of a crate, of C code in it, too."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in ("tests", "examples", "benches"))
        for name in sorted(names):
            if LICENCE.match(name) and not name.endswith((".rs", ".py", ".c", ".h")):
                yield Path(at, name)


def main(out):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    root = Path(__file__).resolve().parents[3]
    metadata = json.loads(subprocess.check_output(command, cwd=root))
    # A text that many crates have is written once.
    shared, without = {}, []
    for package in linked(metadata):
        if package["source"] is None:
            continue
        folder = Path(package["manifest_path"]).parent
        title = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
        found = list(texts(folder))
        if not found:
            without.append(title)
        for path in found:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            shared.setdefault(text, []).append(f"{title}: {path.relative_to(folder)}")
    vendor = root / "trainer/tools/src/view/vendor"
    for path in sorted(vendor.glob("LICENSE-*")):
        shared.setdefault(path.read_text().strip(), []).append(f"{path.name[8:]}, in pages")
    parts = ["Ostler is linked with these crates and the code in them.\n"]
    for text, titles in shared.items():
        parts.append("\n".join([LINE, *titles, "", text, ""]))
    if without:
        listed = "\n".join(f"  {title}" for title in without)
        parts.append(f"{LINE}\nCrates that come without a text, under these licences:\n{listed}\n")
    out.write_text("\n".join(parts), encoding="utf-8")
    print(f"{out}: {len(parts) - 1} texts, {out.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
