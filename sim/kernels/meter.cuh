// Sensors of accelerations and forces, of the state in which a time step begins.
//
// Source: MuJoCo, Computation, "Sensors"; mj_rnePostConstraint, mj_sensorAcc,
// mju_rayGeom. sim/engine/src/physics/native/lower/meters.rs lists the parts of a force.
#pragma once

enum { METER_ACCELEROMETER, METER_LINEAR, METER_ANGULAR, METER_FORCE, METER_TORQUE, METER_TOUCH };

// A force and its moment about a place that is given from the reference of `tree` (-1:
// from the world's origin).
template<class R> struct Push {
  R force[3], moment[3], at[3];
  int tree;
};

// The tree that carries a moving body; -1 of the world.
template<class M> OSTLER_FN int tree_of(const M& m, int body) { return body < 0 ? -1 : m.body_tree[body]; }

// o += the way from the reference of tree `to` to that of tree `from`.
template<class R, class M> OSTLER_FN void from_tree(const Work<R, M>& w, int from, int to, R* o) {
  if (from == to) return;
  for (int k = 0; k < 3; k++) {
    if (from >= 0) o[k] = o[k] + w.ref[3 * from + k];
    if (to >= 0) o[k] = o[k] - w.ref[3 * to + k];
  }
}

// Places and axes of the sensors.
template<class R, class M> OSTLER_FN void place_meters(const M& m, Work<R, M>& w) {
  for (int s = 0; s < m.nmeter; s++) {
    const int b = m.meter_body[s];
    R* o = w.meter_frame + 12 * s;
    fixed_axes(w, b, m.meter_mat + 9 * s, o + 3);
    if (b < 0) {
      for (int k = 0; k < 3; k++) o[k] = bc<R>(m.meter_pos[3 * s + k]);
    } else {
      mat_con(w.xmat + 9 * b, m.meter_pos + 3 * s, o);
      for (int k = 0; k < 3; k++) o[k] = o[k] + w.xpos[3 * b + k];
    }
  }
}

// v in the sensor's axes.
template<class R> OSTLER_FN void to_axes(const R* frame, const R* v, R* o) {
  R u[3];
  for (int k = 0; k < 3; k++) u[k] = fma(frame[6 + k], v[2], fma(frame[3 + k], v[1], frame[k] * v[0]));
  for (int k = 0; k < 3; k++) o[k] = u[k];
}

// Acceleration of the sensor's frame, as an observer feels it: at rest, up by gravity.
template<class R, class M> OSTLER_FN void read_acceleration(const M& m, Work<R, M>& w, int s) {
  const int b = m.meter_body[s], kind = m.meter_kind[s];
  const R* o = w.meter_frame + 12 * s;
  R* out = w.sense + m.meter_adr[s];
  R down[3];
  gravity(m, w, down);
  R x[3] = {-down[0], -down[1], -down[2]};
  if (b < 0) {
    if (kind == METER_ANGULAR) return;
  } else {
    const R* a = w.body_acc + 6 * b;
    const R* v = w.vel + 6 * b;
    R u[3] = {v[3], v[4], v[5]};
    for (int k = 0; k < 3; k++) x[k] = kind == METER_ANGULAR ? a[k] : a[3 + k];
    if (kind != METER_ANGULAR) {
      cross_add(v, o, u);
      cross_add(a, o, x);
      cross_add(v, u, x);
    }
  }
  if (kind == METER_ACCELEROMETER) to_axes(o + 3, x, x);
  for (int k = 0; k < 3; k++) out[k] = x[k];
}

