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

// Two capsules: one contact at the nearest points of the segments; two, at the ends of
// the overlap, where the axes are parallel to within 1e-4 rad (MuJoCo 4.0).
template <class T>
OSTLER_FN_BIG int capsule_capsule(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> z1 = axis_of(a.mat, 2), z2 = axis_of(b.mat, 2), c1 = p3(a.pos), c2 = p3(b.pos);
  const T l1 = a.size[1], l2 = b.size[1];
  const P3<T> gap = c2 - c1, across = cross(z1, z2);
  const T cosine = dot(z1, z2), sine2 = dot(across, across);
  const T gap1 = dot(z1, gap), gap2 = dot(z2, gap);

  int hits = 0;
  const bool parallel = sine2 < T(1e-8);
  const bool segments = l1 * l1 > T(1e-15) && l2 * l2 > T(1e-15);  // not points
  for (int k = 0; k < (parallel && segments ? 2 : 1); k++) {
    // Positions along the axes. From cross products, so that nearly parallel axes do
    // not cancel; where they are parallel, from one end of the first segment.
    T s1 = k == 0 ? -l1 : l1;
    if (!parallel) s1 = clamped(dot(cross(gap, z2), across) / sine2, -l1, l1);
    const T s2 = clamped(cosine * s1 - gap2, -l2, l2);
    s1 = clamped(gap1 + cosine * s2, -l1, l1);
    hits += hit_spheres(c1 + s1 * z1, a.size[0], z1, c2 + s2 * z2, b.size[0], z2, margin, out + hits);
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
