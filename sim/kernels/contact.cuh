// Contacts: from points where geoms touch to frames, stiffnesses and reference
// accelerations. A contact that is present in any lane takes a slot; lanes without it have
// stiffness 0 there.
#pragma once

template<class R, class M> struct Straight;  // hooks.cuh

// MuJoCo's second axis of a contact frame (mju_makeFrame).
template<class R> OSTLER_FN void contact_tangent(const R* n, const R* hint, R* t) {
  const R half = bc<R>(0.5), zero = bc<R>(0), one = bc<R>(1);
  const auto use_y = (n[1] < half) & (n[1] > -half);
  const auto none = dot3(hint, hint) < bc<R>(0.25);
  R y[3] = {sel(none, zero, hint[0]), sel(none, sel(use_y, one, zero), hint[1]),
            sel(none, sel(use_y, zero, one), hint[2])};
  const R along = dot3(n, y);
  for (int k = 0; k < 3; k++) y[k] = fnma(n[k], along, y[k]);
  const R len2 = dot3(y, y);
  const auto flat = len2 < bc<R>(Tiny<R>::value * Tiny<R>::value);
  const R s = recip_(sqrt_(sel(flat, one, len2)));
  for (int k = 0; k < 3; k++) t[k] = sel(flat, k == 0 ? one : zero, y[k] * s);
}

// Contact-space velocity of a point that moves with (angular w, linear u at the point).
template<class R> OSTLER_FN void contact_velocity(const int dim, const R* n, const R* t1, const R* w, const R* u, R* o) {
  o[0] = dot3(n, u);
  if (dim == 1) return;
  R t2[3];
  cross(n, t1, t2);
  o[1] = dot3(t1, u);
  o[2] = dot3(t2, u);
  if (dim == 3) return;
  o[3] = dot3(n, w);
  if (dim == 4) return;
  o[4] = dot3(t1, w);
  o[5] = dot3(t2, w);
}

// Whether a contact's regularisation differs between environments, and what it is there.
template<class R, class M> OSTLER_FN bool contact_varies(const M& m, const Rub<R, M> rub) { return m.nweigh > 0 || rub.own; }
template<class R, class M, int D> OSTLER_FN R contact_diagonal(Dim<D> dims, const M& m, const Work<R, M>& w, const Rub<R, M> rub) {
  const R shift = m.nweigh > 0 ? weights(m, w, m.pair_weight + 2 * rub.c) : bc<R>(m.pair_shift[rub.c]);
  if (m.elliptic || dims.of(m, rub.c) == 1) return shift;
  // All edges of a pyramid share one, that of the elliptic cone.
  R mu[CDIM];
  rub.mus(2, mu);
  const R slide = mu[0] * mu[0];
  return bc<R>(2.0 / m.impratio) * slide * (bc<R>(1) + slide) * shift;
}

// Reference accelerations and stiffness of a contact with velocity v.
template<class R, class M, int D>
OSTLER_FN void contact_soft(Dim<D> dims, const M& m, const Work<R, M>& w, const Rub<R, M> rub, R dist, const R* v, R* d, R* aref) {
  const int c = rub.c;
  const auto* s = m.pair_soft + SOFT * c;
  const R r = dist - bc<R>(s[SOFT_MARGIN]);
  const R imp = impedance(s, r);
  const R hard = contact_varies(m, rub) ? stiffness(imp, contact_diagonal(dims, m, w, rub)) : stiffness(s, imp);
  *d = sel(r < bc<R>(0), hard, bc<R>(0));
  aref[0] = reference(s, imp, r, v[0]);
  if (m.sticky) {
    // It presses as far in as without adhesion, against the pull: see adhesion.cuh.
    const int edges = m.elliptic || dims.of(m, c) == 1 ? 1 : 2 * (dims.of(m, c) - 1);
    aref[0] = aref[0] + bc<R>((double)m.pair_pull[c] / edges) / hard;
  }
  const R b = bc<R>(m.elliptic ? -m.pair_fricb[c] : -s[SOFT_B]);
  for (int k = 1; k < dims.of(m, c); k++) aref[k] = b * v[k];
}