// Adds `push`, `sign` times, to what a force or torque sensor reads.
template<class R, class M> OSTLER_FN void hold(const M& m, Work<R, M>& w, int s, const Push<R>& push, double sign) {
  R* out = w.sense + m.meter_adr[s];
  const R by = bc<R>(sign);
  if (m.meter_kind[s] == METER_FORCE) {
    for (int k = 0; k < 3; k++) out[k] = fma(by, push.force[k], out[k]);
    return;
  }
  R arm[3] = {push.at[0], push.at[1], push.at[2]}, x[3] = {push.moment[0], push.moment[1], push.moment[2]};
  from_tree(w, push.tree, tree_of(m, m.meter_body[s]), arm);
  for (int k = 0; k < 3; k++) arm[k] = arm[k] - w.meter_frame[12 * s + k];
  cross_add(arm, push.force, x);
  for (int k = 0; k < 3; k++) out[k] = fma(by, x[k], out[k]);
}

// The force that moves the bodies behind a force sensor as they move.
template<class R, class M> OSTLER_FN void read_inertia(const M& m, Work<R, M>& w, int s) {
  for (int i = m.part_adr[s]; i < m.part_adr[s + 1]; i++) {
    const int b = m.part_body[i];
    Push<R> push;
    push.tree = tree_of(m, b);
    for (int k = 0; k < 3; k++) push.at[k] = push.moment[k] = bc<R>(0);
    if (b < 0) {
      R down[3];
      gravity(m, w, down);
      const R first[3] = {bc<R>(m.part_mcom[3 * i]), bc<R>(m.part_mcom[3 * i + 1]), bc<R>(m.part_mcom[3 * i + 2])};
      const R g[3] = {-down[0], -down[1], -down[2]};
      cross_add(first, g, push.moment);
      for (int k = 0; k < 3; k++) push.force[k] = bc<R>(m.part_mass[i]) * g[k];
    } else {
      R I[10], f[6], Iv[6];
      spatial_inertia(Space(), w, b, m.part_mass[i], m.part_mcom + 3 * i, m.part_inertia + 6 * i, I);
      inertia_mul(I, w.body_acc + 6 * b, f);
      inertia_mul(I, w.vel + 6 * b, Iv);
      force_cross_add(w.vel + 6 * b, Iv, f);
      for (int k = 0; k < 3; k++) push.moment[k] = f[k], push.force[k] = f[3 + k];
    }
    hold(m, w, s, push, 1);
  }
}

// Whether a ray meets a quadric: a x^2 + 2 b x + c = 0, ahead, with `also(x)`.
template<class R, class F>
OSTLER_FN typename Lane<R>::Mask quadric(R a, R b, R c, bool first, F&& also) {
  const R zero = bc<R>(0), det = fnma(a, c, b * b);
  const auto some = !(det < bc<R>(1e-15));
  const R root = sqrt_(max_(det, zero));
  const R near = (-b - root) / a, far = (root - b) / a;
  const auto in_front = near >= zero;
  // Of a side only the first crossing ahead counts.
  if (first) return some & (far >= zero) & also(sel(in_front, near, far));
  return some & ((in_front & also(near)) | ((far >= zero) & also(far)));
}
// Whether a ray from p along d meets a shape, p and d in the shape's axes from its
// centre. From inside it always does.
template<class R, class T> OSTLER_FN typename Lane<R>::Mask ray_meets(int shape, const T* size, const R* p, const R* d) {
  typedef typename Lane<R>::Mask B;
  const R zero = bc<R>(0);
  const auto always = [](R) OSTLER_INLINE { return mask_of<B>(true); };
  if (shape == Shape::sphere || shape == Shape::ellipsoid) {
    R a = zero, b = zero, c = bc<R>(-1);
    for (int k = 0; k < 3; k++) {
      const R by = bc<R>(1 / (double)size[shape == Shape::sphere ? 0 : k]);
      const R x = p[k] * by, y = d[k] * by;
      a = fma(y, y, a), b = fma(x, y, b), c = fma(x, x, c);
    }
    return quadric(a, b, c, false, always);
  }
  B met = mask_of<B>(false);
  if (shape == Shape::box) {
    for (int k = 0; k < 3; k++)
      for (int end = -1; end <= 1; end += 2) {
        const R x = (bc<R>(end * (double)size[k]) - p[k]) / d[k];
        B in = x >= zero;
        for (int i = 1; i < 3; i++) {
          const int j = (k + i) % 3;
          in = in & (abs_(fma(x, d[j], p[j])) <= bc<R>(size[j]));
        }
        met = met | in;
      }
    return met;
  }
  const R half = bc<R>(size[1]);
  const double radius = size[0];
  const R a = fma(d[1], d[1], d[0] * d[0]), b = fma(p[1], d[1], p[0] * d[0]);
  const R c = fma(p[1], p[1], p[0] * p[0]) - bc<R>(radius * radius);
  met = quadric(a, b, c, true, [&](R x) OSTLER_INLINE { return abs_(fma(x, d[2], p[2])) <= half; });
  for (int end = -1; end <= 1; end += 2) {
    const R side = bc<R>(end), z = fnma(side, half, p[2]);
    if (shape == Shape::cylinder) {
      const R x = -z / d[2], u = fma(x, d[0], p[0]), v = fma(x, d[1], p[1]);
      met = met | ((x >= zero) & (fma(v, v, u * u) <= bc<R>(radius * radius)));
    } else {
      // Of the ball at a capsule's end what lies beyond the end.
      met = met | quadric(fma(d[2], d[2], a), fma(z, d[2], b), fma(z, z, c), false,
                          [&](R x) OSTLER_INLINE { return side * fma(x, d[2], z) >= zero; });
    }
  }
  return met;
}

