// The plane z = 0 of a geom's frame against everything.
#pragma once

// Signed height of a point over the plane, made a hit if it is within the margin.
template <class T>
OSTLER_FN int hit_plane_point(const P3<T>& normal, T height, const P3<T>& point, T margin,
                              Hit<T>* out) {
  if (!(height <= margin)) return 0;
  write_hit(out[0], height, point - (height * T(0.5)) * normal, normal);
  return 1;
}

template <class T>
OSTLER_FN int hit_plane_sphere(const Solid<T>& plane, const P3<T>& centre, T radius, T margin,
                               Hit<T>* out) {
  const P3<T> normal = axis_of(plane.mat, 2);
  const T height = dot(centre - p3(plane.pos), normal);
  if (height > margin + radius) return 0;
  const T dist = height - radius;
  write_hit(out[0], dist, centre - (dist / T(2) + radius) * normal, normal);
  return 1;
}

template <class T>
OSTLER_FN int plane_sphere(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  return hit_plane_sphere(a, p3(b.pos), b.size[0], margin, out);
}

// A sphere at each end; the frames lean on the capsule's axis.
template <class T>
OSTLER_FN int plane_capsule(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> axis = axis_of(b.mat, 2), half = b.size[1] * axis;
  int hits = hit_plane_sphere(a, p3(b.pos) + half, b.size[0], margin, out);
  hits += hit_plane_sphere(a, p3(b.pos) - half, b.size[0], margin, out + hits);
  for (int i = 0; i < hits; i++) put(out[i].tangent, axis);
  return hits;
}

// The lowest point of each disk, and two more on the rim of the lower disk, which
// make a triangle with its lowest point.
template <class T>
OSTLER_FN_BIG int plane_cylinder(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> normal = axis_of(a.mat, 2), centre = p3(b.pos);
  P3<T> axis = axis_of(b.mat, 2);
  T slope = dot(normal, axis);
  if (slope > T(0)) {
    axis = -axis;
    slope = -slope;
  }
  // Down the disk: -normal without its part along the axis. In single precision from cross
  // products: of a cylinder that nearly stands what rounding leaves would be along the axis.
  P3<T> down = sizeof(T) == 4 ? cross(axis, cross(axis, normal)) : slope * axis - normal;
  const T length2 = dot(down, down);
  const T flat = Noise<T>::upright * Noise<T>::upright;
  down = length2 >= flat ? (b.size[0] / root(length2)) * down : b.size[0] * axis_of(b.mat, 0);

  const T height = dot(centre - p3(a.pos), normal), drop = dot(down, normal);
  axis = b.size[1] * axis;
  slope *= b.size[1];

  int hits = hit_plane_point(normal, height + slope + drop, centre + down + axis, margin, out);
  if (hits == 0) return 0;
  hits += hit_plane_point(normal, height - slope + drop, centre + down - axis, margin, out + hits);
  const T rim = height + slope - drop * T(0.5);
  if (rim <= margin) {
    P3<T> aside = cross(down, axis);
    make_unit(aside);
    aside = (b.size[0] * T(0.86602540378443864676)) * aside;
    const P3<T> foot = axis - T(0.5) * down;
    hits += hit_plane_point(normal, rim, centre + aside + foot, margin, out + hits);
    hits += hit_plane_point(normal, rim, centre - aside + foot, margin, out + hits);
  }
  return hits;
}

// The first four corners, in MuJoCo's order, of the lower half of the box.
template <class T>
OSTLER_FN int plane_box(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> normal = axis_of(a.mat, 2), centre = p3(b.pos);
  const T height = dot(centre - p3(a.pos), normal);
  int hits = 0;
  for (int i = 0; i < 8 && hits < 4; i++) {
    const P3<T> corner =
        turn(b.mat, p3(i & 1 ? b.size[0] : -b.size[0], i & 2 ? b.size[1] : -b.size[1],
                       i & 4 ? b.size[2] : -b.size[2]));
    const T drop = dot(normal, corner);
    if (drop > T(0)) continue;
    hits += hit_plane_point(normal, height + drop, corner + centre, margin, out + hits);
  }
  return hits;
}

