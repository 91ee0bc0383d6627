// A capsule and a box: up to two contacts, each a sphere on the capsule's segment
// against the box. After MuJoCo, Computation, "Collision": the first sphere sits
// where the segment is nearest to the box; the second goes along the segment as far
// as it still faces the same face or edge, if it faces one.
#pragma once

// Where the segment comes nearest, in the box's frame.
template <class T>
struct SegmentOnBox {
  T along;      // on the segment, -1..1
  T edge_at;    // on the edge, -1..1
  bool found;
  bool on_edge;  // an edge or corner is nearest; otherwise an end faces a face
  bool corner;   // the edge's end, not its inside
  int vertex;    // corner as bits, 1: positive side; the edge's lower end if inside
  int edge;      // axis of the edge
  int face;      // axis of the face; -1: the end is inside the box
};

// The 12 edges against the segment; improves `best`.
template <class T>
OSTLER_FN_BIG void nearest_edge(const T* size, T half_length, const P3<T>& centre,
                                const P3<T>& half, T& best2, SegmentOnBox<T>& best) {
  const T one = T(1);
  for (int j = 0; j < 3; j++) {
    for (int i = 0; i < 8; i++) {
      if (i & (1 << j)) continue;
      P3<T> middle = p3(i & 1 ? size[0] : -size[0], i & 2 ? size[1] : -size[1],
                        i & 4 ? size[2] : -size[2]);
      middle[j] = T(0);
      P3<T> gap = middle - centre;
      const T qe = size[j] * size[j], cr = -size[j] * half[j], qs = half_length * half_length;
      const T ge = -size[j] * gap[j], gs = dot(half, gap);
      // Across the edge, where nearly parallel ones do not cancel.
      const int k = (j + 1) % 3, l = (j + 2) % 3;
      const T across = half[k] * half[k] + half[l] * half[l];
      const T noise = Noise<T>::parallel * Noise<T>::parallel * qe * qs;
      if (qe * across < (noise > Noise<T>::tiny ? noise : Noise<T>::tiny)) continue;
      T xs = (half[k] * gap[k] + half[l] * gap[l]) / across, xe = (half[j] * xs - gap[j]) / size[j];
      // The end of the edge that a clamp has touched last stays the verdict, even
      // where the second clamp moves the point back inside: MuJoCo's choice.
      int end = 0;
      if (xe > one) {
        xe = one;
        end = 1;
        xs = (gs - cr) * (one / qs);
      } else if (xe < -one) {
        xe = -one;
        end = -1;
        xs = (gs + cr) * (one / qs);
      }
      if (xs > one || xs < -one) {
        xs = xs > one ? one : -one;
        xe = (ge - xs * cr) * (one / qe);
        if (xe > one) {
          xe = one;
          end = 1;
        } else if (xe < -one) {
          xe = -one;
          end = -1;
        }
      }
      gap = gap - xs * half;
      gap[j] += size[j] * xe;
      const T dist2 = dot(gap, gap);
      const T slack = Noise<T>::parallel * best2;
      if (dist2 < best2 - (slack > Noise<T>::tiny ? slack : Noise<T>::tiny)) {
        best2 = dist2;
        best.found = best.on_edge = true;
        best.along = xs;
        best.edge_at = xe;
        best.corner = end != 0;
        best.vertex = i + (end > 0 ? 1 << j : 0);
        best.edge = j;
      }
    }
  }
}

template <class T>
OSTLER_FN T lesser(T a, T b) {
  return b < a ? b : a;
}