// The force and moment of a contact on the body of its second geom; `n`: its normal, then its
// first tangent.
template<class R, class M, int D>
OSTLER_FN void contact_push(Dim<D> dims, const M& m, int c, const R* n, const ConeCost<R>& q, Push<R>& push) {
  const int dim = dims.of(m, c);
  for (int j = 0; j < 3; j++) push.force[j] = n[j] * -q.g[0], push.moment[j] = bc<R>(0);
  if (dim <= 1) return;
  R second[3];
  const R* t = n + 3;
  cross(n, t, second);
  for (int j = 0; j < 3; j++) push.force[j] = fnma(second[j], q.g[2], fnma(t[j], q.g[1], push.force[j]));
  const R* axes[3] = {n, t, second};
  for (int a = 3; a < dim; a++)
    for (int j = 0; j < 3; j++) push.moment[j] = fnma(axes[a - 3][j], q.g[a], push.moment[j]);
}

// The contacts of the last solve: their forces on the bodies behind sensors, and within the
// volumes of touch sensors.
template<class R, class M> OSTLER_FN void read_contacts(const M& m, Work<R, M>& w) {
  const R zero = bc<R>(0);
  for (int k = 0; k < w.nwc + w.npc; k++) {
    const bool world = k < w.nwc;
    const int i = world ? k : k - w.nwc;
    const int c = world ? w.wc_pair[i] : w.pc_pair[i];
    const int g1 = m.pair_g1[c], g2 = m.pair_g2[c];
    const int t1 = tree_of(m, m.cg_body[g1]), t2 = tree_of(m, m.cg_body[g2]);
    const R* place = world ? w.wc_pos + 3 * i : w.pc_place + 9 * i;
    const R* n = world ? w.wc_frame + 6 * i : w.pc_place + 9 * i + 3;
    Push<R> push;  // on the body of g2
    push.tree = t1 < 0 ? t2 : t1;
    for (int j = 0; j < 3; j++) push.at[j] = place[j];
    R normal = zero;
    by_dim<EITHER_WAY>(m, c, [&](auto dims) OSTLER_INLINE {
      ConeCost<R> q;
      final_cost(dims, m, w, world, i, c, q);
      normal = -q.g[0];
      contact_push(dims, m, c, n, q, push);
    });
    for (int s = 0; s < m.nmeter; s++) {
      const int in1 = m.meter_geom[s * m.ncg + g1], in2 = m.meter_geom[s * m.ncg + g2];
      if (m.meter_kind[s] != METER_TOUCH) {
        if (in1 != in2) hold(m, w, s, push, in1 - in2);
        continue;
      }
      if (!in1 && !in2) continue;
      const R* o = w.meter_frame + 12 * s;
      R p[3] = {place[0], place[1], place[2]}, d[3];
      from_tree(w, push.tree, tree_of(m, m.meter_body[s]), p);
      // Out of the body that feels it.
      for (int j = 0; j < 3; j++) p[j] = p[j] - o[j], d[j] = in1 ? n[j] : -n[j];
      to_axes(o + 3, p, p);
      to_axes(o + 3, d, d);
      const auto met = ray_meets(m.meter_shape[s], m.meter_size + 3 * s, p, d) & (normal > zero);
      R& out = w.sense[m.meter_adr[s]];
      out = out + sel(met, normal, zero);
    }
  }
}

