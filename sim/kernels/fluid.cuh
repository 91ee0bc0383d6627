// Forces of a medium on bodies, and how they change with velocity.
// Source: MuJoCo, Computation, "Fluid forces": the inertia model (each body by the
// box of its inertia) and the ellipsoid model (each geom by itself).
#pragma once

// A shape in the medium: its centre relative to its tree's reference, its axes
// (rows, in the world), its velocity against the medium in these (angular, linear).
template<class R> struct Wet { R at[3], axes[9], v[6]; };

template<class R, class M, class T>
OSTLER_FN void wet_motion(const M& m, const Work<R, M>& w, int b, const T* pos, const T* mat, Wet<R>& s) {
  const R* v = w.vel + 6 * b;
  mat_con(w.xmat + 9 * b, pos, s.at);
  for (int k = 0; k < 3; k++) s.at[k] = s.at[k] + w.xpos[3 * b + k];
  for (int i = 0; i < 3; i++)  // axes[i] is the i-th axis
    for (int k = 0; k < 3; k++)
      s.axes[3 * i + k] = fma(w.xmat[9 * b + 3 * k + 2], bc<R>(mat[6 + i]),
                              fma(w.xmat[9 * b + 3 * k + 1], bc<R>(mat[3 + i]), w.xmat[9 * b + 3 * k] * bc<R>(mat[i])));
  R lin[3] = {v[3] - bc<R>(m.wind_x), v[4] - bc<R>(m.wind_y), v[5] - bc<R>(m.wind_z)};
  cross_add(v, s.at, lin);
  mat_vec(s.axes, v, s.v);
  mat_vec(s.axes, lin, s.v + 3);
}

// Adds a moment and a force at the shape's centre, in its axes, to `smooth`.
template<class R, class M> OSTLER_FN void wet_apply(const M& m, Work<R, M>& w, int b, const Wet<R>& s, const R* force) {
  const R* axes = s.axes;
  R wrench[6];
  for (int i = 0; i < 6; i += 3)
    for (int k = 0; k < 3; k++)
      wrench[i + k] = fma(axes[6 + k], force[i + 2], fma(axes[3 + k], force[i + 1], axes[k] * force[i]));
  cross_add(s.at, wrench + 3, wrench);
  for (int e = m.body_dof[b + 1] - 1; e >= 0; e = m.dof_parent[e])
    w.smooth[e] = w.smooth[e] + dot6(w.cdof + 6 * e, wrench);
}

// ---- a body by the box of its inertia: each direction resists by itself with
// still + rough |v| times v ----

template<class M> OSTLER_FN void box_drag(const M& m, int f, double* still, double* rough) {
  const auto* box = m.fluid_box + 3 * f;
  const double bx = box[0], by = box[1], bz = box[2];
  const double d = (bx + by + bz) / 3, p = 3.14159265358979323846;
  const double area[3] = {by * bz, bx * bz, bx * by};
  const double bx4 = bx * bx * bx * bx, by4 = by * by * by * by, bz4 = bz * bz * bz * bz;
  const double turn[3] = {bx * (by4 + bz4), by * (bx4 + bz4), bz * (bx4 + by4)};
  for (int k = 0; k < 3; k++) {
    still[k] = p * d * d * d * m.viscosity;
    still[3 + k] = 3 * p * d * m.viscosity;
    rough[k] = m.density * turn[k] / 64;
    rough[3 + k] = 0.5 * m.density * area[k];
  }
}
template<class R, class M> OSTLER_FN void box_force(const M& m, int f, const R* v, R* force) {
  double still[6], rough[6];
  box_drag(m, f, still, rough);
  for (int k = 0; k < 6; k++) {
    force[k] = v[k] * bc<R>(-still[k]);
    force[k] = force[k] - bc<R>(rough[k]) * abs_(v[k]) * v[k];
  }
}
// slope[6*i+j] = d force[i] / d v[j]
template<class R, class M> OSTLER_FN void box_slope(const M& m, int f, const R* v, R* slope) {
  double still[6], rough[6];
  box_drag(m, f, still, rough);
  for (int k = 0; k < 36; k++) slope[k] = bc<R>(0);
  for (int k = 0; k < 6; k++) slope[7 * k] = fnma(bc<R>(2 * rough[k]), abs_(v[k]), bc<R>(-still[k]));
}

