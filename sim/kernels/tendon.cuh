// Lengths of tendons and their derivatives by the degrees of freedom. A fixed tendon
// adds joint positions up; a spatial one is a string through sites, over pulleys and
// around spheres and cylinders. Source: MuJoCo, Computation, "Actuation model", "Tendon".
#pragma once

// Where the reference point of `tree` is (-1: the world's origin).
template<class R, class M> OSTLER_FN R reference_of(const M& m, const Work<R, M>& w, int tree, int k) {
  return tree < 0 ? bc<R>(0) : w.ref[3 * tree + k];
}

// Position of a spot about the reference of `tree`.
template<class R, class M> OSTLER_FN void spot_point(const M& m, const Work<R, M>& w, int spot, int tree, R* p) {
  const int b = m.spot_body[spot];
  const auto* at = m.spot_pos + 3 * spot;
  if (b < 0) {
    for (int k = 0; k < 3; k++) p[k] = bc<R>(at[k]) - reference_of(m, w, tree, k);
    return;
  }
  for (int k = 0; k < 3; k++) p[k] = w.xpos[3 * b + k];
  if (!is_zero3(at)) {
    R v[3];
    mat_con(w.xmat + 9 * b, at, v);
    for (int k = 0; k < 3; k++) p[k] = p[k] + v[k];
  }
  const int own = m.body_tree[b];
  if (own != tree)
    for (int k = 0; k < 3; k++) p[k] = p[k] + (w.ref[3 * own + k] - reference_of(m, w, tree, k));
}

// Orientation of a spot.
template<class R, class M> OSTLER_FN void spot_turn(const M& m, const Work<R, M>& w, int spot, R* quat) {
  const int b = m.spot_body[spot];
  const auto* c = m.spot_quat + 4 * spot;
  for (int k = 0; k < 4; k++) quat[k] = bc<R>(c[k]);
  if (b >= 0) quat_mul(w.xquat + 4 * b, quat, quat);
}

// A force f at p and a torque (or null) as what the degree of freedom `d` feels; p is
// about the reference of `tree`.
template<class R, class M>
OSTLER_FN R felt(const M& m, const Work<R, M>& w, int d, int tree, const R* p, const R* f, const R* torque) {
  const int own = m.body_tree[m.dof_body[d]];
  R o[3], x[6];
  for (int k = 0; k < 3; k++) {
    o[k] = p[k];
    if (own != tree) o[k] = o[k] - (w.ref[3 * own + k] - reference_of(m, w, tree, k));
    x[3 + k] = f[k];
  }
  cross(o, f, x);
  if (torque)
    for (int k = 0; k < 3; k++) x[k] = x[k] + torque[k];
  return dot6(w.cdof + 6 * d, x);
}

// Unit vector from a to b and their distance.
template<class R> OSTLER_FN R way(const R* a, const R* b, R* dir) {
  for (int k = 0; k < 3; k++) dir[k] = b[k] - a[k];
  return unit_<3>(dir);
}

// A part of a spatial tendon: from `start` to `end`, by way of `meets` and `leaves` in lanes where
// it winds around its geom; its directions at both ends.
template<class R> struct Strand {
  R start[3], end[3], meets[3], leaves[3], from[3], to[3], length;
  typename Lane<R>::Mask winds;
};

