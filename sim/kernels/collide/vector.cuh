// Small vectors and the thresholds that depend on the precision.
#pragma once

template <class T>
struct P3 {
  T c[3];
  OSTLER_FN T& operator[](int i) { return c[i]; }
  OSTLER_FN const T& operator[](int i) const { return c[i]; }
};

OSTLER_FN float root(float x) { return sqrtf(x); }
OSTLER_FN double root(double x) { return sqrt(x); }
OSTLER_FN float mag(float x) { return fabsf(x); }
OSTLER_FN double mag(double x) { return fabs(x); }
OSTLER_FN float round_down(float x) { return floorf(x); }
OSTLER_FN double round_down(double x) { return floor(x); }

template <class T>
OSTLER_FN T clamped(T x, T low, T high) {
  return x < low ? low : (x > high ? high : x);
}

template <class T>
OSTLER_FN P3<T> p3(T x, T y, T z) {
  P3<T> r = {{x, y, z}};
  return r;
}
template <class T>
OSTLER_FN P3<T> p3(const T* v) {
  return p3(v[0], v[1], v[2]);
}
// A table's or geom's vector in the scalar of a computation.
template <class T, class S>
OSTLER_FN P3<T> as_p3(const S* v) {
  return p3(T(v[0]), T(v[1]), T(v[2]));
}
template <class S, class T>
OSTLER_FN void put(S* to, const P3<T>& v) {
  to[0] = S(v.c[0]);
  to[1] = S(v.c[1]);
  to[2] = S(v.c[2]);
}
template <class T>
OSTLER_FN P3<T> operator+(const P3<T>& a, const P3<T>& b) {
  return p3(a.c[0] + b.c[0], a.c[1] + b.c[1], a.c[2] + b.c[2]);
}
template <class T>
OSTLER_FN P3<T> operator-(const P3<T>& a, const P3<T>& b) {
  return p3(a.c[0] - b.c[0], a.c[1] - b.c[1], a.c[2] - b.c[2]);
}
template <class T>
OSTLER_FN P3<T> operator-(const P3<T>& a) {
  return p3(-a.c[0], -a.c[1], -a.c[2]);
}
template <class T>
OSTLER_FN P3<T> operator*(T s, const P3<T>& a) {
  return p3(s * a.c[0], s * a.c[1], s * a.c[2]);
}
template <class T>
OSTLER_FN T dot(const P3<T>& a, const P3<T>& b) {
  return a.c[0] * b.c[0] + a.c[1] * b.c[1] + a.c[2] * b.c[2];
}
template <class T>
OSTLER_FN P3<T> cross(const P3<T>& a, const P3<T>& b) {
  return p3(a.c[1] * b.c[2] - a.c[2] * b.c[1], a.c[2] * b.c[0] - a.c[0] * b.c[2],
            a.c[0] * b.c[1] - a.c[1] * b.c[0]);
}
template <class T>
OSTLER_FN T norm(const P3<T>& a) {
  return root(dot(a, a));
}
// Column i of a row-major 3x3 matrix: the geom's axis i.
template <class T>
OSTLER_FN P3<T> axis_of(const T* mat, int i) {
  return p3(mat[i], mat[3 + i], mat[6 + i]);
}
template <class T>
OSTLER_FN P3<T> turn(const T* m, const P3<T>& v) {
  return p3(m[0] * v.c[0] + m[1] * v.c[1] + m[2] * v.c[2],
            m[3] * v.c[0] + m[4] * v.c[1] + m[5] * v.c[2],
            m[6] * v.c[0] + m[7] * v.c[1] + m[8] * v.c[2]);
}
template <class T>
OSTLER_FN P3<T> turn_back(const T* m, const P3<T>& v) {
  return p3(m[0] * v.c[0] + m[3] * v.c[1] + m[6] * v.c[2],
            m[1] * v.c[0] + m[4] * v.c[1] + m[7] * v.c[2],
            m[2] * v.c[0] + m[5] * v.c[1] + m[8] * v.c[2]);
}
// a^T b of two row-major 3x3 matrices.
template <class T>
OSTLER_FN void turn_between(T* out, const T* a, const T* b) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      out[3 * i + j] = a[i] * b[j] + a[3 + i] * b[3 + j] + a[6 + i] * b[6 + j];
}

// MuJoCo's thresholds are written for double (mjMINVAL = 1e-15); in float what is
// pure rounding noise is larger by the ratio of the precisions.
template <class T>
struct Noise;
template <>
struct Noise<double> {
  static constexpr double tiny = 1e-15;       // below: not worth dividing by
  static constexpr double coincident = 1e-15; // centres that give no direction
  static constexpr double upright = 1e-15;    // slope of a cylinder's cap on a plane
  static constexpr double touching = 1e-15;   // sphere centre on a box's surface
  static constexpr double parallel = 0;       // of a determinant, relative to its terms
  static constexpr double huge = 1e300;
};
template <>
struct Noise<float> {
  static constexpr float tiny = 1e-15f;
  static constexpr float coincident = 2e-6f;
  static constexpr float upright = 4e-7f;
  static constexpr float touching = 1e-6f;
  static constexpr float parallel = 1e-6f;
  static constexpr float huge = 1e30f;
};

// Makes v a unit vector and returns its length; a vector shorter than `least`
// becomes the x axis, as in MuJoCo's mju_normalize3.
template <class T>
OSTLER_FN T make_unit(P3<T>& v, T least = Noise<T>::tiny) {
  const T length = norm(v);
  if (length < least) {
    v = p3(T(1), T(0), T(0));
  } else {
    const T inverse = T(1) / length;
    v = inverse * v;
  }
  return length;
}

template <class S, class T>
OSTLER_FN void write_hit(Hit<S>& hit, T dist, const P3<T>& pos, const P3<T>& normal) {
  hit.dist = S(dist);
  put(hit.pos, pos);
  put(hit.normal, normal);
  hit.tangent[0] = hit.tangent[1] = hit.tangent[2] = S(0);
}