// ---- a geom as an ellipsoid: the numbers of ell_real ----
//   MASS, TURN   the medium's mass and inertia that move along, per axis
//   AREA         squares of the products of the other two semi-axes, over the largest
//   MAGNUS KUTTA lift, the latter per root of the largest of these
//   BLUNT        drag of the projected area, per the same root
//   SLENDER      drag that does not depend on the direction
//   STILL_LIN STILL_ANG  viscosity
//   MOMENT       what resists turning about each axis, over the largest, DRILL
enum { ELL_MASS, ELL_TURN = 3, ELL_AREA = 6, ELL_MAGNUS = 9, ELL_KUTTA, ELL_BLUNT, ELL_SLENDER,
       ELL_STILL_LIN, ELL_STILL_ANG, ELL_MOMENT, ELL_DRILL = 18, ELL };

// How the medium streams past an ellipsoid; nothing of it depends on scale.
template<class R> struct Stream {
  R u[3], speed;    // direction and speed
  R n[3], num, den; // AREA times u: along the projected area's normal; n.u, n.n
  R whirl;          // | MOMENT times angular velocity |
};
template<class R, class T> OSTLER_FN void stream(const T* p, const R* v, Stream<R>& s) {
  const R* lin = v + 3;
  R turn[3];
  const R square = dot3(lin, lin);
  const auto rest = square < bc<R>(Tiny<R>::value * Tiny<R>::value);
  s.speed = sqrt_(sel(rest, bc<R>(1), square));
  const R inv = sel(rest, bc<R>(0), recip_(s.speed));
  s.speed = sel(rest, bc<R>(0), s.speed);
  for (int k = 0; k < 3; k++) {
    s.u[k] = lin[k] * inv;
    s.n[k] = bc<R>(p[ELL_AREA + k]) * s.u[k];
    turn[k] = bc<R>(p[ELL_MOMENT + k]) * v[k];
  }
  s.num = sel(rest, bc<R>(1), dot3(s.n, s.u));
  s.den = sel(rest, bc<R>(1), dot3(s.n, s.n));
  s.whirl = sqrt_(dot3(turn, turn));
}
template<class R, class T> OSTLER_FN R ellipsoid_drag(const T* p, const Stream<R>& s) {
  return fma(bc<R>(p[ELL_BLUNT]), sqrt_(s.den / s.num), bc<R>(p[ELL_SLENDER])) * s.speed;
}

template<class R, class T> OSTLER_FN void ellipsoid_force(const T* p, const R* v, R* force) {
  const R* lin = v + 3;
  Stream<R> s;
  stream(p, v, s);
  R q[3], turn[3], pull[3], spin[3], circ[3];
  for (int k = 0; k < 3; k++) {
    q[k] = bc<R>(p[ELL_MASS + k]) * lin[k];
    turn[k] = bc<R>(p[ELL_TURN + k]) * v[k];
    spin[k] = bc<R>(p[ELL_MAGNUS]) * v[k];
  }
  cross(q, lin, force);
  cross_add(turn, v, force);
  cross(q, v, pull);
  cross_add(spin, lin, pull);
  const R lift = bc<R>(p[ELL_KUTTA]) * sqrt_(s.num / s.den) * s.speed;
  cross(s.n, s.u, circ);
  for (int k = 0; k < 3; k++) circ[k] = circ[k] * lift;
  cross_add(circ, lin, pull);
  const R drag = ellipsoid_drag(p, s) + bc<R>(p[ELL_STILL_LIN]);
  const R brake = fma(bc<R>(p[ELL_DRILL]), s.whirl, bc<R>(p[ELL_STILL_ANG]));
  for (int k = 0; k < 3; k++) {
    force[k] = fnma(brake, v[k], force[k]);
    force[3 + k] = fnma(drag, lin[k], pull[k]);
  }
}