// The forces of `connect` and `weld` on the bodies behind sensors.
template<class R, class M> OSTLER_FN void read_equalities(const M& m, Work<R, M>& w) {
  for (int i = 0; i < m.nitem; i++) {
    const bool weld = m.item_kind[i] == ITEM_WELD;
    if (m.item_kind[i] != ITEM_CONNECT && !weld) continue;
    bool counts = false;
    for (int s = 0; s < m.nmeter; s++) counts = counts || m.meter_item[2 * (s * m.nitem + i)] || m.meter_item[2 * (s * m.nitem + i) + 1];
    if (!counts) continue;
    Push<R> push;
    for (int k = 0; k < 3; k++) {
      const int row = m.item_row[i] + k;
      push.force[k] = -(w.row_d[row] * w.row_jar[row]);
      push.moment[k] = bc<R>(0);
    }
    if (weld) {
      // The rows' transposed Jacobian (general.cuh): torquescale / 2 vec(B f conj(A)).
      const int row = m.item_row[i] + 3;
      const R half = bc<R>(-0.5 * m.item_real[16 * i + 14]);
      R A[4], B[4], f[4] = {bc<R>(0)};
      welded(m, w, i, A, B);
      for (int k = 0; k < 3; k++) f[1 + k] = half * (w.row_d[row + k] * w.row_jar[row + k]), A[1 + k] = -A[1 + k];
      quat_mul(B, f, f);
      quat_mul(f, A, f);
      for (int k = 0; k < 3; k++) push.moment[k] = f[1 + k];
    }
    const int b1 = m.item_int[4 * i], b2 = m.item_int[4 * i + 1];
    push.tree = m.body_tree[b1 < 0 ? b2 : b1];
    for (int side = 0; side < 2; side++) {
      R acc[3];
      anchor(m, w, side == 0 ? b1 : b2, push.tree, m.item_real + 16 * i + 3 * side, push.at, acc);
      for (int s = 0; s < m.nmeter; s++)
        if (m.meter_item[2 * (s * m.nitem + i) + side]) hold(m, w, s, push, side == 0 ? -1 : 1);
    }
  }
}

// All forces along a spatial tendon together, in the direction in which it grows longer.
template<class R, class M> OSTLER_FN R tendon_force(const M& m, const Work<R, M>& w, int t) {
  R force = tendon_passive(m, w, t);
  for (int u = 0; u < m.nu; u++)
    if (m.act_arms[u] == ARMS_TENDON && m.act_int[4 * u] == t) force = fma(bc<R>(m.act_gear[6 * u]), w.act_force[u], force);
  for (int i = 0; i < m.nitem; i++) {
    const int kind = m.item_kind[i], row = m.item_row[i], *what = m.item_int + 4 * i;
    const bool tied = kind == ITEM_TENDON, limit = kind == ITEM_TENDON_LIMIT, rubs = kind == ITEM_TENDON_FRICTION;
    const bool first = what[0] == t, second = tied && what[1] == t;
    if (!(tied || limit || rubs) || !(first || second)) continue;
    R pull = rubs && m.nslip > 0 ? w.slip_f[m.nfric + row] : -row_cost(m, w, row, w.row_jar[row]).slope;
    if (limit) {
      R lo, hi;
      tendon_room(m, w, i, &lo, &hi);
      pull = sel(lo < hi, pull, -pull);
    }
    if (first) force = force + pull;
    if (second) {
      R p, slope;
      coupling(m, w, i, &p, &slope);
      force = fnma(slope, pull, force);
    }
  }
  if (m.ten_armature[t] != 0) {
    R gain = tendon_drift(m, w, t);
    for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++) gain = fma(w.ten_j[i], w.qacc[m.ten_dof[i]], gain);
    force = fnma(bc<R>(m.ten_armature[t]), gain, force);
  }
  return force;
}

