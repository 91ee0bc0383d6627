// Spheres and capsules with each other, and a sphere with a cylinder or a box.
// After MuJoCo, Computation, "Collision": each reduces to the nearest pair of
// points of two sphere centres, segments or surfaces.
#pragma once

// Two spheres; axis1, axis2 give a normal where the centres coincide.
template <class T>
OSTLER_FN int hit_spheres(const P3<T>& c1, T r1, const P3<T>& axis1, const P3<T>& c2, T r2,
                          const P3<T>& axis2, T margin, Hit<T>* out) {
  P3<T> normal = c2 - c1;
  const T reach = margin + r1 + r2;
  if (dot(normal, normal) > reach * reach) return 0;
  const T apart = make_unit(normal);
  if (apart < Noise<T>::coincident) {
    normal = cross(axis1, axis2);
    make_unit(normal, Noise<T>::coincident);
  }
  const T dist = apart - r1 - r2;
  write_hit(out[0], dist, c1 + (r1 + dist / T(2)) * normal, normal);
  return 1;
}

template <class T>
OSTLER_FN int sphere_sphere(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  return hit_spheres(p3(a.pos), a.size[0], axis_of(a.mat, 2), p3(b.pos), b.size[0],
                     axis_of(b.mat, 2), margin, out);
}

template <class T>
OSTLER_FN int sphere_capsule(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> centre = p3(a.pos), axis = axis_of(b.mat, 2);
  const T along = clamped(dot(axis, centre - p3(b.pos)), -b.size[1], b.size[1]);
  return hit_spheres(centre, a.size[0], axis_of(a.mat, 2), p3(b.pos) + along * axis, b.size[0],
                     axis, margin, out);
}

// Two capsules. One contact at the nearest points of the segments; where the
// segments are parallel, up to two, at the ends of the overlap.
template <class T>
OSTLER_FN_BIG int capsule_capsule(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> z1 = axis_of(a.mat, 2), z2 = axis_of(b.mat, 2), c1 = p3(a.pos), c2 = p3(b.pos);
  const P3<T> half1 = a.size[1] * z1, half2 = b.size[1] * z2, gap = c1 - c2;
  // |gap + x1 half1 - x2 half2|^2 is least where [q1 cr; cr q2] [x1 x2]' = [g1 g2]'.
  const T q1 = dot(half1, half1), cr = -dot(half1, half2), q2 = dot(half2, half2);
  const T g1 = -dot(half1, gap), g2 = dot(half2, gap);
  const T det = q1 * q2 - cr * cr;
  const T one = T(1);

  const T noise = Noise<T>::parallel * q1 * q2;
  if (mag(det) >= (noise > Noise<T>::tiny ? noise : Noise<T>::tiny)) {
    T x1 = (q2 * g1 - cr * g2) / det, x2 = (q1 * g2 - cr * g1) / det;
    if (x1 > one) {
      x1 = one;
      x2 = (g2 - cr) / q2;
    } else if (x1 < -one) {
      x1 = -one;
      x2 = (g2 + cr) / q2;
    }
    if (x2 > one) {
      x2 = one;
      x1 = clamped((g1 - cr) / q1, -one, one);
    } else if (x2 < -one) {
      x2 = -one;
      x1 = clamped((g1 + cr) / q1, -one, one);
    }
    return hit_spheres(c1 + x1 * half1, a.size[0], z1, c2 + x2 * half2, b.size[0], z2, margin, out);
  }

  int hits = 0;
  for (int k = 0; k < 4 && hits < 2; k++) {
    const T end = (k & 1) ? -one : one;
    T x1 = end, x2 = end;
    if (k < 2) {
      x2 = clamped((g2 - end * cr) / q2, -one, one);
    } else {
      x1 = clamped((g1 - end * cr) / q1, -one, one);
    }
    hits += hit_spheres(c1 + x1 * half1, a.size[0], z1, c2 + x2 * half2, b.size[0], z2, margin,
                        out + hits);
  }
  return hits;
}

// A sphere touches a cylinder's side, one of its caps or the rim between them;
// a centre inside goes out by the shorter way.
template <class T>
OSTLER_FN_BIG int sphere_cylinder(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> centre = p3(a.pos), axis = axis_of(b.mat, 2), c2 = p3(b.pos);
  const T radius = b.size[0], half = b.size[1];
  const P3<T> rel = centre - c2;
  const T along = dot(axis, rel);
  const P3<T> across = rel - along * axis;
  const T across2 = dot(across, across);

  bool side = mag(along) < half, cap = across2 < radius * radius;
  if (side && cap) {
    const bool cap_is_nearer = half - mag(along) < radius - root(across2);
    side = !cap_is_nearer;
    cap = cap_is_nearer;
  }
  if (side)
    return hit_spheres(centre, a.size[0], axis_of(a.mat, 2), c2 + along * axis, radius, axis,
                       margin, out);
  const T to_cap = along > T(0) ? half : -half;
  if (cap) {
    const P3<T> outward = along > T(0) ? axis : -axis;
    const T height = dot(centre - (c2 + to_cap * axis), outward);
    if (height > margin + a.size[0]) return 0;
    const T dist = height - a.size[0];
    write_hit(out[0], dist, centre - (dist / T(2) + a.size[0]) * outward, -outward);
    return 1;
  }
  const P3<T> rim = c2 + to_cap * axis + (radius / root(across2)) * across;
  return hit_spheres(centre, a.size[0], axis_of(a.mat, 2), rim, T(0), axis, margin, out);
}

// A sphere (centre, radius) and a box.
template <class T>
OSTLER_FN_BIG int hit_sphere_box(const P3<T>& centre, T radius, const Solid<T>& box, T margin,
                                 Hit<T>* out) {
  const P3<T> at = turn_back(box.mat, centre - p3(box.pos));
  P3<T> nearest = at;
  for (int i = 0; i < 3; i++)
    if (box.size[i] > T(0)) nearest[i] = clamped(at[i], -box.size[i], box.size[i]);
  P3<T> inward = nearest - at;
  const T apart = make_unit(inward);
  if (apart - radius > margin) return 0;

  if (apart > Noise<T>::touching) {
    const P3<T> deepest = at + radius * inward;
    const P3<T> mid = T(0.5) * nearest + T(0.5) * deepest;
    write_hit(out[0], apart - radius, turn(box.mat, mid) + p3(box.pos), turn(box.mat, inward));
    return 1;
  }
  // The centre is inside: leave by the nearest face.
  T way = (box.size[0] + box.size[1] + box.size[2]) * T(2);
  int face = 0;
  for (int i = 0; i < 6; i++) {
    const T to_face = mag((i % 2 ? T(1) : T(-1)) * box.size[i / 2] - at[i / 2]);
    if (way > to_face) {
      way = to_face;
      face = i;
    }
  }
  P3<T> normal = p3(T(0), T(0), T(0));
  normal[face / 2] = face % 2 ? T(-1) : T(1);
  const P3<T> mid = at + ((radius - way) / T(2)) * normal;
  write_hit(out[0], -way - radius, turn(box.mat, mid) + p3(box.pos), turn(box.mat, normal));
  return 1;
}

template <class T>
OSTLER_FN int sphere_box(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  return hit_sphere_box(p3(a.pos), a.size[0], b, margin, out);
}
