"""Contacts of the scalar narrow phase against MuJoCo's, pair by pair.

usage: compare.py LIBRARY [--count N] [--kinds a-b,c-d] [--how anywhere,...]

Prints a table and exits with 1 where a gate is missed. Contacts are compared as
sets. A contact that one side alone has is forgiven where its distance is at the
margin to within the gate: there rounding decides. Hostile input must end.
"""

import argparse
import ctypes
import sys

import mujoco
import numpy as np

from place import place
from scene import TYPES, Kernel, model, mujoco_hits, pair_kind

ANALYTIC = {f"plane-{t}" for t in TYPES[2:]} | {
    "sphere-sphere", "sphere-capsule", "sphere-cylinder", "sphere-box", "capsule-capsule",
    "capsule-box", "box-box"}
HOW = ["anywhere", "touching", "nearly", "edge", "aligned"]

# Largest errors of dist, pos, normal and second axis. MuJoCo's search is exact in the
# distance to its tolerance of 1e-12 and in the normal to the root of that, times the
# curvature; positions lie between.
GATES = {("analytic", "double"): [1e-10] * 4, ("analytic", "float"): [1e-4] * 2 + [1e-3] * 2,
         ("iterative", "double"): [1e-6, 1e-5, 5e-4, 5e-4],
         ("iterative", "float"): [1e-5, 1e-4, 1e-3, 1e-3]}
# At MuJoCo's own tolerance, at which an edge that rounding tilts lies on a cap.
EDGE = [1e-6, 2e-3, 1e-4, 1e-4]


# Meshes with faces of many corners, of which four are kept.
MANY_CORNERS = ["prism", "plate", "drum"]


def allowed(pair, how, precision, mesh):
    """Share of placements that may miss the gate, and why."""
    if how == "edge":
        # Where the cap ends near the edge's end, the search's path decides.
        return 0.06
    if how == "nearly":
        if precision == "double":
            # Where nearly parallel segments are nearest follows from a determinant of almost 0.
            return 0.1 if pair == "capsule-capsule" else 0
        # A tilt below single precision's resolution gives a rim no lowest point.
        if pair == "plane-cylinder":
            return 0.15
        # Which corner of a face is the lowest, with which the choice of four begins.
        return 0.1 if pair == "plane-mesh" and mesh in MANY_CORNERS else 0.01
    if pair in ANALYTIC:
        # On ties (a sphere's centre as far from two faces) float's rounding decides.
        return 0 if precision == "double" else 0.04 if how == "aligned" else 0.005
    if pair in ("field-box", "field-mesh"):
        # MuJoCo ends these searches early, at a face that depends on their path.
        return 1 if how == "aligned" else 0.75
    if how == "aligned":
        # Overlaps equally deep in several directions: which one is a matter of path.
        if pair in ("box-mesh", "mesh-mesh"):
            return 0.06 if precision == "double" else 0.15
        return 1 if pair.startswith("field") else 0.2
    if "cylinder" in pair:
        # Of a cap on a vertex the search's path decides which line of the side counts.
        return 0.02
    if "ellipsoid" in pair or pair.startswith("field"):
        # Deep overlaps of nearly round shapes, where MuJoCo's polytope has not converged.
        return 0.015
    return 0.005


def limit(pair, how, precision, count, mesh):
    share = allowed(pair, how, precision, mesh)
    return share * count + 2 if share else 0


def second_axis(hits):
    """The contact frame's second axis, from the normal and the hint."""
    n, t = hits[:, 4:7], hits[:, 7:10].copy()
    free = np.einsum("ij,ij->i", t, t) < 0.25
    y = np.abs(n[:, 1]) < 0.5
    t[free] = np.where(y[free, None], [0, 1, 0], [0, 0, 1])
    t -= n * np.einsum("ij,ij->i", n, t)[:, None]
    length = np.linalg.norm(t, axis=1, keepdims=True)
    # A hint along the normal leaves nothing: MuJoCo's mju_normalize3 then says x.
    return np.where(length < 1e-10, [1, 0, 0], t / np.maximum(length, 1e-300))


def pair_up(ours, theirs):
    """Greedy matching by position, then error of each matched contact."""
    cost = np.linalg.norm(ours[:, None, 1:4] - theirs[None, :, 1:4], axis=2)
    free_o, free_t, pairs = set(range(len(ours))), set(range(len(theirs))), []
    for flat in np.argsort(cost, axis=None):
        i, j = divmod(int(flat), len(theirs))
        if i in free_o and j in free_t:
            pairs.append((i, j))
            free_o.discard(i)
            free_t.discard(j)
    return pairs, free_o, free_t


def errors(ours, theirs, margin, gate):
    """Errors (dist, pos, normal, second axis) of the matched; unforgiven leftovers."""
    pairs, alone_o, alone_t = pair_up(ours, theirs)
    left = sum(abs(ours[i, 0] - margin) > gate[1] for i in alone_o)
    left += sum(abs(theirs[j, 0] - margin) > gate[1] for j in alone_t)
    o, t = ours[[i for i, _ in pairs]], theirs[[j for _, j in pairs]]
    y = t[:, 7:10]
    # At |normal_y| = 0.5 the free second axis jumps.
    settled = np.abs(np.abs(t[:, 5]) - 0.5) > 1e-3
    err = np.stack([np.abs(o[:, 0] - t[:, 0]), np.linalg.norm(o[:, 1:4] - t[:, 1:4], axis=1),
                    np.linalg.norm(o[:, 4:7] - t[:, 4:7], axis=1),
                    settled * np.linalg.norm(second_axis(o) - y, axis=1)], 1)
    return err, left


