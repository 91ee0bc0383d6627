// The broad phase: candidate pairs come in groups, those of the same two bodies side by
// side. One test of two spheres, around all colliding geoms of each body, leaves out a
// group where the bodies are apart in all lanes. A static geom has a group with each
// body: a plane and the shared ground by the height of the body's sphere, others by their own
// sphere.
//
// Where static geoms are many, the crowd, each body goes down a tree of boxes around them,
// and their places are computed when it has come near.
//
// Pairs that the ranges of joints keep apart are not looked at, unless a joint is beyond
// its range by more than limits give way mostly.
//
// What is left out has no contact in any lane, so that no bit depends on it.
#pragma once

// Centres of the bodies' spheres, relative to their tree's reference.
template<class R, class M> OSTLER_FN void place_balls(const M& m, Work<R, M>& w) {
  for (int k = 0; k < m.nball; k++) {
    const int b = m.ball_body[k];
    R v[3];
    mat_con(w.xmat + 9 * b, m.ball_pos + 3 * k, v);
    for (int i = 0; i < 3; i++) w.bpos[3 * k + i] = w.xpos[3 * b + i] + v[i];
  }
}

// Whether two moving bodies' positions have the same reference; that reference.
template<class M> OSTLER_FN bool same_tree(const M& m, int b1, int b2) {
  return m.ntree == 1 || m.body_tree[b1] == m.body_tree[b2];
}
template<class R, class M> OSTLER_FN const R* tree_reference(const M& m, const Work<R, M>& w, int b) {
  return m.ntree == 1 ? w.ref : w.ref + 3 * m.body_tree[b];
}

// Place of a geom's centre. Without a sign, an index costs compilers no widening.
template<class R, class M> OSTLER_FN const R* centre_of(const M&, const Work<R, M>& w, int g) {
  return w.gpos + 3ul * (unsigned)g;
}

// Whether a sphere reaches down to the shared ground in any lane; `dif`: from its centre to the
// ground's middle, `reach`: its radius.
template<class R, class M> OSTLER_FN_BIG bool ground_near(const M&, const Work<R, M>& w, const R* dif, R reach) {
  typedef typename Lane<R>::T T;
  if (!w.ground) return false;
  for (int l = 0; l < (int)Lane<R>::N; l++) {
    const T x = -lane_get(dif[0], l), y = -lane_get(dif[1], l), z = -lane_get(dif[2], l), r = lane_get(reach, l);
    // What is no number is near.
    if (!(z - r > ground_roof(*w.ground, x, y, r))) return true;
  }
  return false;
}

// Whether a group's bodies are near each other in any lane.
template<class R, class M> OSTLER_FN bool group_near(const M& m, const Work<R, M>& w, int g) {
  const int first = m.group_ball[2 * g], second = m.group_ball[2 * g + 1];
  if (second < 0) return true;
  const R* p2 = w.bpos + 3 * second;
  const R near = bc<R>(m.group_near[g]);
  R dif[3];
  if (first >= 0) {
    const R* p1 = w.bpos + 3 * first;
    for (int k = 0; k < 3; k++) dif[k] = p1[k] - p2[k];
    const int b1 = m.ball_body[first], b2 = m.ball_body[second];
    if (!same_tree(m, b1, b2)) {
      const R *ref1 = tree_reference(m, w, b1), *ref2 = tree_reference(m, w, b2);
      for (int k = 0; k < 3; k++) dif[k] = dif[k] - (ref2[k] - ref1[k]);
    }
    return any(dot3(dif, dif) < near);
  }
  const int still = m.pair_g1[m.group_adr[g]];
  const R* ref = tree_reference(m, w, m.ball_body[second]);
  for (int k = 0; k < 3; k++) dif[k] = w.gpos[3 * still + k] - ref[k] - p2[k];
  if (m.cg_type[still] == Shape::plane) return any(-dot3(w.gaxis + 3 * still, dif) < near);
  if (m.ngrid > 0 && m.cg_type[still] == Shape::terrain) return ground_near(m, w, dif, near);
  return any(dot3(dif, dif) < near);
}

// Whether a body's sphere is near the box of a node of its tree in any lane.
template<class R, class M> OSTLER_FN bool knot_near(const M& m, const Work<R, M>& w, int knot) {
  const int ball = m.knot_ball[knot];
  const R* ref = tree_reference(m, w, m.ball_body[ball]);
  R away[3];
  for (int k = 0; k < 3; k++) {
    const R at = ref[k] + w.bpos[3 * ball + k];
    away[k] = max_(max_(bc<R>(m.knot_box[6 * knot + k]) - at, at - bc<R>(m.knot_box[6 * knot + 3 + k])), bc<R>(0));
  }
  return any(dot3(away, away) < bc<R>(m.knot_near[knot]));
}

// Whether all watched joints of all lanes are where they keep pairs apart.
template<class R, class M> OSTLER_FN bool watched_within(const M& m, const Work<R, M>& w) {
  auto within = mask_of<typename Lane<R>::Mask>(true);
  for (int i = 0; i < m.nwatch; i++) {
    const R q = w.qpos[m.watch_qpos[i]];
    within = within & (q >= bc<R>(m.watch_lo[i])) & (q <= bc<R>(m.watch_hi[i]));
  }
  return !any(!within);
}

// Whether the pairs of a group are tested by `centres_near` first: both bodies move and
// have one reference.
template<class M> OSTLER_FN bool group_quick(const M& m, int g) {
  const int first = m.group_ball[2 * g], second = m.group_ball[2 * g + 1];
  return first >= 0 && same_tree(m, m.ball_body[first], m.ball_body[second]);
}
// Whether a pair of such a group is worth a look: its spheres, by the numbers that
// collide_candidate goes by.
template<class R, class M> OSTLER_FN bool centres_near(const M& m, const Work<R, M>& w, int c) {
  const R *p1 = centre_of(m, w, m.pair_g1[c]), *p2 = centre_of(m, w, m.pair_g2[c]);
  const R dif[3] = {p1[0] - p2[0], p1[1] - p2[1], p1[2] - p2[2]};
  return any(dot3(dif, dif) < bc<R>(m.pair_near[c]));
}
