// The working memory of one block of environments.
//
// A specialised kernel has every array at its size; the generic kernel gets its
// arrays from one allocation laid out at start (`work_bytes`, `work_bind`).
#pragma once

// Sizes as template constants; -1 where they are known at run time only.
template<class M> struct Sizes {
  enum { fixed = 1 };
#define X(name, says) static constexpr int name = M::name;
  OSTLER_COUNTS(X)
#undef X
};
template<class T> struct Sizes<Tables<T>> { enum { fixed = 0 }; };

// Stored contact directions: normal, two tangents, torsion, two rolling.
enum { CDIM = 6 };

// A contact's own friction: coefficients of sliding, torsion and rolling; the latter two's D over
// the normal's (elliptic); sliding as the elliptic cone has it, its square, 1 / (its square (1 + it)).
enum { RUB_SLIDE, RUB_TWIST, RUB_ROLL, RUB_TWIST_D, RUB_ROLL_D, RUB_CONE, RUB_CONE2, RUB_SHARP, RUB };

// Whether directions that hold meshes apart are kept between steps: memory that a GPU's threads,
// each with its own, do not have.
#ifdef __CUDACC__
#define OSTLER_KEEPS_AXES 0
#else
#define OSTLER_KEEPS_AXES 1
#endif

// Arrays of R. N(count) is a count of the tables.
#define OSTLER_WORK(X) \
  X(qpos, N(nq)) X(qvel, N(nv)) X(act, N(na)) X(ctrl, N(nu)) \
  X(qacc, N(nv))          /* acceleration; the warm start before */ \
  X(ref, 3 * N(ntree))    /* each tree's reference point in the world */ \
  X(xpos, 3 * N(nb))      /* bodies' origins relative to their tree's reference */ \
  X(xquat, 4 * N(nb)) X(xmat, 9 * N(nb)) \
  X(cdof, 6 * N(nv))      /* motion axes (angular, linear) about the reference */ \
  X(inertia, 10 * N(nb))  /* composite spatial inertias */ \
  X(vel, 6 * N(nb)) X(acc, 6 * N(nb)) X(frc, 6 * N(nb)) \
  X(mass, N(nhess))       /* mass matrix, packed lower triangle */ \
  X(smooth, N(nv))        /* generalised forces but the constraints' */ \
  X(ten_len, N(nten)) X(ten_j, N(ntenj)) /* lengths of tendons, their derivatives */ \
  X(act_len, N(nu)) X(act_vel, N(nu)) X(act_j, N(nactj)) /* of actuators; 0 where nothing reads them */ \
  X(act_force, N(nu)) X(act_dot, N(na)) \
  X(act_sum, N(nstick) > 0 ? N(nv) : 0) /* of the actuators but those that need contacts, before limits */ \
  X(act_free, N(nheld))   /* 0 where the joint's or tendon's limit on its actuators is reached, else 1 */ \
  X(hess, N(nhess)) X(grad, N(nv)) X(step, N(nv)) X(mstep, N(nv)) \
  X(wrench, N(nwslot) > 0 ? 6 * N(nb) : 0) X(stiff, N(nwslot) > 0 ? 21 * N(nb) : 0) /* contact force and contact inertia per body */ \
  X(tmp, N(nwslot) > 0 ? 6 * N(nb) : 0) \
  X(lim_sign, N(nlim)) X(lim_d, N(nlim)) X(lim_aref, N(nlim)) X(lim_jar, N(nlim)) X(lim_js, N(nlim)) \
  X(fric_aref, N(nfric)) X(fric_jar, N(nfric)) X(fric_js, N(nfric)) \
  X(row_j, N(nrowj)) X(row_d, N(nrow)) X(row_aref, N(nrow)) X(row_jar, N(nrow)) X(row_js, N(nrow)) \
  X(gpos, 3 * N(ncg)) X(gaxis, 3 * N(ncg)) /* geoms' centres, as xpos (static: in the world), and third axes */ \
  X(gmat, 9 * N(nbrick)) X(bpos, 3 * N(nball)) /* all axes, as columns; centres of the bodies' spheres, as xpos */ \
  X(pair_axis, OSTLER_KEEPS_AXES && N(nhull) > 0 ? 3 * N(npair) : 0) /* see hulls_near */ \
  X(wc_pos, 3 * N(nwslot)) X(wc_frame, 6 * N(nwslot)) /* normal, first tangent */ \
  X(wc_d, N(nwslot)) X(wc_aref, CDIM * N(nwslot)) X(wc_jar, CDIM * N(nwslot)) X(wc_js, CDIM * N(nwslot)) \
  X(pc_j, N(npdim) * N(npath) * N(npslot)) /* per contact: by degree of freedom, then by direction */ \
  X(pc_d, N(npslot)) X(pc_aref, CDIM * N(npslot)) X(pc_jar, CDIM * N(npslot)) X(pc_js, CDIM * N(npslot)) \
  X(wc_mu, N(rubs) ? RUB * N(nwslot) : 0) X(pc_mu, N(rubs) ? RUB * N(npslot) : 0) /* own friction of contacts */ \
  X(vary, N(nvary) + N(nderive)) /* see vary.cuh */ \
  X(geom_force, N(ngeom)) \
  X(target, N(nmotor) > 0 ? N(nu) : 0) X(memory, N(nmemory)) X(redrawn, N(nredrawn)) X(net_a, N(nwide)) X(net_b, N(nwide)) /* see motor.cuh */ \
  X(sense, N(nsense)) /* what the meters read */ \
  X(csensed, N(ncread)) X(cread, N(ncread)) /* what contact sensors read in this physics step, and in all of the control step */ \
  X(meter_frame, 12 * N(nmeter)) /* their places, as xpos (static: in the world), and axes */ \
  X(body_acc, N(nmeter) > 0 ? 6 * N(nb) : 0) \
  X(wc_there, N(nstick) > 0 ? N(nwslot) : 0) X(pc_there, N(nstick) > 0 ? N(npslot) : 0) /* 1 in lanes that have the contact */ \
  X(slip_f, N(nslip) > 0 ? N(nfric) + N(nrow) + N(nsdir) * (N(nwslot) + N(npslot)) : 0) /* see noslip.cuh: friction, */ \
  X(slip_b, N(nslip) > 0 ? N(nv) * (N(nfric) + N(nrow) + N(nsdir) * (N(nwslot) + N(npslot))) : 0) /* M^-1 J' of its rows, */ \
  X(slip_j, N(nslip) > 0 ? N(nv) * N(nsdir) * (N(nwslot) + N(npslot)) : 0) /* J of contacts, */ \
  X(slip_a, N(nslip) > 0 ? N(nfric) + N(nrow) + N(nsdir) * (N(nsdir) + 1) / 2 * (N(nwslot) + N(npslot)) : 0) /* J M^-1 J', */ \
  X(slip_n, N(nslip) > 0 ? N(nwslot) + N(npslot) : 0) /* normal forces, */ \
  X(slip_most, N(nslip) > 0 ? N(nsdir) * (N(nwslot) + N(npslot)) : 0) /* most friction of a pyramid's directions */ \
  X(pc_place, N(felt) > 0 ? 9 * N(npslot) : 0) /* as wc_pos, wc_frame */ \
  X(wet, N(slopes) > 0 && N(nfluid) + N(nell) > 0 ? 36 * N(nb) : 0) /* see fluid_slopes */ \
  X(upper, N(slopes) == 2 ? N(nhess) : 0) X(axis_dot, N(slopes) == 2 ? 6 * N(nv) : 0) X(spin, N(slopes) == 2 ? 12 * N(nb) : 0) \
  X(rk_q, N(integrator) == 1 ? N(nq) + N(na) : 0) X(rk_v, N(integrator) == 1 ? N(nv) : 0) \
  X(rk_rate, N(integrator) == 1 ? N(nv) : 0) X(rk_dv, N(integrator) == 1 ? N(nv) : 0) X(rk_da, N(integrator) == 1 ? N(nv) + N(na) : 0)