template <class T>
OSTLER_FN int plane_ellipsoid(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> normal = axis_of(a.mat, 2);
  const P3<T> way = turn_back(b.mat, -normal);
  P3<T> lowest = p3(way[0] * b.size[0], way[1] * b.size[1], way[2] * b.size[2]);
  make_unit(lowest);
  for (int i = 0; i < 3; i++) lowest[i] *= b.size[i];
  const P3<T> point = turn(b.mat, lowest) + p3(b.pos);
  return hit_plane_point(normal, dot(normal, point - p3(a.pos)), point, margin, out);
}

// The lowest point of any other shape.
template <class T>
OSTLER_FN_BIG int plane_convex(int second, const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> normal = axis_of(a.mat, 2);
  Convex<T, T> shape;
  init_convex(shape, second, b, T(0));
  const P3<T> point = support_point(shape, -normal);
  return hit_plane_point(normal, dot(normal, point - p3(a.pos)), point, margin, out);
}

// A mesh's face, its corners counted from one of them.
template <class T>
struct FaceRing {
  const T* vertex;
  const int* corner;
  int size, first;
  OSTLER_FN P3<T> operator[](int k) const {
    const int at = first + k;
    return p3(vertex + 3 * corner[at < size ? at : at - size]);
  }
};

// The mesh's lowest vertex, and of the face around it that looks most at the plane
// the other corners within the margin that are not above the mesh's middle, up to four
// in all. This is what MuJoCo 4.0 gives; earlier releases took neighbours on the hull.
template <class T>
OSTLER_FN_BIG int plane_mesh(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  if (!b.mesh || b.mesh->vertices < 1) return 0;
  const ConvexMesh<T>& mesh = *b.mesh;
  const P3<T> normal = axis_of(a.mat, 2), centre = p3(b.pos);
  const P3<T> way = turn_back(b.mat, -normal);
  Convex<T, T> shape;
  init_convex(shape, Shape::mesh, b, T(0));
  const P3<T> lowest = turn(b.mat, mesh_point(shape, way)) + centre;
  const int from = shape.vertex;
  if (mesh.polygons <= 0)
    return hit_plane_point(normal, dot(normal, lowest - p3(a.pos)), lowest, margin, out);

  int face = -1;
  T facing = -Noise<T>::huge;
  for (int k = 0; k < mesh.vertex_degree[from]; k++) {
    const int other = mesh.vertex_polygon[mesh.vertex_start[from] + k];
    const T along = dot(way, p3(mesh.polygon_normal + 3 * other));
    if (along > facing) {
      facing = along;
      face = other;
    }
  }
  int hits = hit_plane_point(normal, dot(normal, lowest - p3(a.pos)), lowest, margin, out);
  if (hits == 0 || face < 0) return hits;

  // The face's corners from the lowest on; of more than four the lowest and the three that
  // span the most with it. Seen from the mesh: equally wide choices are MuJoCo's then too.
  FaceRing<T> ring{mesh.vertex, mesh.polygon_vertex + mesh.polygon_start[face],
                   mesh.polygon_size[face], 0};
  for (int k = 0; k < ring.size; k++)
    if (ring.corner[k] == from) ring.first = k;
  int pick[4] = {0, 1, 2, 3};
  if (ring.size > 4) widest_quad(ring, ring.size, 1, pick);
  for (int k = 1; k < 4 && k < ring.size; k++) {
    const P3<T> at = turn(b.mat, ring[pick[k]]);
    if (dot(normal, at) > T(0)) continue;
    const P3<T> point = at + centre;
    hits += hit_plane_point(normal, dot(normal, point - p3(a.pos)), point, margin, out + hits);
  }
  return hits;
}
