"""Pairs of geoms for MuJoCo and for the narrow phase's C interface."""

import ctypes as ct
import re
from pathlib import Path

import mujoco
import numpy as np

SHAPES = (Path(__file__).parents[3] / "kernels/collide/shapes.h").read_text()
# MuJoCo's, and the ground that a task makes; a height field is called a field here.
NAMES = re.findall(r"  X\((\w+), [A-Z]", SHAPES)
COUNT = len(NAMES)
NAMES = ["field" if name == "hfield" else name for name in NAMES]
TYPE_ID = {name: i for i, name in enumerate(NAMES)}
TYPES = [name for name in NAMES if name != "terrain"]


def pair_kind(first, second):
    return TYPE_ID[first] * COUNT + TYPE_ID[second]


MOST = 50


def vertices(name):
    """Corners of the meshes that the pairs use: few (searched one by one), many
    (climbed), a box and prisms with their flat faces, the "drum" with many corners."""
    rng = np.random.default_rng(len(name))
    if name == "prism":
        turns = np.cumsum([0.3, 0.8, 0.5, 1.1, 0.6, 0.9, 0.7])
        return np.array([[0.1 * np.cos(t), 0.08 * np.sin(t), z] for z in (-0.06, 0.04)
                         for t in turns])
    if name == "drum":
        turns = 2 * np.pi / 90 * np.cumsum(rng.uniform(0.5, 1.5, 90))
        return np.array([[0.1 * np.cos(t), 0.08 * np.sin(t), z] for z in (-0.06, 0.04)
                         for t in turns])
    if name == "plate":
        corners = [(30, 31), (-19, 37), (-44, 19), (-50, -3), (47, -13), (48, -12)]
        return np.array([[x, y, z] for z in (-20, 20) for x, y in corners]) / 400
    if name == "cube":
        return np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [
            0.1, 0.07, 0.05]
    count = 9 if name == "few" else 40
    points = rng.normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * [0.12, 0.09, 0.07]


def model(first, second, mesh="many"):
    """A MuJoCo model with this pair of geoms alone; their poses are written later."""
    rng = np.random.default_rng(5)
    rows, columns = 9, 12
    heights = rng.uniform(0, 1, (rows, columns))
    heights[0, 0], heights[-1, -1] = 0, 1
    flat = np.linspace(0, 1, columns)[None, :] * np.ones((rows, 1))
    heights = np.where(np.arange(columns)[None, :] < 6, heights, flat)

    def geom(name, kind):
        if kind == "field":
            return f'<geom name="{name}" type="hfield" hfield="field"/>'
        if kind == "mesh":
            return f'<geom name="{name}" type="mesh" mesh="mesh"/>'
        return f'<geom name="{name}" type="{kind}" size="0.1 0.1 0.1"/>'

    corners = " ".join(f"{x:.9g}" for x in vertices(mesh).ravel())
    elevation = " ".join(f"{x:.9g}" for x in heights.ravel())
    # Planes and height fields are static; every other geom is on a free body.
    static = geom("a", first) if first in ("plane", "field") else ""
    moving = "" if static else f'<body><freejoint/>{geom("a", first)}</body>'
    xml = f"""<mujoco><option><flag midphase="disable"/></option>
      <asset><mesh name="mesh" vertex="{corners}"/>
        <hfield name="field" nrow="{rows}" ncol="{columns}" size="0.6 0.4 0.15 0.1"
                elevation="{elevation}"/></asset>
      <worldbody>{static}{moving}<body><freejoint/>{geom("b", second)}</body></worldbody>
      <contact><pair geom1="a" geom2="b"/></contact></mujoco>"""
    m = mujoco.MjModel.from_xml_string(xml)
    # Where the iterative searches of both sides have converged, they can be compared.
    m.opt.ccd_tolerance = 1e-12
    m.opt.ccd_iterations = 400
    return m


