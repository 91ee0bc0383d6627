// Two boxes: the axis that separates them most, or overlaps least, of 15, then
// either a polygon of contacts over a face or one contact between two edges.
// After MuJoCo, Computation, "Collision", with its tolerances: faces are preferred
// to edges on near ties since several points hold a box better than one.
#pragma once

template <class T>
struct BoxNoise;
template <>
struct BoxNoise<double> {
  static constexpr double separation = 1e-13;  // of the summed half sizes
  static constexpr double parallel = 1e-16;    // sin^2 of two edges' angle
  static constexpr double side = 1e-9;         // component that leaves a corner open
  static constexpr double same = 1e-14;        // squared, of the face's size
};
template <>
struct BoxNoise<float> {
  static constexpr float separation = 1e-6f;
  static constexpr float parallel = 1e-7f;
  static constexpr float side = 1e-5f;
  static constexpr float same = 1e-10f;
};

// Two boxes in the first one's frame.
template <class T>
struct BoxPair {
  P3<T> size[2];
  T turn[9];      // the second box's axes as columns, in the first one's frame
  P3<T> centre;   // of the second box, in the first one's frame
  P3<T> back;     // of the first box, in the second one's frame
  T slack;        // distance up to which boxes count as touching
};

enum { BOX_POLYGON = 12 };

// Unit cross product of axis i of the first box and axis j of the second, in the
// first one's frame; its component i is zero. Returns the squared sine.
template <class T>
OSTLER_FN T edge_axis(const BoxPair<T>& p, int i, int j, P3<T>& axis) {
  const int u = (i + 1) % 3, v = (i + 2) % 3;
  axis[i] = T(0);
  axis[u] = -p.turn[3 * v + j];
  axis[v] = p.turn[3 * u + j];
  const T sine2 = axis[u] * axis[u] + axis[v] * axis[v];
  const T inverse = T(1) / root(sine2);
  axis[u] *= inverse;
  axis[v] *= inverse;
  return sine2;
}

// The best axis: 0..2 a face of the first box, 3..5 of the second, 6 + 3 i + j
// two edges; -1: apart.
template <class T>
OSTLER_FN_BIG int separating_axis(const BoxPair<T>& p) {
  T best = -Noise<T>::huge;
  int code = -1;
  for (int k = 0; k < 6; k++) {
    const int i = k % 3;
    T reach = T(0);
    if (k < 3) {
      reach = mag(p.turn[3 * i]) * p.size[1][0] + mag(p.turn[3 * i + 1]) * p.size[1][1] +
              mag(p.turn[3 * i + 2]) * p.size[1][2];
    } else {
      reach = mag(p.turn[i]) * p.size[0][0] + mag(p.turn[3 + i]) * p.size[0][1] +
              mag(p.turn[6 + i]) * p.size[0][2];
    }
    const T apart = mag(k < 3 ? p.centre[i] : p.back[i]) - p.size[k / 3][i] - reach;
    if (apart > p.slack) return -1;
    if (apart > best) {
      best = apart;
      code = k;
    }
  }
  const int face = code;
  const T face_best = best;
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      P3<T> axis;
      if (edge_axis(p, i, j, axis) < BoxNoise<T>::parallel) continue;
      const int u = (i + 1) % 3, v = (i + 2) % 3, s = (j + 1) % 3, t = (j + 2) % 3;
      const T reach1 = p.size[0][u] * mag(axis[u]) + p.size[0][v] * mag(axis[v]);
      const T along_s = axis[u] * p.turn[3 * u + s] + axis[v] * p.turn[3 * v + s];
      const T along_t = axis[u] * p.turn[3 * u + t] + axis[v] * p.turn[3 * v + t];
      const T reach2 = p.size[1][s] * mag(along_s) + p.size[1][t] * mag(along_t);
      const T apart = mag(axis[u] * p.centre[u] + axis[v] * p.centre[v]) - reach1 - reach2;
      if (apart > p.slack) return -1;
      if (apart - T(1e-6) * mag(apart) > best && apart > face_best) {
        best = apart;
        code = 6 + 3 * i + j;
      }
    }
  }
  if (code >= 6) {
    // An edge axis within 8 degrees of the best face says the same with one point.
    P3<T> axis;
    edge_axis(p, (code - 6) / 3, (code - 6) % 3, axis);
    const P3<T> normal = face < 3 ? p3(T(face == 0), T(face == 1), T(face == 2))
                                  : axis_of(p.turn, face - 3);
    if (mag(dot(axis, normal)) > T(0.99) &&
        best < face_best + T(0.05) * mag(face_best) + Noise<T>::tiny)
      code = face;
  }
  return code;
}