// Part s of a spatial tendon, about the reference of `tree`. Of a part without a geom `meets` and
// `leaves` are not written.
template<class R, class M> OSTLER_FN void lay(const M& m, const Work<R, M>& w, int s, int tree, Strand<R>& o) {
  const int* spot = m.seg_spot + 4 * s;
  spot_point(m, w, spot[0], tree, o.start);
  spot_point(m, w, spot[1], tree, o.end);
  o.length = way(o.start, o.end, o.from);
  for (int k = 0; k < 3; k++) o.to[k] = o.from[k];
  o.winds = mask_of<typename Lane<R>::Mask>(false);
  if (m.seg_kind[s] == 0) return;
  R centre[3], quat[4], mat[9], x0[3], x1[3], side[3], v[3], touch[6], along[6], wound;
  spot_point(m, w, spot[2], tree, centre);
  spot_turn(m, w, spot[2], quat);
  quat_mat(quat, mat);
  // Into the geom's frame: by the matrix's columns.
  auto local = [&](const R* p, R* q) OSTLER_INLINE {
    for (int k = 0; k < 3; k++) v[k] = p[k] - centre[k];
    for (int k = 0; k < 3; k++) q[k] = fma(mat[6 + k], v[2], fma(mat[3 + k], v[1], mat[k] * v[0]));
  };
  local(o.start, x0);
  local(o.end, x1);
  if (spot[3] >= 0) {
    R p[3];
    spot_point(m, w, spot[3], tree, p);
    local(p, side);
  }
  o.winds = wrap<R>(x0, x1, spot[3] >= 0 ? side : nullptr, m.seg_radius[s], m.seg_kind[s] == 2, m.seg_inside[s], touch, along, &wound);
  mat_vec(mat, touch, o.meets);
  mat_vec(mat, touch + 3, o.leaves);
  for (int k = 0; k < 3; k++) o.meets[k] = o.meets[k] + centre[k], o.leaves[k] = o.leaves[k] + centre[k];
  R u[3], x[3];
  mat_vec(mat, along, u);
  mat_vec(mat, along + 3, x);
  o.length = sel(o.winds, wound, o.length);
  for (int k = 0; k < 3; k++) o.from[k] = sel(o.winds, u[k], o.from[k]), o.to[k] = sel(o.winds, x[k], o.to[k]);
}

// Adds part s of a spatial tendon to its length and its moment arms J.
template<class R, class M> OSTLER_FN_BIG void tendon_part(const M& m, const Work<R, M>& w, int s, int tree, R* length, R* J) {
  const R share = bc<R>(m.seg_share[s]);
  const bool winds = m.seg_kind[s] != 0;
  Strand<R> o;
  lay(m, w, s, tree, o);
  *length = fma(o.length, share, *length);
  for (int e = m.seg_path[s]; e < m.seg_path[s + 1]; e++) {
    const int dof = m.seg_dof[e], moves = m.seg_moves[e];
    R sum = bc<R>(0);
    if (moves & 1) sum = sum - felt<R>(m, w, dof, tree, o.start, o.from, nullptr);
    if (moves & 2) sum = sum + felt<R>(m, w, dof, tree, o.end, o.to, nullptr);
    if (winds) {
      R wound = sum;
      if (moves & 4) wound = wound + felt<R>(m, w, dof, tree, o.meets, o.from, nullptr) - felt<R>(m, w, dof, tree, o.leaves, o.to, nullptr);
      // A dof that moves both ends and not the geom does not change the length of a straight
      // string.
      if ((moves & 3) == 3 || (moves & 3) == 0) sum = bc<R>(0);
      sum = sel(o.winds, wound, sum);
    }
    R* j = J + m.seg_entry[e];
    *j = fma(sum, share, *j);
  }
}

template<class R, class M> OSTLER_FN_PART void tendons(const M& m, Work<R, M>& w) {
  for (int t = 0; t < m.nten; t++) {
    R len = bc<R>(0);
    R* J = w.ten_j + m.ten_adr[t];
    for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++) {
      w.ten_j[i] = bc<R>(m.ten_coef[i]);
      if (m.ten_qpos[i] >= 0) len = fma(bc<R>(m.ten_coef[i]), w.qpos[m.ten_qpos[i]], len);
    }
    for (int s = m.ten_seg[t]; s < m.ten_seg[t + 1]; s++) tendon_part(m, w, s, m.ten_tree[t], &len, J);
    w.ten_len[t] = len;
  }
}