// How far to go from the first point for the second, in units of half the segment;
// `none` where there is none. It may be 0: MuJoCo then has the same contact twice.
template <class T>
OSTLER_FN_BIG T second_step(const T* size, const P3<T>& centre, const P3<T>& axis,
                            const P3<T>& half, const SegmentOnBox<T>& at, T none) {
  const int heading = (half[0] > T(0) ? 1 : 0) | (half[1] > T(0) ? 2 : 0) | (half[2] > T(0) ? 4 : 0);
  if (!at.on_edge) {
    if (at.face < 0) return none;
    // An end faces a face: towards the other end, up to the face's border.
    const T sign = -at.along;
    const P3<T> start = centre - sign * half;
    T step = T(2);
    for (int i = 0; i < 3; i++) {
      if (i == at.face) continue;
      const T up = (size[i] - start[i]) / half[i] * sign;
      if (up > T(0)) step = lesser(step, up);
      const T down = (-size[i] - start[i]) / half[i] * sign;
      if (down > T(0)) step = lesser(step, down);
    }
    return step * sign;
  }
  int turned = heading ^ at.vertex;
  // A segment along a face and beyond its two borders has edges there at one distance, and
  // which of them was taken says nothing of the segment's slope: the second contact is at the
  // other.
  int most = mag(half[0]) < mag(half[1]) ? 1 : 0;
  if (mag(half[most]) < mag(half[2])) most = 2;
  const bool beyond = mag(centre[most]) + size[most] <= mag(half[most]);
  for (int turn = 1; beyond && turn < 3; turn++) {
    const int i = (most + turn) % 3, beside = (most + 3 - turn) % 3;
    const bool above = mag(centre[i]) > size[i] && mag(centre[beside]) <= size[beside];
    if (!above || half[i] == T(0) || mag(half[i]) > T(4) * Noise<T>::parallel * mag(half[most])) continue;
    const int other = (turned >> most) & 1 ? 0 : 1 << i;
    turned = (turned & ~(1 << i)) | other;
  }
  if (at.corner) {
    if (turned == 0 || turned == 7) return none;  // straight at the corner
    const bool single = turned == 1 || turned == 2 || turned == 4;
    const T sign = single ? T(1) : T(-1);
    if (!single) turned = 7 - turned;
    const int i = turned >> 1;  // the bit's index: 1, 2, 4 -> 0, 1, 2
    if (axis[i] * axis[i] > T(0.5))  // along an edge
      return sign * lesser(T(1) - sign * at.along, T(2) * size[i] / mag(half[i]));
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    T step = T(1) + sign * at.along;
    step = lesser(step, T(2) * size[j] / mag(half[j]));
    step = lesser(step, T(2) * size[k] / mag(half[k]));
    return -sign * step;
  }
  turned &= 7 - (1 << at.edge);
  if (turned != 1 && turned != 2 && turned != 4) return none;  // T, not X
  int low = (at.edge + 1) % 3, high = (at.edge + 2) % 3;
  if (mag(axis[low]) > mag(axis[high])) {
    const int swap = low;
    low = high;
    high = swap;
  }
  const bool ahead = (turned >> high) & 1;
  const T sign = ahead ? T(1) : T(-1);
  T step = lesser(T(1) - sign * at.along, T(2) * size[high] / mag(half[high]));
  const bool same = (((heading >> at.edge) & 1) != 0) == ahead;
  const T room = same ? T(1) - at.edge_at : T(1) + at.edge_at;
  return sign * lesser(step, size[at.edge] * room / mag(half[at.edge]));
}

template <class T>
OSTLER_FN_BIG int capsule_box(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  const P3<T> centre = turn_back(b.mat, p3(a.pos) - p3(b.pos));
  const P3<T> axis = turn_back(b.mat, axis_of(a.mat, 2)), half = a.size[1] * axis;

  SegmentOnBox<T> best = {};
  T best2 = margin + T(2) * (a.size[0] + a.size[1] + b.size[0] + b.size[1] + b.size[2]);
  for (int end = -1; end <= 1; end += 2) {
    const P3<T> tip = centre + T(end) * half;
    P3<T> off = p3(T(0), T(0), T(0));
    int outside = 0, face = -1;
    for (int j = 0; j < 3; j++) {
      if (tip[j] < -b.size[j] || tip[j] > b.size[j]) {
        off[j] = (tip[j] < T(0) ? -b.size[j] : b.size[j]) - tip[j];
        outside++;
        face = j;
      }
    }
    const T dist2 = dot(off, off);
    if (outside <= 1 && dist2 < best2) {
      best2 = dist2;
      best.found = true;
      best.along = T(end);
      best.face = face;
    }
  }
  nearest_edge(b.size, a.size[1], centre, half, best2, best);
  if (!best.found) return 0;

  const P3<T> first = turn(b.mat, centre + best.along * half) + p3(b.pos);
  int hits = hit_sphere_box(first, a.size[0], b, margin, out);
  const T none = T(-4), step = second_step(b.size, centre, axis, half, best, none);
  if (step > T(-3)) {
    const P3<T> second = turn(b.mat, centre + (step + best.along) * half) + p3(b.pos);
    hits += hit_sphere_box(second, a.size[0], b, margin, out + hits);
  }
  return hits;
}