// Arrays of int, alike in all lanes.
#define OSTLER_WORK_INT(X) \
  X(wc_pair, N(nwslot)) X(pc_pair, N(npslot)) \
  X(wc_on, N(nwslot)) X(pc_on, N(npslot)) X(lim_on, N(nlim)) /* contacts and limits that the solve still needs */ \
  X(wc_mark, N(nwslot)) X(pc_mark, N(npslot)) /* of those contacts: those that push, or of lanes that search for the length of their step */ \
  X(slip_on, N(nslip) > 0 ? N(nwslot) + N(npslot) : 0) \
  X(has_load, N(nb))      /* bodies with a contact somewhere in their subtree: LOAD_* of tree.cuh */ \
  X(pat_adr, N(npslot) > 0 ? N(nv) + 1 : 0) X(pat_col, N(npslot) > 0 ? N(nhess) : 0)

template<class R, class M, int Fixed = Sizes<M>::fixed> struct Work;

struct Ground;  // collide/ground.cuh

template<class R> struct WorkScalars {
  const Ground* ground;               // of all environments; null: there is none
  typename Lane<R>::Mask constrained; // lanes with a constraint that may act
  typename Lane<R>::Mask overflow;    // lanes that lost a contact
  typename Lane<R>::Mask unsolved;    // lanes whose last solve stopped at the iteration cap
  int nwc, npc;                       // contacts present in any lane
  int nwon, npon, nlon;               // listed in wc_on, pc_on, lim_on
  int nwmark, npmark;                 // in wc_mark, pc_mark
  R lane_iterations;                  // Newton iterations of the last solve
  R ncon;                             // contacts of the last state per lane
};