// B += [a]x in the block that starts at B, rows 6 apart; columns scaled by c.
template<class R> OSTLER_FN void skew_add(const R* a, const R* c, R* B) {
  B[1] = fnma(a[2], c[1], B[1]), B[2] = fma(a[1], c[2], B[2]);
  B[6] = fma(a[2], c[0], B[6]), B[8] = fnma(a[0], c[2], B[8]);
  B[12] = fnma(a[1], c[0], B[12]), B[13] = fma(a[0], c[1], B[13]);
}

template<class R, class T> OSTLER_FN void ellipsoid_slope(const T* p, const R* v, R* slope) {
  const R* lin = v + 3;
  Stream<R> s;
  stream(p, v, s);
  for (int k = 0; k < 36; k++) slope[k] = bc<R>(0);
  // Moving along: moment q x lin + turn x ang, force q x ang + magnus ang x lin.
  R q[3], turn[3], back[3], mass[3], inertia[3], magnus[3], one[3];
  for (int k = 0; k < 3; k++) {
    q[k] = bc<R>(p[ELL_MASS + k]) * lin[k];
    turn[k] = bc<R>(p[ELL_TURN + k]) * v[k];
    mass[k] = bc<R>(-p[ELL_MASS + k]);
    inertia[k] = bc<R>(-p[ELL_TURN + k]);
    magnus[k] = bc<R>(p[ELL_MAGNUS]);
    back[k] = -lin[k];
    one[k] = bc<R>(1);
  }
  skew_add(q, one, slope + 3), skew_add(lin, mass, slope + 3);
  skew_add(turn, one, slope), skew_add(v, inertia, slope);
  skew_add(q, one, slope + 18), skew_add(back, magnus, slope + 18);
  skew_add(v, mass, slope + 21), skew_add(v, magnus, slope + 21);
  // Turning.
  const R steep = bc<R>(p[ELL_DRILL]) / max_(s.whirl, bc<R>(Tiny<R>::value));
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      const double c = p[ELL_MOMENT + j];
      slope[6 * i + j] = fnma(steep * v[i], bc<R>(c * c) * v[j], slope[6 * i + j]);
    }
    slope[7 * i] = slope[7 * i] - fma(bc<R>(p[ELL_DRILL]), s.whirl, bc<R>(p[ELL_STILL_ANG]));
  }
  // Lift and drag: per speed they depend on the direction alone.
  const R root = recip_(sqrt_(s.num * s.den)) * s.speed;
  const R lift = bc<R>(p[ELL_KUTTA]) * root, grow = bc<R>(p[ELL_BLUNT]) * root / s.num;
  const R drag = ellipsoid_drag(p, s), flat = s.num / s.den;
  R dif[3], wide[3];
  for (int i = 0; i < 3; i++) {
    const double a = p[ELL_AREA + i];
    dif[i] = wide[i] = bc<R>(0);
    for (int k = 0; k < 3; k++) {
      const double b = p[ELL_AREA + k];
      const R part = bc<R>(a - b) * s.u[k] * s.u[k];
      dif[i] = dif[i] + part;
      wide[i] = fma(bc<R>(b), part, wide[i]);
    }
  }
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      const double a = p[ELL_AREA + i], b = p[ELL_AREA + j];
      const R turned = fma(dif[i], fma(bc<R>(b * b), flat, s.num - bc<R>(b)), bc<R>(2 * (b - a)) * s.num);
      R d = fma(lift * turned, s.u[j], -drag * s.u[j]);
      d = fnma(grow * s.n[j], wide[j], d);
      slope[6 * (3 + i) + 3 + j] = fma(s.u[i], d, slope[6 * (3 + i) + 3 + j]);
    }
    slope[7 * (3 + i)] = slope[7 * (3 + i)] - (fma(lift * dif[i], s.num, drag) + bc<R>(p[ELL_STILL_LIN]));
  }
}

