// Gilbert, Johnson, Keerthi: the distance of two convex shapes, or a simplex of
// their Minkowski difference around the origin. After MuJoCo's native convex
// collision (Computation, "Collision", nativeccd).
#pragma once

// Where the search stops. MuJoCo's defaults are 1e-6 and 35 steps; the nearest
// points of curved shapes then wander by 1e-4, so this one goes on.
template <class T>
struct Search;
template <>
struct Search<double> {
  static constexpr double tolerance = 1e-12;
  static constexpr double exact = 1e-15;     // for two polytopes
  static constexpr double rough = 1e-6;      // good enough for Newton to go on from
  static constexpr double contained2 = 1e-30; // squared distance of the origin on a face
  static constexpr double in_corner2 = 1e-30;
  static constexpr double inverted = 1e-10;  // bounds the wrong way round by more: nothing
};
template <>
struct Search<float> {
  static constexpr float tolerance = 1e-6f;
  static constexpr float exact = 1e-7f;
  static constexpr float contained2 = 1e-10f;
  static constexpr float in_corner2 = 1e-17f;
  static constexpr float inverted = 1e-5f;
};
enum {
  GJK_STEPS = 400,  // each in constant memory; curved shapes that barely touch need many
  EPA_STEPS = 100
};

template <class T>
struct Nearest {
  Support<T> simplex[4];
  int size;      // points in the simplex
  int steps;
  bool apart;    // a plane separates the shapes
  bool on;       // points were found
  P3<T> on1, on2;
  T dist;
};

// Blends the points of the simplex.
template <class T>
OSTLER_FN P3<T> blend(const P3<T>& a, const P3<T>& b, const P3<T>& c, const P3<T>& d,
                      const T* weight, int n) {
  P3<T> sum = weight[0] * a;
  if (n > 1) sum = sum + weight[1] * b;
  if (n > 2) sum = sum + weight[2] * c;
  if (n > 3) sum = sum + weight[3] * d;
  return sum;
}

template <class T>
OSTLER_FN T face_height(const Support<T>& a, const Support<T>& b, const Support<T>& c,
                        P3<T>& normal) {
  normal = cross(c.at - a.at, b.at - a.at);
  const T length2 = dot(normal, normal);
  if (length2 > Noise<T>::tiny * Noise<T>::tiny && length2 < T(1e20)) {
    normal = (T(1) / root(length2)) * normal;
    return dot(normal, a.at);
  }
  return Noise<T>::huge;
}

// Moves a tetrahedron towards the origin: 1 the origin is inside, 0 it is outside the
// difference, -1 cannot tell. `between`: becomes a direction in which it is outside.
template <class T, class S>
OSTLER_FN_BIG int enclose_origin(Nearest<T>& g, Convex<T, S>& a, Convex<T, S>& b, P3<T>* between = nullptr) {
  Support<T> s[4] = {g.simplex[0], g.simplex[1], g.simplex[2], g.simplex[3]};
  int o[4] = {0, 1, 2, 3};  // the order that keeps the orientation
  for (; g.steps < GJK_STEPS; g.steps++) {
    T height[4];
    P3<T> normal[4];
    height[0] = face_height(s[o[2]], s[o[1]], s[o[3]], normal[0]);
    height[1] = face_height(s[o[0]], s[o[2]], s[o[3]], normal[1]);
    height[2] = face_height(s[o[1]], s[o[0]], s[o[3]], normal[2]);
    height[3] = face_height(s[o[0]], s[o[1]], s[o[2]], normal[3]);
    if (height[0] == T(0) || height[1] == T(0) || height[2] == T(0) || height[3] == T(0)) return -1;
    const int low = height[0] < height[1] ? 0 : 1, high = height[2] < height[3] ? 2 : 3;
    const int worst = height[low] < height[high] ? low : high;
    if (height[worst] > T(0)) {
      for (int i = 0; i < 4; i++) g.simplex[i] = s[o[i]];
      g.size = 4;
      return 1;
    }
    support(s[o[worst]], a, b, normal[worst]);
    if (dot(normal[worst], s[o[worst]].at) < T(0)) {
      if (between) *between = normal[worst];
      g.size = 0;
      return 0;
    }
    const int i = (worst + 1) & 3, j = (worst + 2) & 3;
    const int swap = o[i];
    o[i] = o[j];
    o[j] = swap;
  }
  return -1;
}

