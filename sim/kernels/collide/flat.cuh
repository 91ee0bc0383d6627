// Contacts whose normal is a flat face's. Where the other shape's deepest point lies well
// within the face, that is seen without a search.
#pragma once

// Whether the least depth of two shapes is the one through a face, `gap` below its plane
// (negative: deep). About the deepest point the face goes on for `room` all around, and under it
// its shape for `thick`. So the difference of the two holds a disc and a point behind the origin,
// and the cone of these; where the cone holds a ball as large as the depth, no other way out is
// shorter. Depths are counted from `margin` above the face.
template <class T>
OSTLER_FN bool face_decides(T gap, T room, T thick, T margin) {
  const T depth = margin - gap, behind = thick + gap, height = thick + margin;
  return room > T(0) && behind > T(0) &&
         room * behind > T(1.000001) * depth * root(room * room + height * height);
}

// A face of a box or a cap of a cylinder, and the other shape's point deepest below it.
template <class T>
struct FlatFace {
  bool first;  // of the first shape
  int axis;    // the face's normal is this axis of the shape, or against it
  P3<T> normal, deepest;
  T gap;
  int vertex;  // the deepest point, where that is a corner
};

// Looks for a flat face of `a` with less depth than `best` has, among those on the side where `b`
// is. True where the plane of one keeps the shapes apart.
template <class T, class S>
OSTLER_FN_BIG bool flat_face(FlatFace<T>& best, Convex<T, S>& a, Convex<T, S>& b, bool first) {
  const bool box = a.type == Shape::box;
  if (!box && a.type != Shape::cylinder) return false;
  const P3<T> way = centre_of(b) - a.pos;
  const T margin = T(0.5) * (a.margin + b.margin);
  for (int i = box ? 0 : 2; i < 3; i++) {
    P3<T> n = axis_of(a.mat, i);
    if (dot(n, way) < T(0)) n = -n;
    const P3<T> deepest = support_point(b, -n);
    const T gap = dot(n, deepest - a.pos) - a.size[box ? i : 1];
    if (gap >= margin) return true;
    if (gap <= best.gap) continue;
    best.first = first;
    best.axis = i;
    best.normal = n;
    best.deepest = deepest;
    best.gap = gap;
    best.vertex = b.vertex;
  }
  return false;
}

// As penetration, where a face of a box or a cap decides; -1 where none does.
template <class T, class S, class H>
OSTLER_FN_BIG int flat_hits(Convex<T, S>& a, Convex<T, S>& b, int most, T offset, Hit<H>* out) {
  FlatFace<T> face;
  face.gap = -Noise<T>::huge;  // no face
  if (flat_face(face, a, b, true) || flat_face(face, b, a, false)) return 0;
  if (face.gap == -Noise<T>::huge) return -1;
  const Convex<T, S>&own = face.first ? a : b, &other = face.first ? b : a;
  const bool box = own.type == Shape::box;
  const P3<T> at = turn_back(own.mat, face.deepest - own.pos);
  T room = own.size[0] - root(at[0] * at[0] + at[1] * at[1]);
  if (box) {
    room = Noise<T>::huge;
    for (int i = 0; i < 3; i++)
      if (i != face.axis) room = lesser(room, own.size[i] - mag(at[i]));
  }
  const T margin = T(0.5) * (a.margin + b.margin);
  if (!face_decides(face.gap, room, T(2) * own.size[box ? face.axis : 1], margin)) return -1;
  const P3<T> normal = face.first ? face.normal : -face.normal;
  if (most > 1) {
    // Where no face of the other shape looks at the cap, the contacts depend on the place of the
    // rim that the search went by.
    if (!box && other.type == Shape::mesh) return -1;
    if (!box && (other.type == Shape::box || other.type == Shape::cylinder)) {
      bool looks = false;
      for (int i = other.type == Shape::box ? 0 : 2; i < 3; i++)
        looks = looks || mag(dot(axis_of(other.mat, i), normal)) > Alignment<T>::faces;
      if (!looks) return -1;
    }
    Support<T> s[3];
    for (int k = 0; k < 3; k++) {
      int corner = -1;
      if (box) {
        const int u = (face.axis + 1) % 3, v = (face.axis + 2) % 3;
        corner = (dot(axis_of(own.mat, face.axis), face.normal) > T(0) ? 1 << face.axis : 0) |
                 (k == 1 ? 1 << u : 0) | (k == 2 ? 1 << v : 0);
      }
      s[k].on1 = s[k].on2 = face.deepest;
      s[k].vertex1 = face.first ? corner : face.vertex;
      s[k].vertex2 = face.first ? face.vertex : corner;
    }
    const int hits = patch_hits(s[0], s[1], s[2], a, b, normal, offset, out);
    if (hits >= 0) return hits;
  }
  write_hit(out[0], offset - margin + face.gap, face.deepest - T(0.5) * face.gap * face.normal, normal);
  return 1;
}
