"""A preprocessor of mdBook: links that lead out of docs/ lead to the repository.

In the book there is no ../README.md. Such links become those of the repository's page
(`OSTLER_REPOSITORY=https://.../blob/main`, as the workflow of the pages sets it), or of the
files of this checkout.
"""

import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def outside(match):
    path, anchor = match[1], match[2] or ""
    repository = os.environ.get("OSTLER_REPOSITORY")
    base = repository.rstrip("/") if repository else ROOT.as_uri()
    return f"]({base}/{path}{anchor})"


def rewrite(text):
    return re.sub(r"\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)", outside, text)


def walk(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            chapter["content"] = rewrite(chapter["content"])
            walk(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _context, book = json.load(sys.stdin)
    walk(book["items"])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