template<class R, class M> struct Work<R, M, 0> : WorkScalars<R> {
#define X(name, n) R* name;
  OSTLER_WORK(X)
#undef X
#define X(name, n) int* name;
  OSTLER_WORK_INT(X)
#undef X
};

template<class R, class M> struct Work<R, M, 1> : WorkScalars<R> {
#define N(count) Sizes<M>::count
#define X(name, n) R name[(n) > 0 ? (n) : 1];
  OSTLER_WORK(X)
#undef X
#define X(name, n) int name[(n) > 0 ? (n) : 1];
  OSTLER_WORK_INT(X)
#undef X
#undef N
};

#ifndef __CUDACC__
// Bytes that `work_bind` needs.
template<class R, class M> inline unsigned long work_bytes(const M& m) {
#define N(count) (unsigned long)m.count
  unsigned long reals = 0, ints = 0;
#define X(name, n) reals += n;
  OSTLER_WORK(X)
#undef X
#define X(name, n) ints += ((n) + 15) / 16 * 16;
  OSTLER_WORK_INT(X)
#undef X
#undef N
  return reals * sizeof(R) + ints * sizeof(int) + 64;
}
// Points the arrays into `memory`, which is aligned to 64 bytes and zeroed.
template<class R, class M> inline void work_bind(const M& m, Work<R, M, 0>& w, void* memory) {
#define N(count) (unsigned long)m.count
  R* r = (R*)memory;
#define X(name, n) w.name = r, r += n;
  OSTLER_WORK(X)
#undef X
  int* i = (int*)(((unsigned long)r + 63) & ~63ul);
#define X(name, n) w.name = i, i += ((n) + 15) / 16 * 16;
  OSTLER_WORK_INT(X)
#undef X
#undef N
}
#endif

// Index of row i, column j <= i in a packed lower triangle.
OSTLER_FN int tri(int i) { return i * (i + 1) / 2; }
