// General convex shapes: the search's depth and direction as contacts, and the
// further contacts that MuJoCo finds for them ("multiccd").
#pragma once

template <class T>
OSTLER_FN T bound_of(int type, const Solid<T>& s) {
  switch (type) {
    case SHAPE_SPHERE:
      return s.size[0];
    case SHAPE_CAPSULE:
      return s.size[0] + s.size[1];
    case SHAPE_ELLIPSOID: {
      const T xy = s.size[0] > s.size[1] ? s.size[0] : s.size[1];
      return xy > s.size[2] ? xy : s.size[2];
    }
    case SHAPE_CYLINDER:
      return root(s.size[0] * s.size[0] + s.size[1] * s.size[1]);
    case SHAPE_BOX:
      return norm(p3(s.size));
    default:
      return s.mesh ? s.mesh->bound : T(0);
  }
}

// A sphere or capsule keeps its distance to the core: nothing iterative is left where
// only the round part overlaps.
template <class T>
OSTLER_FN T shrink(Convex<T>& c) {
  if (c.type != SHAPE_SPHERE && c.type != SHAPE_CAPSULE) return T(0);
  c.core = true;
  return c.size[0] + T(0.5) * c.margin;
}

// Contacts of two convex shapes, at most `most` (1 or PATCH_HITS); `offset` is added
// to each distance.
template <class T>
OSTLER_FN_BIG int penetration(Convex<T>& a, Convex<T>& b, int most, T offset, Hit<T>* out) {
  Nearest<T> g;
  const P3<T> centre_a = centre_of(a), centre_b = centre_of(b);
  g.on1 = centre_a;
  g.on2 = centre_b;
  const T around_a = shrink(a), around_b = shrink(b);
  if (a.core || b.core) {
    gjk(g, a, b, around_a + around_b);
    a.core = b.core = false;
    if (g.dist > Search<T>::tolerance) {
      if (!g.on) return 0;
      P3<T> normal = g.on2 - g.on1;
      make_unit(normal);
      const T dist = g.dist - (around_a + around_b);
      if (!(dist < T(0))) return 0;
      const P3<T> from = g.on1 + around_a * normal, to = g.on2 - around_b * normal;
      // The cores are apart, the surfaces overlap: the normal does not turn around.
      write_hit(out[0], offset + dist, T(0.5) * (from + to), normal);
      return 1;
    }
    g.on1 = centre_a;
    g.on2 = centre_b;
  }
  gjk(g, a, b, T(0));
  if (!(g.dist <= Search<T>::tolerance) || g.size < 2 || g.apart) return 0;

  Polytope<T> p;
  bool started = false;
  if (g.size == 2) {
    started = start_segment(p, g, a, b);
  } else if (g.size == 3) {
    started = start_triangle(p, g.simplex[0], g.simplex[1], g.simplex[2], a, b);
  } else {
    started = start_tetrahedron(p, g, a, b);
  }
  if (!started) return 0;
  const int face = expand(p, a, b);
  if (face < 0) return 0;
  const Face<T>& f = p.face[face];
  const Support<T>&s0 = p.point[f.point[0]], &s1 = p.point[f.point[1]], &s2 = p.point[f.point[2]];
  T w[3];
  triangle_weights(s0.at, s1.at, s2.at, f.foot, w);
  const P3<T> on1 = w[0] * s0.on1 + w[1] * s1.on1 + w[2] * s2.on1;
  const P3<T> on2 = w[0] * s0.on2 + w[1] * s1.on2 + w[2] * s2.on2;
  const T dist = -root(f.dist2);
  P3<T> normal = on1 - on2;
  make_unit(normal);
  if (most > 1) {
    Patch<T> patch;
    make_patch(patch, p, face, a, b, normal, offset);
    if (patch.count > 0) {
      T deepest = patch.dist[0];
      for (int k = 1; k < patch.count; k++) deepest = lesser(deepest, patch.dist[k]);
      if (!(deepest < offset)) return 0;
      for (int k = 0; k < patch.count; k++)
        write_hit(out[k], patch.dist[k], patch.mid[k], patch.normal);
      return patch.count;
    }
  }
  if (!(dist < T(0))) return 0;
  write_hit(out[0], offset + dist, T(0.5) * (on1 + on2), normal);
  return 1;
}

