// Contact sensors: what a task reads of the contacts between two sets of geoms, summed over
// the physics steps of a control step, or of the last one alone (`csensor_last`).
#pragma once

// Mirrored by sim/model/src/contact_sensor.rs.
//   FORCE   normal forces
//   NET     forces on the first set, friction included, in the world's axes
//   PLACE   places in the world, times their normal forces
//   NORMAL  directions in which the first set is pushed, times the normal forces
//   COUNT   physics steps in which the normal forces are above `csensor_above`
//   HELD    seconds, up to the last physics step, in which there was a contact; over the episode
//   FREE    seconds in which there was none
// A contact is there where MuJoCo has one: it need not press.
enum { CONTACT_FORCE, CONTACT_NET, CONTACT_PLACE, CONTACT_NORMAL, CONTACT_COUNT, CONTACT_HELD, CONTACT_FREE };

OSTLER_FN bool is_contact_time(int kind) { return kind == CONTACT_HELD || kind == CONTACT_FREE; }

// Adds contact `i` of a list, of pair `c`, to the sensors that count it.
template<class R, class M, int D>
OSTLER_FN void sense_contact(Dim<D> dims, const M& m, Work<R, M>& w, bool world, int i, int c, const ConeCost<R>& q) {
  for (int s = 0; s < m.ncsensor; s++) {
    // On which side of the pair the first set is, 0: on neither.
    const int side = m.csensor_side[s * m.npair + c];
    if (side == 0) continue;
    const int kind = m.csensor_kind[s];
    R* out = w.csensed + m.csensor_adr[s];
    if (is_contact_time(kind)) {
      const R there = world ? w.wc_d[i] : w.pc_d[i];
      out[0] = out[0] + sel(there > bc<R>(0), bc<R>(1), bc<R>(0));
      continue;
    }
    const R normal = -q.g[0];
    if (kind == CONTACT_FORCE || kind == CONTACT_COUNT) {
      out[0] = out[0] + normal;
      continue;
    }
    const R* place = world ? w.wc_pos + 3 * i : w.pc_place + 9 * i;
    const R* n = world ? w.wc_frame + 6 * i : w.pc_place + 9 * i + 3;
    if (kind == CONTACT_PLACE) {
      const int t1 = tree_of(m, m.cg_body[m.pair_g1[c]]), t2 = tree_of(m, m.cg_body[m.pair_g2[c]]);
      R at[3] = {place[0], place[1], place[2]};
      from_tree(w, t1 < 0 ? t2 : t1, -1, at);
      for (int j = 0; j < 3; j++) out[j] = fma(normal, at[j], out[j]);
      continue;
    }
    const R sign = bc<R>(side);
    if (kind == CONTACT_NORMAL) {
      for (int j = 0; j < 3; j++) out[j] = fma(sign * normal, n[j], out[j]);
      continue;
    }
    Push<R> push;
    contact_push(dims, m, c, n, q, push);
    for (int j = 0; j < 3; j++) out[j] = fma(sign, push.force[j], out[j]);
  }
}

// Adds a physics step to the control step's readings.
template<class R, class M> OSTLER_FN void add_sensed(const M& m, Work<R, M>& w) {
  const R zero = bc<R>(0), one = bc<R>(1);
  for (int s = 0; s < m.ncsensor; s++) {
    const int kind = m.csensor_kind[s];
    for (int k = m.csensor_adr[s]; k < m.csensor_adr[s + 1]; k++) {
      const R now = w.csensed[k];
      w.csensed[k] = zero;
      if (is_contact_time(kind)) {
        const R longer = w.cread[k] + bc<R>(m.timestep);
        const auto there = now > zero;
        w.cread[k] = kind == CONTACT_HELD ? sel(there, longer, zero) : sel(there, zero, longer);
      } else if (kind == CONTACT_COUNT) {
        w.cread[k] = w.cread[k] + sel(now > bc<R>(m.csensor_above[s]), one, zero);
      } else {
        w.cread[k] = m.csensor_last[s] ? now : w.cread[k] + now;
      }
    }
  }
}

// What a control step of so many physics steps leaves of sensor `s`: sums become means.
template<class R, class M> OSTLER_FN R sensed(const M& m, const Work<R, M>& w, int s, int k, R mean) {
  const int kind = m.csensor_kind[s];
  const bool whole = kind == CONTACT_COUNT || is_contact_time(kind) || m.csensor_last[s];
  return whole ? w.cread[k] : w.cread[k] * mean;
}
