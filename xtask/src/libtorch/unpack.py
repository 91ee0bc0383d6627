"""Checks wheels against their sha256 sums and unpacks them side by side.

usage: unpack.py verify SHA256 WHEEL
       unpack.py unpack FOLDER WHEEL...

`verify` exits with 3 where the sum differs. Runs on any Python from 3.6.
"""

import hashlib
import os
import stat
import sys
import zipfile


def verify(expected, wheel):
    digest = hashlib.sha256()
    with open(wheel, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest() == expected


def unpack(folder, wheels):
    archives = [zipfile.ZipFile(wheel) for wheel in wheels]
    total = sum(entry.file_size for archive in archives for entry in archive.infolist())
    done, shown = 0, -1
    terminal = sys.stderr.isatty()
    for archive in archives:
        for entry in archive.infolist():
            # extract() keeps names inside the folder, and checks each CRC.
            path = archive.extract(entry, folder)
            mode = entry.external_attr >> 16
            if stat.S_ISLNK(mode):
                target = archive.read(entry).decode()
                os.remove(path)
                os.symlink(target, path)
            elif mode & 0o111 and not os.path.isdir(path):
                os.chmod(path, 0o755)
            done += entry.file_size
            percent = 100 * done // max(total, 1)
            if percent >= shown + (1 if terminal else 25):
                shown = percent
                end = "\r" if terminal else "\n"
                print("  unpacking: %3d %%" % percent, end=end, file=sys.stderr, flush=True)
    print("  unpacking: 100 %", file=sys.stderr, flush=True)


def main():
    if sys.argv[1] == "verify":
        return 0 if verify(sys.argv[2], sys.argv[3]) else 3
    unpack(sys.argv[2], sys.argv[3:])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print("%s" % error, file=sys.stderr)
        sys.exit(28 if error.errno == 28 else 1)