def compare(kernels, first, second, how, count, mesh, seed, verbose):
    rng = np.random.default_rng(seed)
    m = model(first, second, mesh)
    if how == "edge":
        m.opt.ccd_tolerance = mujoco.MjOption().ccd_tolerance
    kind = pair_kind(first, second)
    a, b, margin = place(how, rng, m, kernels["double"], first, second, count)
    n_t, theirs = mujoco_hits(m, first, second, a, b, margin)
    row = {"contacts": int(n_t.sum())}
    for precision, kernel in kernels.items():
        pair = f"{first}-{second}"
        gate = GATES["analytic" if pair in ANALYTIC else "iterative", precision]
        if how == "edge":
            gate = EDGE
        n_o, ours = kernel.run(m, kind, a, b, margin)
        left, bad, missed, lost, worst = 0, 0, 0, 0, [np.zeros((0, 4))]
        for i in range(count):
            if n_o[i] == 0 and n_t[i] == 0:
                continue
            err, more = errors(ours[i, :n_o[i]], theirs[i, :n_t[i]], margin[i], gate)
            left += more > 0
            wrong = not (err < gate).all()
            bad += wrong
            missed += wrong or more > 0
            # A clear overlap that is not found lets bodies fall through each other.
            lost += n_o[i] == 0 and theirs[i, :n_t[i], 0].min() < -1e-4
            # Of a contact whose place is undecided the depth is not.
            lost += how == "nearly" and first == "plane" and err[:, 0].max(initial=0) > 1e-6
            worst.append(err)
            if verbose and (more or wrong) and precision == verbose:
                print(i, "margin", margin[i], "\n", a[i].tolist(), "\n", b[i].tolist())
                print("ours\n", ours[i, :n_o[i]], "\ntheirs\n", theirs[i, :n_t[i]], "\n", err)
                verbose = False
        err = np.concatenate(worst)
        row[precision] = {"left": left, "bad": bad,
                          "failed": lost > 0 or missed > limit(pair, how, precision, count, mesh),
                          "max": err.max(0).tolist() if len(err) else [0] * 4}
    return row


def survive(kernels, count):
    """Hostile input ends, within the bound on hits: NaN, infinite, huge, zero, tiny
    sizes, coincident centres, for every pair."""
    rng = np.random.default_rng(9)
    failed = []
    m = model("sphere", "mesh", "many")
    for first in TYPES:
        for second in TYPES[max(TYPES.index(first), 2):]:
            kind = pair_kind(first, second)
            a, b, margin = place("degenerate", rng, m, kernels["double"], first, second, count)
            for solids in (a, b):
                poison = rng.choice([np.nan, np.inf, -np.inf, 1e30, 1e-30, 0, -0.1], a.shape)
                hit = rng.uniform(size=a.shape) < rng.choice([0, 0.02, 0.5], (count, 1))
                solids[hit] = poison[hit]
            for precision, kernel in kernels.items():
                with np.errstate(over="ignore"):
                    hits, _ = kernel.run(m, kind, a, b, margin)
                # A field says by one more that not all fitted.
                most = kernel.most(kind) + (first == "field")
                if hits.min() < 0 or hits.max() > most:
                    failed.append(f"{first}-{second} hostile {precision}")
    return failed


def main():
    args = argparse.ArgumentParser()
    args.add_argument("library")
    args.add_argument("--count", type=int, default=1000)
    args.add_argument("--kinds", default="")
    args.add_argument("--how", default=",".join(HOW))
    args.add_argument("--verbose", default="", help="double or float: print the first miss")
    args.add_argument("--mesh", default="few,many,cube")
    args = args.parse_args()
    library = ctypes.CDLL(args.library)
    kernels = {p: Kernel(library, p) for p in ("double", "float")}
    kinds = args.kinds.split(",") if args.kinds else [
        f"{f}-{s}" for i, f in enumerate(TYPES) for s in TYPES[max(i, 2):]]
    print(f"MuJoCo {mujoco.__version__}; errors are the largest of dist, pos, normal, 2nd axis")
    print(f"{'pair':20} {'placed':9} {'pairs':>5} {'hits':>5}  "
          f"{'double: alone':>13} {'off':>4} {'dist':>8} {'pos':>8} {'normal':>8}  "
          f"{'float: alone':>12} {'off':>4} {'dist':>8} {'pos':>8} {'normal':>8}")
    failed = []
    for kind in kinds:
        first, second = kind.split("-")
        meshes = args.mesh.split(",") if "mesh" in kind else ["many"]
        more = {"plane-mesh": MANY_CORNERS, "box-mesh": ["prism"], "mesh-mesh": ["prism"]}
        for mesh in meshes + more.get(kind, []):
            for k, how in enumerate(args.how.split(",")):
                if how == "nearly" and kind not in ANALYTIC:
                    continue
                if how == "edge" and kind != "cylinder-box":
                    continue
                row = compare(kernels, first, second, how, args.count, mesh, 100 + k, args.verbose)
                name = kind + (f" {mesh}" if "mesh" in kind else "")
                text = f"{name:20} {how:9} {args.count:5} {row['contacts']:5}  "
                for p, w in (("double", 13), ("float", 12)):
                    r = row[p]
                    dist, pos, normal, axis = r["max"]
                    if r["failed"]:
                        failed.append(f"{name} {how} {p}")
                    text += (f"{r['left']:{w}} {r['bad']:4} {dist:8.1e} {pos:8.1e} "
                             f"{max(normal, axis):8.1e}  ")
                print(text, flush=True)
    failed += survive(kernels, args.count)
    print("missed:", "; ".join(failed) if failed else "nothing")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
