"""Placements of a pair: anywhere, barely touching, nearly aligned, an edge on a cap, aligned,
degenerate."""

import numpy as np

from scene import bound, pair_kind


def matrices(w, x, y, z):
    """Of unit quaternions."""
    return np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                     2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                     2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], 1)


def rotations(rng, n):
    q = rng.normal(size=(n, 4))
    return matrices(*(q / np.linalg.norm(q, axis=1, keepdims=True)).T)


def quarter_turns(rng, n):
    """Rotations that map axes to axes, exactly."""
    out = np.zeros((n, 3, 3))
    for m in out:
        m[np.arange(3), rng.permutation(3)] = rng.choice([-1, 1], 3)
        m[:, 0] *= np.linalg.det(m)
    return out.reshape(n, 9)


def sizes(rng, n):
    return rng.uniform(0.03, 0.15, (n, 3))


def bounds(m, kind, size):
    return np.array([bound(m, kind, s) for s in size])


def solids(pos, mat, size):
    return np.concatenate([pos, mat, size], 1)


def directions(rng, n):
    u = rng.normal(size=(n, 3))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def slight_turns(rng, n, most=-2):
    """Rotations by 1e-8 to 10^most radians."""
    angle = 10 ** rng.uniform(-8, most, n)
    return matrices(np.cos(angle / 2), *(directions(rng, n).T * np.sin(angle / 2)))


def on_edge(rng, n):
    """Rotations that lay one of a box's edges on the plane z = 0, but for rounding's tilt."""
    turn, spin = rng.uniform(0.2, np.pi / 2 - 0.2, n), rng.uniform(0, 2 * np.pi, n)
    c, s = np.cos(turn), np.sin(turn)
    zero, one = np.zeros(n), np.ones(n)
    edge = np.stack([zero, zero, one, s, -c, zero, c, s, zero], 1).reshape(n, 3, 3)
    spun = matrices(np.cos(spin / 2), zero, zero, np.sin(spin / 2)).reshape(n, 3, 3)
    slight, turned = slight_turns(rng, n, -6), quarter_turns(rng, n)
    all_of = [m.reshape(n, 3, 3) for m in (slight, spun, edge, turned)]
    return np.einsum("nij,njk,nkl,nlm->nim", *all_of)


def place(how, rng, m, kernel, first, second, n):
    """Solids a, b [n, 15] and margins [n]."""
    size_a, size_b = sizes(rng, n), sizes(rng, n)
    free = how in ("anywhere", "touching", "edge")
    mat_a = rotations(rng, n) if free else quarter_turns(rng, n)
    mat_b = rotations(rng, n) if free else quarter_turns(rng, n)
    if how == "nearly":
        # As aligned, but for the rounding of a body that came to rest.
        slight = slight_turns(rng, n).reshape(n, 3, 3)
        mat_b = np.einsum("nij,njk->nik", slight, mat_b.reshape(n, 3, 3)).reshape(n, 9)
    if how == "edge":
        mat_b = np.einsum("nij,njk->nik", mat_a.reshape(n, 3, 3), on_edge(rng, n)).reshape(n, 9)
    pos_a = rng.uniform(-0.5, 0.5, (n, 3))
    margin = rng.choice([0, 0.01, 0.03], n)
    reach = bounds(m, first, size_a) + bounds(m, second, size_b)
    # Planes and fields: near their surface; the plane's normal is its z axis.
    along = directions(rng, n)
    at = np.zeros((n, 3))
    flat = first in ("plane", "field")
    if flat:
        spread = np.array([0.5, 0.3, 0]) if first == "field" else np.array([0.5, 0.5, 0])
        at = np.einsum("nij,nj->ni", mat_a.reshape(n, 3, 3), rng.uniform(-1, 1, (n, 3)) * spread)
        along = mat_a[:, [2, 5, 8]]
    if how == "edge":
        along = mat_a[:, [2, 5, 8]]
    scale = rng.uniform(-0.5 if flat else 0, 1, n)
    if how in ("aligned", "degenerate"):
        if not flat:
            # Along an axis or in a diagonal, on round numbers, so that ties happen.
            along = np.round(rng.uniform(-1.5, 1.5, (n, 3)))
            at = np.zeros((n, 3))
        size_a = np.round(size_a, 2)
        size_b = np.where(rng.uniform(size=(n, 1)) < 0.3, size_a, np.round(size_b, 2))
        scale = np.round(scale * reach, 2) / reach
        pos_a = np.round(pos_a, 1)
        if how == "degenerate":
            scale *= rng.choice([0, 1e-17, 1e-9, 1], n)
            mat_b = np.where(rng.uniform(size=(n, 1)) < 0.5, mat_a, mat_b)
            size_a *= rng.choice([0, 1e-12, 1, 1, 1, 1], (n, 3))

    def b_at(s):
        return solids(pos_a + at + along * (s * reach)[:, None], mat_b, size_b)

    a = solids(pos_a, mat_a, size_a)
    if how in ("touching", "nearly", "edge"):
        # Bisect to where contact begins, then up to 2 % in or out.
        kind = pair_kind(first, second)
        low, high = np.full(n, -1.5 if flat else 0.0), np.full(n, 3.0)
        for _ in range(30):
            mid = (low + high) / 2
            inside = kernel.run(m, kind, a, b_at(mid), np.zeros(n))[0] > 0
            low, high = np.where(inside, mid, low), np.where(inside, high, mid)
        scale = low + rng.uniform(-0.1, 0.02, n)
    return a, b_at(scale), margin
