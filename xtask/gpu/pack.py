"""Packs a folder for machines that take it in parts.

    python3 pack.py FOLDER OUT LIMIT PRESET PARTS_FILES...

One archive of FOLDER (xz, PRESET 0 to 9; not compressed for "-"), cut into pieces of at most LIMIT
bytes; OUT/part-K has the K-th piece, the list of all, and the files that every part has.
"""

import hashlib
import json
import os
import shutil
import sys
import tarfile


def main():
    folder, out, limit, preset = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    whole = os.path.join(out, "whole")
    if preset == "-":
        archive = tarfile.open(whole, "w")
    else:
        archive = tarfile.open(whole, "w:xz", preset=int(preset))
    with archive:
        for name in sorted(os.listdir(folder)):
            archive.add(os.path.join(folder, name), arcname=name)
    pieces = []
    name = hashlib.sha256()
    with open(whole, "rb") as file:
        while True:
            piece = file.read(limit)
            if not piece:
                break
            name.update(piece)
            part = os.path.join(out, "part-%d" % (len(pieces) + 1))
            os.makedirs(part)
            pieces.append("piece.%03d" % len(pieces))
            with open(os.path.join(part, pieces[-1]), "wb") as to:
                to.write(piece)
            for same in sys.argv[5:]:
                shutil.copy(same, part)
    os.remove(whole)
    for k in range(1, len(pieces) + 1):
        with open(os.path.join(out, "part-%d" % k, "pieces.json"), "w") as file:
            json.dump({"name": name.hexdigest()[:16], "all": pieces}, file)


main()