// A contact of body b with the world at p (relative to the tree's reference), kept by
// body.
template<class R, class M>
OSTLER_FN_ONE void add_world_contact(const M& m, Work<R, M>& w, int c, int b, R dist, const R* p, const R* n, const R* hint) {
  const auto present = dist < bc<R>(m.pair_reach[c]);
  if (!any(present)) return;
  if (w.nwc >= m.nwslot) {
    w.overflow = w.overflow | present;
    return;
  }
  const int k = w.nwc++;
  w.wc_pair[k] = c;
  if (m.rubs && m.pair_mix[c]) mixed_friction(m, w, c, w.wc_mu + RUB * k);
  R* frame = w.wc_frame + 6 * k;
  for (int i = 0; i < 3; i++) w.wc_pos[3 * k + i] = p[i], frame[i] = n[i];
  const R* vb = w.vel + 6 * b;
  R u[3] = {vb[3], vb[4], vb[5]};
  cross_add(vb, p, u);
  by_dim<BY_BODY>(m, c, [&](auto dims) OSTLER_INLINE {
    R v[CDIM];
    const int dim = dims.of(m, c);
    if (dim > 1) contact_tangent(n, hint, frame + 3);
    contact_velocity(dim, frame, frame + 3, vb, u, v);
    contact_soft(dims, m, w, rub_of(m, w, true, k, c), dist, v, w.wc_d + k, w.wc_aref + CDIM * k);
  });
  if (m.nstick > 0) w.wc_there[k] = sel(present, bc<R>(1), bc<R>(0));
  // Of a contact that does not push nothing else sets them.
  for (int i = 0; i < CDIM; i++) w.wc_jar[CDIM * k + i] = bc<R>(0);
  w.constrained = w.constrained | (w.wc_d[k] > bc<R>(0));
  w.ncon = w.ncon + sel(present, bc<R>(1), bc<R>(0));
}

// A contact that is kept by its Jacobian, at p (relative to the reference of g1's tree,
// of g2's if g1 is static); `shift` leads from that reference to the one of g2's tree, null:
// they are the same.
template<class R, class M>
OSTLER_FN_ONE void add_pair_contact(const M& m, Work<R, M>& w, int c, R dist, const R* p, const R* shift, const R* n, const R* hint) {
  const auto present = dist < bc<R>(m.pair_reach[c]);
  if (!any(present)) return;
  if (w.npc >= m.npslot) {
    w.overflow = w.overflow | present;
    return;
  }
  const int k = w.npc++;
  w.pc_pair[k] = c;
  if (m.rubs && m.pair_mix[c]) mixed_friction(m, w, c, w.pc_mu + RUB * k);
  R p2[3];
  for (int i = 0; i < 3; i++) p2[i] = shift ? p[i] - shift[i] : p[i];
  const int b1 = m.cg_body[m.pair_g1[c]];
  const int tree1 = m.body_tree[b1 < 0 ? m.cg_body[m.pair_g2[c]] : b1];
  by_dim<BY_JACOBIAN>(m, c, [&](auto dims) OSTLER_INLINE {
    const int dim = dims.of(m, c);
    R t[3], v[CDIM];
    if (dim > 1) contact_tangent(n, hint, t);
    if (m.felt) {
      R* place = w.pc_place + 9 * k;
      for (int i = 0; i < 3; i++) place[i] = p[i], place[3 + i] = n[i], place[6 + i] = dim > 1 ? t[i] : bc<R>(0);
    }
    for (int i = 0; i < dim; i++) v[i] = bc<R>(0);
    R* J = w.pc_j + (unsigned long)m.npdim * m.npath * k;
    for (int e = m.pair_path[c]; e < m.pair_path[c + 1]; e++, J += dim) {
      const int d = m.path_dof[e];
      const R* s = w.cdof + 6 * d;
      R u[3] = {s[3], s[4], s[5]};
      cross_add(s, m.body_tree[m.dof_body[d]] == tree1 ? p : p2, u);
      contact_velocity(dim, n, t, s, u, J);
      if (m.path_sign[e] < 0)
        for (int i = 0; i < dim; i++) J[i] = -J[i];
      for (int i = 0; i < dim; i++) v[i] = fma(J[i], w.qvel[d], v[i]);
    }
    contact_soft(dims, m, w, rub_of(m, w, false, k, c), dist, v, w.pc_d + k, w.pc_aref + CDIM * k);
  });
  if (m.nstick > 0) w.pc_there[k] = sel(present, bc<R>(1), bc<R>(0));
  for (int i = 0; i < CDIM; i++) w.pc_jar[CDIM * k + i] = bc<R>(0);
  w.constrained = w.constrained | (w.pc_d[k] > bc<R>(0));
  w.ncon = w.ncon + sel(present, bc<R>(1), bc<R>(0));
}

