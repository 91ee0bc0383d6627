// Contacts whose normal is a flat face's. Where the other shape's deepest point lies well
// within the face, that is seen without a search.
#pragma once

enum { FLAT_POLYGONS = 16 };  // of meshes with more faces few contacts are with one alone

// Whether the least depth of two shapes is that of a point `gap` above the plane of a face
// (negative: below it). The face goes on for `room` all around the point, and under it the shape
// for `thick`: so the difference of the two shapes holds a disc, a point behind the origin, and
// the cone of these. Where the cone holds a ball as large as the depth, no other way out is
// shorter. Depths are counted from `margin` above the face.
template <class T>
OSTLER_FN bool face_decides(T gap, T room, T thick, T margin) {
  const T depth = margin - gap, behind = thick + gap, height = thick + margin;
  return room > T(0) && behind > T(0) &&
         room * behind > T(1.000001) * depth * root(room * room + height * height);
}

// A face of a box or mesh or a cap of a cylinder, and the other shape's deepest point below it.
template <class T>
struct FlatFace {
  bool first;  // of the first shape
  int which;   // a box's or cylinder's axis, which the normal is along or against; a mesh's face
  P3<T> normal, deepest;
  T gap;
  int vertex;  // the deepest point, where that is a corner
};

// The face of a mesh whose plane is farthest below a point of the mesh's frame.
template <class T, class S>
OSTLER_FN_BIG int face_towards(const ConvexMesh<S>& mesh, const P3<T>& at) {
  int face = 0;
  T most = -Noise<T>::huge;
  for (int f = 0; f < mesh.polygons; f++) {
    const P3<T> on = as_p3<T>(mesh.vertex + 3 * mesh.polygon_vertex[mesh.polygon_start[f]]);
    const T over = dot(as_p3<T>(mesh.polygon_normal + 3 * f), at - on);
    if (!(over > most)) continue;
    most = over;
    face = f;
  }
  return face;
}

// Looks for a flat face of `a` with less depth than `best` has, among those on the side where `b`
// is. True where the plane of one keeps the shapes apart.
template <class T, class S>
OSTLER_FN_BIG bool flat_face(FlatFace<T>& best, Convex<T, S>& a, Convex<T, S>& b, bool first) {
  const bool box = a.type == Shape::box, mesh = a.type == Shape::mesh;
  if (!box && !mesh && a.type != Shape::cylinder) return false;
  if (mesh && !(a.mesh->polygons > 0 && a.mesh->polygons <= FLAT_POLYGONS)) return false;
  const P3<T> way = centre_of(b) - a.pos;
  const T margin = T(0.5) * (a.margin + b.margin);
  for (int i = box ? 0 : 2; i < 3; i++) {
    int which = i;
    P3<T> n;
    T level = a.size[box ? i : 1];
    if (mesh) {
      which = face_towards(*a.mesh, turn_back(a.mat, way));
      const int* corner = a.mesh->polygon_vertex + a.mesh->polygon_start[which];
      const P3<T> on = as_p3<T>(a.mesh->vertex + 3 * corner[0]);
      n = cross(as_p3<T>(a.mesh->vertex + 3 * corner[1]) - on, as_p3<T>(a.mesh->vertex + 3 * corner[2]) - on);
      make_unit(n);
      level = dot(n, on);
      n = turn(a.mat, n);
    } else {
      n = axis_of(a.mat, i);
      if (dot(n, way) < T(0)) n = -n;
    }
    const P3<T> deepest = support_point(b, -n);
    const T gap = dot(n, deepest - a.pos) - level;
    if (gap >= margin) return true;
    if (gap <= best.gap) continue;
    best.first = first;
    best.which = which;
    best.normal = n;
    best.deepest = deepest;
    best.gap = gap;
    best.vertex = b.vertex;
  }
  return false;
}