def mesh_tables(m, real):
    """The model's mesh as the kernels' ConvexMesh; keeps what it points to."""
    p = ct.c_void_p

    class Mesh(ct.Structure):
        _fields_ = [("vertices", ct.c_int), ("vertex", p), ("bound", real), ("hull", ct.c_int),
                    ("hull_edges", p), ("hull_vertex", p), ("hull_next", p), ("seed", p),
                    ("polygons", ct.c_int), ("polygon_normal", p), ("polygon_start", p),
                    ("polygon_size", p), ("polygon_vertex", p), ("vertex_start", p),
                    ("vertex_degree", p), ("vertex_polygon", p)]

    dtype = np.float64 if real is ct.c_double else np.float32
    keep = []

    def ints(a):
        keep.append(np.ascontiguousarray(a, dtype=np.int32))
        return keep[-1].ctypes.data

    def reals(a):
        keep.append(np.ascontiguousarray(a, dtype=dtype))
        return keep[-1].ctypes.data

    graph = m.mesh_graph[m.mesh_graphadr[0]:]
    hull = int(graph[0])
    used = np.flatnonzero(m.geom_type == mujoco.mjtGeom.mjGEOM_MESH)
    bound = m.geom_rbound[used[0]] if len(used) else 0.0
    mesh = Mesh(int(m.mesh_vertnum[0]), reals(m.mesh_vert), float(bound), hull,
                ints(graph[2:2 + hull]), ints(graph[2 + hull:2 + 2 * hull]),
                ints(graph[2 + 2 * hull:]), ints(m.mesh_extrema), int(m.mesh_polynum[0]),
                reals(m.mesh_polynormal), ints(m.mesh_polyvertadr), ints(m.mesh_polyvertnum),
                ints(m.mesh_polyvert), ints(m.mesh_polymapadr), ints(m.mesh_polymapnum),
                ints(m.mesh_polymap))
    mesh.keep = keep
    return mesh


def field_tables(m, real):
    class Field(ct.Structure):
        _fields_ = [("rows", ct.c_int), ("columns", ct.c_int), ("size", real * 4),
                    ("height", ct.c_void_p)]

    dtype = np.float64 if real is ct.c_double else np.float32
    height = np.ascontiguousarray(m.hfield_data, dtype=dtype)
    field = Field(int(m.hfield_nrow[0]), int(m.hfield_ncol[0]),
                  (real * 4)(*m.hfield_size[0]), height.ctypes.data)
    field.keep = height
    return field


class Kernel:
    """The compiled narrow phase in one precision."""

    def __init__(self, library, precision):
        self.real = ct.c_double if precision == "double" else ct.c_float
        self.dtype = np.float64 if precision == "double" else np.float32
        self.call = getattr(library, f"collide_{precision}")
        self.call.restype = None
        self.timer = getattr(library, f"time_{precision}")
        self.timer.restype = ct.c_double
        self.most = library.most_hits

    def run(self, m, kind, a, b, margin):
        """Hits of each pair: counts [n] and rows (dist, pos, normal, tangent) [n, MOST, 10]."""
        n = len(a)
        a, b, margin = (np.ascontiguousarray(x, dtype=self.dtype) for x in (a, b, margin))
        counts = np.zeros(n, np.int32)
        out = np.full((n, MOST, 10), np.nan, self.dtype)
        mesh, field = mesh_tables(m, self.real), field_tables(m, self.real)
        self.call(kind, n, *(ct.c_void_p(x.ctypes.data) for x in (a, b)), ct.byref(mesh),
                  ct.byref(mesh), ct.byref(field),
                  *(ct.c_void_p(x.ctypes.data) for x in (margin, counts, out)))
        return counts, out.astype(np.float64)

    def time(self, kind, a, b, rounds):
        """Seconds per pair."""
        a, b = (np.ascontiguousarray(x, dtype=self.dtype) for x in (a, b))
        total = self.real(0)
        pointers = (ct.c_void_p(x.ctypes.data) for x in (a, b))
        return self.timer(kind, len(a), rounds, *pointers, ct.byref(total)) / (len(a) * rounds)


def bound(m, kind, size):
    if kind in ("plane", "field"):
        return 0.0
    x, y, z = size
    return {"sphere": x, "capsule": x + y, "cylinder": np.hypot(x, y), "ellipsoid": max(size),
            "box": np.linalg.norm(size), "mesh": m.geom_rbound[m.geom_type == mujoco.mjtGeom.mjGEOM_MESH].max(initial=0)}[kind]


def mujoco_hits(m, first, second, a, b, margin):
    """MuJoCo's contacts, as Kernel.run's."""
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    n = len(a)
    counts = np.zeros(n, np.int32)
    out = np.full((n, MOST, 10), np.nan)
    for i in range(n):
        for g, solid, kind in ((0, a[i], first), (1, b[i], second)):
            d.geom_xpos[g], d.geom_xmat[g] = solid[:3], solid[3:12]
            if kind not in ("mesh", "field", "plane"):
                m.geom_size[g] = solid[12:]
                m.geom_rbound[g] = bound(m, kind, solid[12:])
        m.pair_margin[0] = margin[i]
        mujoco.mj_collision(m, d)
        counts[i] = d.ncon
        if d.ncon:
            c = d.contact
            out[i, :d.ncon, 0] = c.dist
            out[i, :d.ncon, 1:4] = c.pos
            out[i, :d.ncon, 4:10] = np.asarray(c.frame).reshape(d.ncon, 9)[:, :6]
    return counts, out