template<class R, class M> OSTLER_FN void fluid(const M& m, Work<R, M>& w) {
  Wet<R> s;
  R force[6];
  for (int f = 0; f < m.nfluid; f++) {
    wet_motion(m, w, m.fluid_body[f], m.fluid_pos + 3 * f, m.fluid_mat + 9 * f, s);
    box_force(m, f, s.v, force);
    wet_apply(m, w, m.fluid_body[f], s, force);
  }
  for (int g = 0; g < m.nell; g++) {
    wet_motion(m, w, m.ell_body[g], m.ell_pos + 3 * g, m.ell_mat + 9 * g, s);
    ellipsoid_force(m.ell_real + ELL * g, s.v, force);
    wet_apply(m, w, m.ell_body[g], s, force);
  }
}

// slopes += what a shape's slope B does to the wrench about the reference for the
// spatial velocity about it: rows and columns (angular, linear).
template<class R> OSTLER_FN void wet_turn(const Wet<R>& s, const R* B, R* slopes) {
  const R* E = s.axes;
  R A[36];
  for (int r = 0; r < 6; r += 3)
    for (int c = 0; c < 6; c += 3) {
      R t[9];
      for (int i = 0; i < 3; i++) {
        const R* row = B + 6 * (r + i) + c;
        for (int j = 0; j < 3; j++) t[3 * i + j] = fma(row[2], E[6 + j], fma(row[1], E[3 + j], row[0] * E[j]));
      }
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
          A[6 * (r + i) + c + j] = fma(E[6 + i], t[6 + j], fma(E[3 + i], t[3 + j], E[i] * t[j]));
    }
  for (int i = 0; i < 6; i++) cross_add(s.at, A + 6 * i + 3, A + 6 * i);
  for (int j = 0; j < 6; j++) {
    const R f[3] = {A[18 + j], A[24 + j], A[30 + j]};
    R t[3] = {A[j], A[6 + j], A[12 + j]};
    cross_add(s.at, f, t);
    for (int k = 0; k < 3; k++) A[6 * k + j] = t[k];
  }
  for (int k = 0; k < 36; k++) slopes[k] = slopes[k] + A[k];
}

// Slopes of the medium's wrenches with spatial velocity, each body's with those of
// all it carries, in `wet`. Where the step's matrix is symmetric, so are they.
template<class R, class M> OSTLER_FN void fluid_slopes(const M& m, Work<R, M>& w) {
  for (int k = 0; k < 36 * m.nb; k++) w.wet[k] = bc<R>(0);
  Wet<R> s;
  R B[36];
  for (int f = 0; f < m.nfluid; f++) {
    const int b = m.fluid_body[f];
    wet_motion(m, w, b, m.fluid_pos + 3 * f, m.fluid_mat + 9 * f, s);
    box_slope(m, f, s.v, B);
    wet_turn(s, B, w.wet + 36 * b);
  }
  for (int g = 0; g < m.nell; g++) {
    const int b = m.ell_body[g];
    wet_motion(m, w, b, m.ell_pos + 3 * g, m.ell_mat + 9 * g, s);
    ellipsoid_slope(m.ell_real + ELL * g, s.v, B);
    if (!m.body_skew[b])
      for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++) B[6 * i + j] = B[6 * j + i] = bc<R>(0.5) * (B[6 * i + j] + B[6 * j + i]);
    wet_turn(s, B, w.wet + 36 * b);
  }
  for (int b = m.nb - 1; b >= 0; b--) {
    const int p = m.body_parent[b];
    if (p < 0) continue;
    for (int k = 0; k < 36; k++) w.wet[36 * p + k] = w.wet[36 * p + k] + w.wet[36 * b + k];
  }
}