// Turns a shape about a point.
template <class T>
OSTLER_FN void swing(Convex<T>& c, const P3<T>& about, const T* spin) {
  T mat[9];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      mat[3 * i + j] = spin[3 * i] * c.mat[j] + spin[3 * i + 1] * c.mat[3 + j] +
                       spin[3 * i + 2] * c.mat[6 + j];
  for (int i = 0; i < 9; i++) c.mat[i] = mat[i];
  const P3<T> arm = about - c.pos;
  c.pos = c.pos - (turn(spin, arm) - arm);
}

template <class T>
OSTLER_FN void spin_about(T* spin, const P3<T>& axis, T sine) {
  const T cosine = T(0.99999950000004166667), rest = T(1) - cosine;  // of 1e-3 rad
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) spin[3 * i + j] = rest * axis[i] * axis[j] + (i == j ? cosine : T(0));
  spin[1] -= sine * axis[2];
  spin[3] += sine * axis[2];
  spin[2] += sine * axis[1];
  spin[6] -= sine * axis[1];
  spin[5] -= sine * axis[0];
  spin[7] += sine * axis[0];
}

// The first contact's frame: MuJoCo's mju_makeFrame without a hint.
template <class T>
OSTLER_FN void complete_frame(const P3<T>& x, P3<T>& y, P3<T>& z) {
  y = p3(T(0), T(0), T(0));
  y[x[1] < T(0.5) && x[1] > T(-0.5) ? 1 : 2] = T(1);
  y = y - dot(x, y) * x;
  make_unit(y);
  z = cross(x, y);
}

// Up to four more contacts for shapes with flat parts: both are turned against each
// other by 1e-3 rad about each tangent, either way; each contact that moves counts,
// with the first one's depth.
template <class T>
OSTLER_FN_BIG int more_contacts(Convex<T>& a, Convex<T>& b, const Solid<T>& sa, const Solid<T>& sb,
                                T least, T margin, Hit<T>* out) {
  const P3<T> at = p3(out[0].pos), x = p3(out[0].normal);
  P3<T> tangent[2];
  complete_frame(x, tangent[0], tangent[1]);
  int hits = 1;
  for (int k = 0; k < 4; k++) {
    const T sine = T(0.00099999983333334167) * (k % 2 ? T(1) : T(-1));
    T spin[9];
    spin_about(spin, tangent[k / 2], sine);
    swing(a, at, spin);
    spin_about(spin, tangent[k / 2], -sine);
    swing(b, at, spin);
    if (penetration(a, b, 1, margin, out + hits)) {
      bool fresh = true;
      for (int i = 0; i < hits; i++)
        fresh = fresh && norm(p3(out[i].pos) - p3(out[hits].pos)) > least;
      if (fresh) out[hits++].dist = out[0].dist;
    }
    a.pos = p3(sa.pos);
    b.pos = p3(sb.pos);
    for (int i = 0; i < 9; i++) {
      a.mat[i] = sa.mat[i];
      b.mat[i] = sb.mat[i];
    }
  }
  return hits;
}

template <class T>
OSTLER_FN_BIG int convex_pair(int first, int second, const Solid<T>& sa, const Solid<T>& sb,
                              T margin, Hit<T>* out) {
  if (first == SHAPE_MESH && (!sa.mesh || sa.mesh->vertices < 1)) return 0;
  if (second == SHAPE_MESH && (!sb.mesh || sb.mesh->vertices < 1)) return 0;
  Convex<T> a, b;
  init_convex(a, first, sa, margin);
  init_convex(b, second, sb, margin);
  const bool patch = first >= SHAPE_BOX && second >= SHAPE_BOX;
  const int hits = penetration(a, b, patch ? PATCH_HITS : 1, margin, out);
  if (patch || hits != 1) return hits;
  const bool round = first == SHAPE_SPHERE || first == SHAPE_ELLIPSOID || second == SHAPE_SPHERE ||
                     second == SHAPE_ELLIPSOID;
  if (round) return hits;
  const T least = T(1e-3) * lesser(bound_of(first, sa), bound_of(second, sb));
  return more_contacts(a, b, sa, sb, least, margin, out);
}
