"""Runs the functions `test_*` of a file: `run.py FILE [NAME]`."""

import importlib.util
import sys
import traceback

spec = importlib.util.spec_from_file_location("tests", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
wanted = sys.argv[2:]
names = [n for n in dir(module) if n.startswith("test_") and (not wanted or n in wanted)]
failed = 0
for name in names:
    try:
        getattr(module, name)()
        print("ok", name)
    except Exception:
        failed += 1
        print("FAILED", name)
        traceback.print_exc(file=sys.stdout)
assert names, "no tests"
print(f"{len(names) - failed} passed, {failed} failed")
sys.exit(int(failed > 0))
