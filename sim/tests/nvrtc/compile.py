"""Compiles CUDA programs with NVRTC, without a GPU, and says what they need.

    python compile.py ARCH PROGRAM.cu...

NVRTC is that of the package nvidia-cuda-nvrtc. Prints one JSON object a line:
{"program", "arch", "registers", "stack", "spill_stores", "spill_loads", "seconds",
"bytes"}, or {"program", "error"}.
"""

import ctypes
import glob
import json
import os
import re
import sys
import time


def library():
    for base in sys.path:
        found = glob.glob(os.path.join(base, "nvidia", "**", "libnvrtc.so.1?"), recursive=True)
        if found:
            # NVRTC looks its built-in functions up by name: loaded first, they are found.
            for builtins in glob.glob(os.path.join(os.path.dirname(found[0]), "libnvrtc-builtins.so*")):
                ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(found[0])
    print(json.dumps({"missing": "nvidia-cuda-nvrtc"}))
    sys.exit(0)


def compile(nvrtc, path, arch):
    with open(path, "rb") as file:
        source = file.read()
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None)
    options = [
        b"--gpu-architecture=" + arch.encode(),
        b"--std=c++17",
        b"--fmad=false",
        b"-default-device",
        b"--ptxas-options=-v",
    ]
    start = time.time()
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    seconds = time.time() - start
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, text)
    log = text.value.decode(errors="replace")
    name = os.path.basename(path)
    if code:
        errors = [line for line in log.splitlines() if "error" in line]
        return {"program": name, "error": "\n".join(errors[:12]) or log[:2000]}
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    # Each function reports itself; the entry's line comes with its registers.
    def largest(pattern):
        return max((int(n) for n in re.findall(pattern, log)), default=0)
    return {
        "program": name,
        "arch": arch,
        "registers": largest(r"Used (\d+) registers"),
        "stack": largest(r"(\d+) bytes stack frame"),
        "spill_stores": largest(r"(\d+) bytes spill stores"),
        "spill_loads": largest(r"(\d+) bytes spill loads"),
        "seconds": round(seconds, 1),
        "bytes": size.value,
    }


def main():
    nvrtc = library()
    for path in sys.argv[2:]:
        print(json.dumps(compile(nvrtc, path, sys.argv[1])), flush=True)


main()