// Velocity of a spot, and its acceleration at qacc = 0.
template<class R, class M> OSTLER_FN void spot_motion(const M& m, const Work<R, M>& w, int spot, R* vel, R* acc) {
  const int b = m.spot_body[spot];
  for (int k = 0; k < 3; k++) vel[k] = acc[k] = bc<R>(0);
  if (b < 0) return;
  const R* v = w.vel + 6 * b;
  const R* a = w.acc + 6 * b;
  R p[3], down[3];
  spot_point(m, w, spot, m.body_tree[b], p);
  gravity(m, w, down);
  // The base accelerates against gravity in `acc`.
  for (int k = 0; k < 3; k++) vel[k] = v[3 + k], acc[k] = a[3 + k] + down[k];
  cross_add(v, p, vel);
  cross_add(a, p, acc);
  cross_add(v, vel, acc);
}

// What a spatial tendon's velocity gains at qacc = 0, because its moment arms change: (dJ/dt) v.
// Of tendons that do not wind.
template<class R, class M> OSTLER_FN R tendon_drift(const M& m, const Work<R, M>& w, int t) {
  R sum = bc<R>(0);
  for (int s = m.ten_seg[t]; s < m.ten_seg[t + 1]; s++) {
    if (m.seg_path[s] == m.seg_path[s + 1]) continue;
    const int* spot = m.seg_spot + 4 * s;
    R a[3], b[3], dir[3], va[3], vb[3], aa[3], ab[3];
    spot_point(m, w, spot[0], m.ten_tree[t], a);
    spot_point(m, w, spot[1], m.ten_tree[t], b);
    const R apart = way(a, b, dir);
    spot_motion(m, w, spot[0], va, aa);
    spot_motion(m, w, spot[1], vb, ab);
    for (int k = 0; k < 3; k++) vb[k] = vb[k] - va[k], ab[k] = ab[k] - aa[k];
    const R along = dot3(dir, vb);
    for (int k = 0; k < 3; k++) vb[k] = fnma(along, dir[k], vb[k]);
    const auto far = apart > bc<R>(Tiny<R>::value);
    const R turn = sel(far, dot3(vb, vb), bc<R>(0)) / sel(far, apart, bc<R>(1));
    sum = fma(bc<R>(m.seg_share[s]), dot3(dir, ab) + turn, sum);
  }
  return sum;
}

// The force that the inertia of spatial tendons needs for that: armature J' (dJ/dt v). Those with
// inertia do not wind.
template<class R, class M> OSTLER_FN void tendon_bias(const M& m, Work<R, M>& w) {
  for (int t = 0; t < m.nten; t++) {
    if (m.ten_armature[t] == 0 || m.ten_seg[t] == m.ten_seg[t + 1]) continue;
    const R sum = tendon_drift(m, w, t) * bc<R>(m.ten_armature[t]);
    for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++)
      w.smooth[m.ten_dof[i]] = fnma(w.ten_j[i], sum, w.smooth[m.ten_dof[i]]);
  }
}

template<class R, class M> OSTLER_FN R tendon_velocity(const M& m, const Work<R, M>& w, int t) {
  R v = bc<R>(0);
  for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++) v = fma(w.ten_j[i], w.qvel[m.ten_dof[i]], v);
  return v;
}

// The force of a tendon's spring and damper, in the direction in which it grows longer.
template<class R, class M> OSTLER_FN R tendon_passive(const M& m, const Work<R, M>& w, int t) {
  const R len = w.ten_len[t], vel = tendon_velocity(m, w, t);
  const R lo = bc<R>(m.ten_lo[t]), hi = bc<R>(m.ten_hi[t]);
  const R stretch = sel(len > hi, hi - len, sel(len < lo, lo - len, bc<R>(0)));
  return fnma(bc<R>(m.ten_damping[t]), vel, bc<R>(m.ten_stiffness[t]) * stretch);
}
