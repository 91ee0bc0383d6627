"""Arrays of a learner on the pretend GPU, handed over by DLPack without any library."""

import ctypes

import numpy as np

NVIDIA = ctypes.CDLL("libcuda.so.1")
#: What copies read until somebody waits for them.
SENT = []


class Tensor(ctypes.Structure):
    """`DLManagedTensor` of <https://dmlc.github.io/dlpack/latest/>."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int * 2),
        ("axes", ctypes.c_int),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
NEW = ctypes.pythonapi.PyCapsule_New
NEW.restype, NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
GET = ctypes.pythonapi.PyCapsule_GetPointer
GET.restype, GET.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
CODES = {"f": 2, "i": 0, "b": 6}


class Given:
    """A learner's array on the device, as another library hands it over."""

    handed, deleted = 0, 0

    def __init__(self, rows, transposed=False, device=(2, 0)):
        rows = np.ascontiguousarray(rows)
        SENT.append(rows)
        self.device, self.rows, self.streams = device, rows, []
        at = ctypes.c_uint64()
        assert NVIDIA.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(max(rows.nbytes, 1))) == 0
        send = NVIDIA.cuMemcpyHtoDAsync_v2
        send.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        assert send(at, rows.ctypes.data, rows.nbytes, None) == 0
        self.at = at.value
        shape, strides = rows.shape, [n // rows.itemsize for n in rows.strides]
        if transposed:
            shape, strides = shape[::-1], strides[::-1]
        self.shape = shape
        self.axes = [(ctypes.c_int64 * len(x))(*x) for x in (shape, strides)]

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        Given.handed += 1
        code, bits = CODES[self.rows.dtype.kind], 8 * self.rows.itemsize
        shape, strides = self.axes
        device = (ctypes.c_int * 2)(*self.device)

        def delete(_):
            Given.deleted += 1

        self.delete = Deleter(delete)
        pointer = ctypes.cast(self.delete, ctypes.c_void_p)
        self.managed = Tensor(
            self.at, device, len(shape), code, bits, 1, shape, strides, 0, None, pointer
        )
        SENT.append(self)
        return NEW(ctypes.addressof(self.managed), b"dltensor", None)