// One contact between an edge of each box.
template <class T>
OSTLER_FN_BIG int box_edges(const BoxPair<T>& p, int i, int j, const Solid<T>& a, Hit<T>* out) {
  const int u = (i + 1) % 3, v = (i + 2) % 3, s = (j + 1) % 3, t = (j + 2) % 3;
  P3<T> axis;
  edge_axis(p, i, j, axis);
  if (dot(axis, p.centre) < T(0)) axis = -axis;
  const P3<T> there = turn_back(p.turn, axis);

  // A component near zero leaves open which of two edges supports the axis: try both.
  const T side = BoxNoise<T>::side;
  const int open1 = mag(axis[u]) < side ? u : (mag(axis[v]) < side ? v : -1);
  const int open2 = mag(there[s]) < side ? s : (mag(there[t]) < side ? t : -1);
  const P3<T> along = axis_of(p.turn, j);
  const T cosine = along[i], sine2 = T(1) - cosine * cosine;

  P3<T> on1 = p3(T(0), T(0), T(0)), on2 = on1;
  T best = Noise<T>::huge;
  for (int k = 0; k < 4; k++) {
    if (((k & 2) && open1 < 0) || ((k & 1) && open2 < 0)) continue;
    P3<T> corner1, corner2;
    corner1[i] = T(0);
    corner1[u] = axis[u] >= T(0) ? p.size[0][u] : -p.size[0][u];
    corner1[v] = axis[v] >= T(0) ? p.size[0][v] : -p.size[0][v];
    if (k & 2) corner1[open1] = -corner1[open1];
    corner2[j] = T(0);
    corner2[s] = there[s] >= T(0) ? -p.size[1][s] : p.size[1][s];
    corner2[t] = there[t] >= T(0) ? -p.size[1][t] : p.size[1][t];
    if (k & 1) corner2[open2] = -corner2[open2];
    corner2 = turn(p.turn, corner2) + p.centre;

    const P3<T> gap = corner2 - corner1;
    const T g1 = gap[i], g2 = dot(along, gap);
    T x1 = sine2 < Noise<T>::tiny ? T(0) : (g1 - cosine * g2) / sine2;
    x1 = clamped(x1, -p.size[0][i], p.size[0][i]);
    const T x2 = clamped(cosine * x1 - g2, -p.size[1][j], p.size[1][j]);
    x1 = clamped(g1 + cosine * x2, -p.size[0][i], p.size[0][i]);
    corner1[i] += x1;
    corner2 = corner2 + x2 * along;
    const P3<T> left = corner2 - corner1;
    const T dist2 = dot(left, left);
    if (dist2 < best) {
      best = dist2;
      on1 = corner1;
      on2 = corner2;
    }
  }
  const T dist = dot(on2 - on1, axis);
  if (!(dist <= p.slack)) return 0;
  const P3<T> mid = p3(T(0.5) * (on1[0] + on2[0]), T(0.5) * (on1[1] + on2[1]),
                       T(0.5) * (on1[2] + on2[2]));
  write_hit(out[0], dist, turn(a.mat, mid) + p3(a.pos), turn(a.mat, axis));
  return 1;
}

// Cuts a polygon at sign * v[c] <= limit; returns its new size, in place.
template <class T>
OSTLER_FN_BIG int cut_polygon(P3<T>* polygon, int size, int c, T sign, T limit) {
  P3<T> kept[BOX_POLYGON];
  int count = 0;
  for (int k = 0; k < size; k++) {
    const P3<T> p = polygon[k], q = polygon[k + 1 == size ? 0 : k + 1];
    const T over_p = sign * p[c] - limit, over_q = sign * q[c] - limit;
    if (over_p <= T(0) && count < BOX_POLYGON) kept[count++] = p;
    const bool crosses = (over_p < T(0) && over_q > T(0)) || (over_p > T(0) && over_q < T(0));
    if (crosses && count < BOX_POLYGON) kept[count++] = p + (over_p / (over_p - over_q)) * (q - p);
  }
  for (int k = 0; k < count; k++) polygon[k] = kept[k];
  return count;
}