// Axes in the world of a frame that has axes `a` in moving body b (-1: in the world).
template<class R, class M, class T> OSTLER_FN void fixed_axes(const Work<R, M>& w, int b, const T* a, R* o) {
  for (int j = 0; j < 3; j++) {
    const double column[3] = {a[j], a[3 + j], a[6 + j]};
    R v[3];
    if (b < 0)
      for (int k = 0; k < 3; k++) v[k] = bc<R>(column[k]);
    else
      mat_con(w.xmat + 9 * b, column, v);
    for (int k = 0; k < 3; k++) o[3 * k + j] = v[k];
  }
}
template<class R, class M> OSTLER_FN void geom_matrix(const M& m, const Work<R, M>& w, int g, R* o) {
  fixed_axes(w, m.cg_body[g], m.cg_mat + 9 * g, o);
}
// The same once place_geoms is done.
template<class R, class M> OSTLER_FN void geom_axes(const M& m, const Work<R, M>& w, int g, R* o) {
  if (m.cg_brick[g] < 0) return geom_matrix(m, w, g, o);
  for (int k = 0; k < 9; k++) o[k] = w.gmat[9 * m.cg_brick[g] + k];
}

// The centre of geom g, relative to its tree's reference (moving) or in the world (static),
// and its third axis or all of them.
template<class R, class M> OSTLER_FN void place_geom(const M& m, Work<R, M>& w, int g) {
  const int b = m.cg_body[g];
  R* o = w.gpos + 3 * g;
  R* axis = w.gaxis + 3 * g;
  const auto* a = m.cg_mat + 9 * g;
  const decltype(a[0] + 0) z[3] = {a[2], a[5], a[8]};
  if (m.cg_brick[g] >= 0) geom_matrix(m, w, g, w.gmat + 9 * m.cg_brick[g]);
  if (b < 0) {
    for (int k = 0; k < 3; k++) o[k] = bc<R>(m.cg_pos[3 * g + k]), axis[k] = bc<R>(z[k]);
    return;
  }
  for (int k = 0; k < 3; k++) o[k] = w.xpos[3 * b + k];
  if (!is_zero3(m.cg_pos + 3 * g)) {
    R v[3];
    mat_con(w.xmat + 9 * b, m.cg_pos + 3 * g, v);
    for (int k = 0; k < 3; k++) o[k] = o[k] + v[k];
  }
  if (m.cg_brick[g] < 0) mat_con(w.xmat + 9 * b, z, axis);
}
// Those that can collide, but the crowd: see collide/broad.cuh.
template<class R, class M> OSTLER_FN_PART void place_geoms(const M& m, Work<R, M>& w) {
  for (int g = 0; g < m.ncg; g++)
    if (m.ncrowd == 0 || m.cg_body[g] >= 0 || Shape::surface(m.cg_type[g]) <= Shape::Grid) place_geom(m, w, g);
  place_balls(m, w);
}