// How far the face goes on all around the foot of the deepest point (negative: that is beside it),
// and the shape behind that.
template <class T, class S>
OSTLER_FN_BIG void extent(const FlatFace<T>& face, const Convex<T, S>& c, T& room, T& thick) {
  const P3<T> at = turn_back(c.mat, face.deepest - c.pos);
  if (c.type == Shape::cylinder) {
    room = c.size[0] - root(at[0] * at[0] + at[1] * at[1]);
    thick = T(2) * c.size[1];
    return;
  }
  room = Noise<T>::huge;
  if (c.type == Shape::box) {
    for (int i = 0; i < 3; i++)
      if (i != face.which) room = lesser(room, c.size[i] - mag(at[i]));
    thick = T(2) * c.size[face.which];
    return;
  }
  const ConvexMesh<S>& mesh = *c.mesh;
  const P3<T> normal = turn_back(c.mat, face.normal), on = at - face.gap * normal;
  const int* corner = mesh.polygon_vertex + mesh.polygon_start[face.which];
  const int size = mesh.polygon_size[face.which];
  for (int i = 0; i < size; i++) {
    const P3<T> from = as_p3<T>(mesh.vertex + 3 * corner[i]);
    P3<T> in = cross(normal, as_p3<T>(mesh.vertex + 3 * corner[i + 1 < size ? i + 1 : 0]) - from);
    make_unit(in);
    room = lesser(room, dot(in, on - from));
  }
  thick = Noise<T>::huge;
  for (int f = 0; f < mesh.polygons; f++) {
    const P3<T> other = as_p3<T>(mesh.polygon_normal + 3 * f);
    const T slope = -dot(other, normal);
    if (!(slope > T(0))) continue;
    const P3<T> from = as_p3<T>(mesh.vertex + 3 * mesh.polygon_vertex[mesh.polygon_start[f]]);
    thick = lesser(thick, dot(other, from - on) / slope);
  }
}

// A corner of the face, the k-th of three; -1 of a cap.
template <class T, class S>
OSTLER_FN int corner_of(const FlatFace<T>& face, const Convex<T, S>& c, int k) {
  if (c.type == Shape::mesh) return c.mesh->polygon_vertex[c.mesh->polygon_start[face.which] + k];
  if (c.type != Shape::box) return -1;
  const bool up = dot(axis_of(c.mat, face.which), face.normal) > T(0);
  return (up ? 1 << face.which : 0) | (k > 0 ? 1 << (face.which + k) % 3 : 0);
}

// Whether contacts with a cap are told by the cap alone. Where no face of the other shape looks
// at it, they depend on the place of the rim that the search went by.
template <class T, class S>
OSTLER_FN bool cap_tells(const Convex<T, S>& other, const P3<T>& normal) {
  if (other.type != Shape::box && other.type != Shape::cylinder) return other.type != Shape::mesh;
  for (int i = other.type == Shape::box ? 0 : 2; i < 3; i++)
    if (mag(dot(axis_of(other.mat, i), normal)) > Alignment<T>::faces) return true;
  return false;
}

// As penetration, where a flat face decides; -1 where none does.
template <class T, class S, class H>
OSTLER_FN_BIG int flat_hits(Convex<T, S>& a, Convex<T, S>& b, int most, T offset, Hit<H>* out) {
  FlatFace<T> face;
  face.gap = -Noise<T>::huge;  // no face
  if (flat_face(face, a, b, true) || flat_face(face, b, a, false)) return 0;
  if (face.gap == -Noise<T>::huge) return -1;
  const Convex<T, S>&own = face.first ? a : b, &other = face.first ? b : a;
  const T margin = T(0.5) * (a.margin + b.margin);
  T room, thick;
  extent(face, own, room, thick);
  if (!face_decides(face.gap, room, thick, margin)) return -1;
  const P3<T> normal = face.first ? face.normal : -face.normal;
  if (most > 1) {
    if (own.type == Shape::cylinder && !cap_tells(other, normal)) return -1;
    Support<T> s[3];
    for (int k = 0; k < 3; k++) {
      const int corner = corner_of(face, own, k);
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