// Nearest points of two shapes, as long as they may be nearer than `cutoff`; with a
// cutoff of 0 only whether they overlap. g.on1, g.on2 are the first guess. `between`: becomes
// the normal of a plane between them, where one is found.
template <class T, class S>
OSTLER_FN_BIG void gjk(Nearest<T>& g, Convex<T, S>& a, Convex<T, S>& b, T cutoff, P3<T>* between = nullptr) {
  const bool discrete = both_discrete(a, b);
  const T tolerance = Search<T>::tolerance;
  const T gap = discrete ? T(0) : T(0.5) * tolerance * tolerance;
  const T contained = discrete ? Search<T>::exact : tolerance;
  bool may_enclose = !(cutoff > T(0));
  T weight[4] = {T(1), T(0), T(0), T(0)};
  P3<T> x = g.on1 - g.on2;
  T length = norm(x), before = T(0);
  if (length < Noise<T>::tiny) {  // the same centre: any direction will do
    x = p3(T(1), T(0), T(0));
    length = T(1);
  }
  int n = 0;
  g.steps = 0;
  g.apart = g.on = false;
  for (; g.steps < GJK_STEPS; g.steps++) {
    // No progress; the first length does not count, it is not a simplex's.
    if (!(length >= contained) || (g.steps > 1 && mag(before - length) < Noise<T>::tiny)) break;
    Support<T>& fresh = g.simplex[n];
    support(fresh, a, b, -((T(1) / length) * x));
    if (dot(x, x - fresh.at) < gap) break;
    const T ahead = dot(x, fresh.at);
    if (ahead > T(0) && ahead >= cutoff * length) {
      if (between) *between = (T(-1) / length) * x;
      g.apart = true;
      g.size = 0;
      g.dist = Noise<T>::huge;
      return;
    }
    if (n == 3 && may_enclose) {
      const int verdict = enclose_origin(g, a, b, between);
      if (verdict >= 0) {
        g.apart = verdict == 0;
        g.dist = verdict == 1 ? T(0) : Noise<T>::huge;
        return;
      }
      may_enclose = false;
    }
    nearest_on_simplex(g.simplex, n + 1, weight);
    n = 0;
    for (int i = 0; i < 4; i++) {
      if (weight[i] == T(0)) continue;
      g.simplex[n] = g.simplex[i];
      weight[n++] = weight[i];
    }
    if (n < 1) {
      g.apart = true;
      g.size = 0;
      g.dist = Noise<T>::huge;
      return;
    }
    x = blend(g.simplex[0].at, g.simplex[1].at, g.simplex[2].at, g.simplex[3].at, weight, n);
    before = length;
    length = norm(x);
    if (n == 4) break;
  }
  if (n > 0) {
    g.on1 = blend(g.simplex[0].on1, g.simplex[1].on1, g.simplex[2].on1, g.simplex[3].on1, weight, n);
    g.on2 = blend(g.simplex[0].on2, g.simplex[1].on2, g.simplex[2].on2, g.simplex[3].on2, weight, n);
  }
  Support<T> last;
  support(last, a, b, -((T(1) / length) * x));
  // Where the origin is reached to rounding, x has no direction to speak of.
  if (length > T(10) * Search<T>::exact && dot(x, last.at) > T(0)) g.apart = true;
  g.on = true;
  g.size = n;
  g.dist = n == 4 && !g.apart ? T(0) : length;
}