// Whether a sensor holds what part s of a spatial tendon pulls at.
template<class M> OSTLER_FN bool pulls(const M& m, int s) {
  const int nseg = m.ten_seg[m.nten];
  for (int k = 0; k < m.nmeter; k++)
    if (m.meter_seg[k * nseg + s] != 0) return true;
  return false;
}

// The pull of spatial tendons at the bodies behind sensors: at both ends of a part, and where it
// meets and leaves its geom.
template<class R, class M> OSTLER_FN void read_tendons(const M& m, Work<R, M>& w) {
  const R zero = bc<R>(0);
  const int nseg = m.ten_seg[m.nten];
  for (int t = 0; t < m.nten; t++) {
    bool counts = false;
    for (int s = m.ten_seg[t]; s < m.ten_seg[t + 1]; s++) counts = counts || pulls(m, s);
    if (!counts) continue;
    const R force = tendon_force(m, w, t);
    for (int s = m.ten_seg[t]; s < m.ten_seg[t + 1]; s++) {
      if (!pulls(m, s)) continue;
      Strand<R> o;
      lay(m, w, s, m.ten_tree[t], o);
      // Where both ends are one point, but for what rounding leaves, there is no direction.
      const R pull = sel(o.length > bc<R>(1e4 * Tiny<R>::value), force * bc<R>(m.seg_share[s]), zero);
      const R wound = sel(o.winds, pull, zero);
      Push<R> push;
      push.tree = m.ten_tree[t];
      const auto at = [&](int who, const R* place, const R* dir, R by) OSTLER_INLINE {
        for (int k = 0; k < 3; k++) push.at[k] = place[k], push.force[k] = by * dir[k], push.moment[k] = zero;
        for (int k = 0; k < m.nmeter; k++)
          if (m.meter_seg[k * nseg + s] & who) hold(m, w, k, push, -1);
      };
      at(1, o.start, o.from, -pull);
      at(2, o.end, o.to, pull);
      if (m.seg_kind[s] == 0) continue;
      at(4, o.meets, o.from, wound);
      at(4, o.leaves, o.to, -wound);
    }
  }
}

// Everything that sensors read, after `forward`.
template<class R, class M> OSTLER_FN_PART void read_meters(const M& m, Work<R, M>& w) {
  bool contacts = false, held = false;
  for (int i = 0; i < m.nsense; i++) w.sense[i] = bc<R>(0);
  place_meters(m, w);
  body_velocities(m, w, w.qacc, w.body_acc);
  for (int i = 0; i < 6 * m.nb; i++) w.body_acc[i] = w.body_acc[i] + w.acc[i];
  for (int s = 0; s < m.nmeter; s++) {
    const int kind = m.meter_kind[s];
    if (kind < METER_FORCE) read_acceleration(m, w, s);
    else if (kind != METER_TOUCH) read_inertia(m, w, s), held = true;
    contacts = contacts || kind >= METER_FORCE;
  }
  if (contacts) read_contacts(m, w);
  if (held) read_equalities(m, w);
  if (m.nstrung > 0) read_tendons(m, w);
  for (int s = 0; s < m.nmeter; s++)
    if (m.meter_kind[s] == METER_FORCE || m.meter_kind[s] == METER_TORQUE)
      to_axes(w.meter_frame + 12 * s + 3, w.sense + m.meter_adr[s], w.sense + m.meter_adr[s]);
}