// A contact for each corner of what of the other box's face lies over this face.
template <class T>
OSTLER_FN_BIG int box_face(const BoxPair<T>& p, int code, const Solid<T>& a, const Solid<T>& b,
                           T margin, Hit<T>* out) {
  const bool first = code < 3;  // whose face: the reference
  const int z = first ? code : code - 3, x = (z + 1) % 3, y = (z + 2) % 3;
  const P3<T> size = p.size[first ? 0 : 1], other = p.size[first ? 1 : 0];
  const Solid<T>& owner = first ? a : b;
  const P3<T> centre = first ? p.centre : p.back;
  T turn_other[9];  // the other box's axes as columns, in the reference frame
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++) turn_other[3 * r + c] = first ? p.turn[3 * r + c] : p.turn[3 * c + r];
  const T sign = centre[z] >= T(0) ? T(1) : T(-1);

  // The other box's face that looks most against this one.
  int w = 0;
  for (int k = 1; k < 3; k++)
    if (mag(turn_other[3 * z + k]) > mag(turn_other[3 * z + w])) w = k;
  const T facing = sign * turn_other[3 * z + w] > T(0) ? T(-1) : T(1);
  const int u = (w + 1) % 3, v = (w + 2) % 3;

  // In coordinates (x, y, height over the reference face).
  P3<T> middle, side_u, side_v;
  for (int r = 0; r < 3; r++) {
    const int c = r == 0 ? x : (r == 1 ? y : z);
    middle[r] = centre[c] + facing * other[w] * turn_other[3 * c + w];
    side_u[r] = other[u] * turn_other[3 * c + u];
    side_v[r] = other[v] * turn_other[3 * c + v];
  }
  middle[2] = sign * middle[2] - size[z];
  side_u[2] *= sign;
  side_v[2] *= sign;
  P3<T> polygon[BOX_POLYGON];
  for (int k = 0; k < 4; k++) {
    const T su = k == 0 || k == 3 ? T(1) : T(-1), sv = k < 2 ? T(1) : T(-1);
    polygon[k] = middle + su * side_u + sv * side_v;
  }
  int count = 4;
  for (int k = 0; k < 4; k++)
    count = cut_polygon(polygon, count, k / 2, k % 2 ? T(-1) : T(1), size[k < 2 ? x : y]);

  const T same = BoxNoise<T>::same * (size[x] * size[x] + size[y] * size[y]);
  const P3<T> normal = (first ? sign : -sign) * axis_of(owner.mat, z);
  int hits = 0;
  int kept[BOX_POLYGON];
  for (int k = 0; k < count && hits < 8; k++) {
    if (!(polygon[k][2] <= margin)) continue;
    bool twin = false;
    for (int q = 0; q < hits; q++) {
      const T dx = polygon[kept[q]][0] - polygon[k][0], dy = polygon[kept[q]][1] - polygon[k][1];
      twin = twin || dx * dx + dy * dy < same;
    }
    if (twin) continue;
    P3<T> at;
    at[x] = polygon[k][0];
    at[y] = polygon[k][1];
    at[z] = sign * (size[z] + T(0.5) * polygon[k][2]);
    kept[hits] = k;
    write_hit(out[hits++], polygon[k][2], turn(owner.mat, at) + p3(owner.pos), normal);
  }
  return hits;
}

template <class T>
OSTLER_FN_BIG int box_box(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  BoxPair<T> p;
  const P3<T> gap = p3(b.pos) - p3(a.pos);
  p.size[0] = p3(a.size);
  p.size[1] = p3(b.size);
  p.centre = turn_back(a.mat, gap);
  p.back = turn_back(b.mat, -gap);
  turn_between(p.turn, a.mat, b.mat);
  p.slack = margin + BoxNoise<T>::separation * (a.size[0] + a.size[1] + a.size[2] + b.size[0] +
                                                b.size[1] + b.size[2]);
  const int code = separating_axis(p);
  if (code < 0) return 0;
  if (code >= 6) return box_edges(p, (code - 6) / 3, (code - 6) % 3, a, out);
  return box_face(p, code, a, b, margin, out);
}
