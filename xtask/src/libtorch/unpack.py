"""Unpacks wheels side by side; whoever calls has checked their sums.

usage: unpack.py FOLDER WHEEL...

Exits with 28 where the disk is full. Runs on any Python from 3.6.
"""

import os
import stat
import sys
import zipfile


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


if __name__ == "__main__":
    try:
        unpack(sys.argv[1], sys.argv[2:])
    except OSError as error:
        print("%s" % error, file=sys.stderr)
        sys.exit(28 if error.errno == 28 else 1)
