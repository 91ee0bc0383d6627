// The tables of a robot that a kernel reads.
//
// The lists below are the one place where the tables' names and order are fixed, for Rust as
// well (sim/build/columns.rs). X(name, says)
// A model type M is either `Tables<T>` (the generic kernel: pointers, filled at run
// time) or a generated struct with static constexpr members of the same names (the
// specialised kernel). Code reads both as `m.body_parent[b]`.
//
// Conventions: bodies here are MOVING bodies (static ones are merged into what
// they are welded to), parents first, body -1 is the world. Everything is SI,
// quaternions are (w, x, y, z), matrices row-major. Triples and more are flat:
// body_pos[3*b+k].
#pragma once

// Numbers of things.
#define OSTLER_COUNTS(X) \
  X(nq, "positions") \
  X(nv, "degrees of freedom") \
  X(nu, "actuators") \
  X(na, "activations") \
  X(nb, "moving bodies") \
  X(nj, "joints") \
  X(ntree, "kinematic trees") \
  X(nframe, "bodies of the model, the world included: frames that are reported") \
  X(ngeom, "geoms of the model: for contact forces") \
  X(nhess, "entries of the packed lower triangle that the Hessian may fill without pair contacts") \
  X(nlim, "limits of hinge and slide joints") \
  X(nfric, "degrees of freedom with dry friction") \
  X(nrow, "general constraint rows (equality, tendons, ball limits)") \
  X(nitem, "things that make general rows") \
  X(nrowj, "stored Jacobian entries of general rows") \
  X(ncg, "geoms that can collide") \
  X(ngrid, "those of them that are height fields or the ground") \
  X(nhull, "those of them that are meshes") \
  X(nwpair, "candidate pairs whose contacts are kept by body: with the world, if on long paths or many to a pair") \
  X(npair, "all candidate pairs; those whose contacts have a Jacobian follow the nwpair") \
  X(ngroup, "runs of candidate pairs of the same two bodies: see collide/broad.cuh") \
  X(ncrowd, "the first of them: of static geoms that a tree of boxes finds") \
  X(nknot, "nodes of that tree") \
  X(nwatch, "joints whose ranges keep pairs apart") \
  X(nball, "moving bodies with a sphere around their geoms") \
  X(nbrick, "geoms of which all three axes are kept") \
  X(nwslot, "most contacts of the former at once") \
  X(npslot, "most contacts of the latter at once") \
  X(npdim, "most directions that one of the latter has") \
  X(npath, "most degrees of freedom that move one of the latter") \
  X(nten, "tendons") \
  X(ntenj, "moment arms of all tendons") \
  X(nactj, "moment arms of all actuators") \
  X(nshare, "tendons that limit the sum of their actuators' forces") \
  X(nstick, "actuators that pull a body to what it touches") \
  X(sticky, "1: some contacts pull by themselves") \
  X(nslip, "most sweeps of the no-slip solver, 0: there is none") \
  X(nstop, "1: the solver stops after some iterations, as MuJoCo's, 0: at the solution") \
  X(nsdir, "most directions of friction that a contact has") \
  X(nheld, "actuators whose joint or tendon may hold their derivatives back, 0 none") \
  X(nfluid, "bodies that feel the medium as boxes") \
  X(nell, "geoms that feel the medium as ellipsoids") \
  X(ngrav, "bodies whose weight is compensated") \
  X(nmeter, "sensors of accelerations and forces") \
  X(nsense, "numbers that these read") \
  X(nstrung, "pairs of a force or torque sensor and a part of a spatial tendon that pulls at what it holds") \
  X(felt, "1: some of them, or contact sensors, feel contacts of which only Jacobians would be kept") \
  X(ncsensor, "contact sensors of the task: see contact_sensor.cuh") \
  X(ncread, "numbers that these read") \
  X(nvary, "numbers of the model that differ between environments: see vary.cuh") \
  X(nderive, "numbers that follow from them") \
  X(nlump, "moving bodies whose inertia follows from them") \
  X(npiece, "bodies of the model that these are made of and that vary") \
  X(nweigh, "inverse weights that follow from them: all that constraints use, or none") \
  X(nforced, "bodies that outside forces act on") \
  X(nmotor, "actuators with laws of their own: see motor.cuh") \
  X(nmemory, "numbers that these remember from step to step") \
  X(nredrawn, "delays of motors that are drawn anew between physics steps") \
  X(nwide, "most inputs or outputs of a layer of their networks") \
  X(gravity_at, "1 + where `vary` has gravity, 0: it is constant") \
  X(rubs, "1: the friction of some contacts varies") \
  X(integrator, "0 Euler, 1 RK4, 2 implicitfast, 3 implicit") \
  X(slopes, "the matrix of a time step has, besides mass and damping: 1 what is symmetric (a medium's), 2 what is not") \
  X(planar, "1 + axis: all joints move in the plane normal to this axis of the world, and all bodies' frames keep it; 0: in space") \
  X(elliptic, "1: elliptic cones, 0: pyramidal") \
  X(dense, "1: contacts couple degrees of freedom of different branches") \
  X(eulerdamp, "1: Euler treats joint damping implicitly")

// Single numbers.
#define OSTLER_SCALARS(X) \
  X(timestep, "of physics (s)") \
  X(gravity_x, "(m/s^2)") \
  X(gravity_y, "the same") \
  X(gravity_z, "the same") \
  X(density, "the medium's (kg/m^3)") \
  X(viscosity, "the medium's (Pa s)") \
  X(wind_x, "the medium's velocity (m/s)") \
  X(wind_y, "the same") \
  X(wind_z, "the same") \
  X(scale, "1 / (mean inertia * nv): the solver's scale of costs") \
  X(slip_tolerance, "scaled fall of the cost below which the no-slip solver ends") \
  X(impratio, "stiffness of friction against that of normals") \
  X(impratio_root, "1 / its square root")

// Arrays of integers.
#define OSTLER_INTS(X) \
  X(body_parent, "[nb] -1: the world") \
  X(body_tree, "[nb]") \
  X(body_jnt, "[nb+1] first joint") \
  X(body_dof, "[nb+1] first degree of freedom") \
  X(body_skew, "[nb] 1: its rows of the step's matrix are not symmetric, see implicit.cuh") \
  X(tree_root, "[ntree] its first body") \
  X(jnt_type, "[nj] 0 free, 1 ball, 2 slide, 3 hinge") \
  X(jnt_body, "[nj]") \
  X(jnt_qpos, "[nj] first position") \
  X(jnt_dof, "[nj] first velocity") \
  X(dof_body, "[nv]") \
  X(dof_jnt, "[nv]") \
  X(dof_parent, "[nv] -1: none") \
  X(dof_nanc, "[nv] entries of row i of the mass matrix, itself included") \
  X(hrow_adr, "[nv+1] row i of the Hessian's static pattern, columns j < i ascending, in hrow_col") \
  X(hrow_col, "columns of the rows") \
  X(mrow_adr, "[nv+1] row i of the mass matrix: columns j < i ascending, in mrow_col") \
  X(mrow_col, "columns of the rows") \
  X(frame_body, "[nframe] moving body that carries the frame, -1 static") \
  X(lim_qpos, "[nlim]") \
  X(lim_dof, "[nlim]") \
  X(fric_dof, "[nfric]") \
  X(row_kind, "[nrow] 0 equality, 1 dry friction, 2 limit") \
  X(row_adr, "[nrow+1] first stored Jacobian entry") \
  X(row_dof, "[nrowj] degree of freedom of each entry, ascending within a row") \
  X(item_kind, "[nitem] 0 joint equality, 1 tendon equality, 2 connect, 3 weld, 4 tendon limit, 5 tendon friction, 6 ball limit") \
  X(item_row, "[nitem] first row") \
  X(item_int, "[4*nitem] what the kind needs: see rows.cuh") \
  X(item_path, "[2*nitem+1] ranges in ipath: dofs that move body 1, body 2 of connect and weld") \
  X(ipath_entry, "which Jacobian entry of the row (offset within the row)") \
  X(ipath_dof, "degree of freedom") \
  X(cg_type, "[ncg] collide/shapes.h") \
  X(cg_body, "[ncg] moving body, -1 static") \
  X(cg_geom, "[ncg] the model's geom") \
  X(cg_data, "[ncg] mesh or height field, else -1") \
  X(cg_brick, "[ncg] place among those with three axes, -1: the third is enough") \
  X(group_adr, "[ngroup+1] ranges of pairs") \
  X(group_live, "[ngroup] end of those of its pairs that the ranges of the watched joints do not keep apart") \
  X(group_ball, "[2*ngroup] sphere of the first body, -1 a static geom; of the second; both -1: no test") \
  X(knot_ball, "[nknot] sphere that is looked for") \
  X(knot_end, "[nknot] the node to go on with where it is far from the box") \
  X(knot_group, "[nknot] a group, -1: nodes of smaller boxes follow") \
  X(watch_qpos, "[nwatch]") \
  X(ball_body, "[nball]") \
  X(pair_kind, "[npair] which narrow phase: pair_kind of collide/solid.cuh") \
  X(pair_g1, "[npair] in cg_*; the static geom if there is one") \
  X(pair_g2, "[npair]") \
  X(pair_flip, "[npair] 1: g1 and g2 are in the reverse of MuJoCo's order") \
  X(pair_dim, "[npair] 1, 3, 4, 6") \
  X(pair_rank, "[npair] its place in MuJoCo's order") \
  X(pair_hits, "[npair] most contacts it makes") \
  X(pair_path, "[npair+1] range in path_*; empty for the first nwpair") \
  X(path_dof, "ascending within a pair") \
  X(path_sign, "+1 moves body of g2, -1 moves body of g1") \
  X(spot_body, "[nspot] moving body that carries a frame that tendons and actuators use, -1 static") \
  X(ten_adr, "[nten+1] moment arms of each tendon") \
  X(ten_qpos, "[ntenj] entry's position, -1 of spatial tendons") \
  X(ten_dof, "[ntenj] ascending within a tendon") \
  X(ten_tree, "[nten] tree about whose reference a spatial tendon is computed, -1 none") \
  X(ten_seg, "[nten+1] straight and wrapping parts of spatial tendons") \
  X(seg_spot, "[4*nseg] from, to, wrapping geom, side site; -1 none") \
  X(seg_kind, "[nseg] 0 straight, 1 sphere, 2 cylinder") \
  X(seg_inside, "[nseg] 0 wraps outside, 1 inside, 2 as the side site lies") \
  X(seg_path, "[nseg+1] ranges in seg_entry, seg_dof, seg_moves") \
  X(seg_entry, "offset within the tendon's moment arms") \
  X(seg_dof, "degree of freedom") \
  X(seg_moves, "sum of 1 moves the start, 2 the end, 4 the geom") \
  X(act_adr, "[nu+1] moment arms of each actuator") \
  X(act_qpos, "[nactj] entry's position, -1: does not lengthen the actuator") \
  X(act_dof, "[nactj]") \
  X(act_moves, "[nactj] sum of 1 moves the first frame, 2 the second") \
  X(act_arms, "[nu] 0 constant, 1 tendon, 2 ball, 3 free, 4 site, 5 slider-crank, 6 body: see actuator.cuh") \
  X(act_int, "[4*nu] what the kind of arms needs: see actuator.cuh; of a joint alone: 1 + its dof") \
  X(act_dyn, "[nu] 0 none, 1 integrator, 2 filter, 3 filterexact, 4 muscle, 5 a motor's current") \
  X(act_state, "[nu] index in act, -1 none") \
  X(act_muscle, "[nu] sum of 1 muscle gain, 2 muscle bias") \
  X(stick_act, "[nstick] the actuator") \
  X(stick_geom, "[nstick*ncg] 1: the actuator pulls at contacts of this geom") \
  X(share_adr, "[nshare+1] ranges in share_act") \
  X(share_act, "actuators") \
  X(act_early, "[nu]") \
  X(fluid_body, "[nfluid]") \
  X(ell_body, "[nell]") \
  X(grav_body, "[ngrav]") \
  X(meter_kind, "[nmeter] 0 accelerometer, 1 linear, 2 angular acceleration, 3 force, 4 torque, 5 touch") \
  X(meter_body, "[nmeter] moving body that carries the sensor's frame, -1 static") \
  X(meter_adr, "[nmeter] first number it reads") \
  X(meter_shape, "[nmeter] volume of a touch sensor, as cg_type") \
  X(meter_geom, "[nmeter*ncg] 1: a contact of this geom counts") \
  X(meter_item, "[2*nmeter*nitem] 1: what holds body 1, body 2 of this connect or weld counts") \
  X(meter_seg, "[nmeter*nseg] sum of 1, 2, 4 where the pull at the start, at the end, at the geom of this part counts; 0 where all three do") \
  X(part_adr, "[nmeter+1] ranges in part_*: what a force holds, by moving body") \
  X(part_body, "-1 static") \
  X(csensor_kind, "[ncsensor] CONTACT_*") \
  X(csensor_adr, "[ncsensor+1] its first number") \
  X(csensor_last, "[ncsensor] 1: of the last physics step, 0: over all of the control step") \
  X(csensor_side, "[ncsensor*npair] 1: the pair's second geom is of the first set and its first one of the second, -1: the other way round, 0: it does not count") \
  X(dof_grav, "[nv] who compensates weight: 0 a passive force, 1 the actuators, within their range, 2 nobody") \
  X(mesh_vert, "[nmesh+1] ranges in mesh_pos (vertices of the convex hull)") \
  X(mesh_face, "[nmesh+1] ranges in face_*: faces of the hull, coplanar triangles merged") \
  X(face_adr, "[nfaces] first corner in face_vert") \
  X(face_num, "[nfaces] corners") \
  X(face_vert, "vertices within the mesh, counter-clockwise from outside") \
  X(vert_adr, "[nvertices] first in vert_face") \
  X(vert_num, "[nvertices] faces that meet in a vertex") \
  X(vert_face, "faces within the mesh") \
  X(mesh_core, "[nmesh+1] ranges in core_pos") \
  X(mesh_graph, "[nmesh] vertices in its graph: all, or 0, where all are searched") \
  X(mesh_seed, "[27*nmesh] vertex farthest along each direction of {-1, 0, 1}^3, of a mesh with a graph") \
  X(vert_own, "[nvertices] number within the mesh") \
  X(vert_link, "[nvertices] first in vert_next") \
  X(vert_next, "neighbours within the mesh, of each vertex, and -1") \
  X(field_adr, "[nfield+1] ranges in field_data") \
  X(field_rows, "[nfield]") \
  X(field_cols, "[nfield]") \
  X(vary_body, "[nb] where `vary` has mass, mcom and inertia, -1 constant; the others of these likewise") \
  X(vary_qpos0, "[nq]") \
  X(vary_stiffness, "[nj]") \
  X(vary_damping, "[nv]") \
  X(vary_armature, "[nv]") \
  X(vary_loss, "[nfric]") \
  X(vary_kp, "[nu]") \
  X(vary_kd, "[nu]") \
  X(vary_gain, "[nu] of actuators that are no servos") \
  X(vary_effort, "[nu] most force, either way") \
  X(vary_friction, "[ncg] its three coefficients") \
  X(lim_weight, "[nlim] inverse weight of a limit") \
  X(fric_weight, "[nfric]") \
  X(row_weight, "[2*nrow] its inverse weights, to be added; -1 none") \
  X(pair_weight, "[2*npair] of g1's and g2's body, -1 static") \
  X(pair_mix, "[npair] friction: 0 the table's, 1 g1's, 2 g2's, 3 the larger of both") \
  X(lump_body, "[nlump] moving body") \
  X(piece_lump, "[npiece] the lump that it is in") \
  X(piece_mass, "[npiece] where `vary` has its mass, -1 constant") \
  X(piece_com, "[npiece] centre of mass") \
  X(piece_moments, "[npiece] principal moments") \
  X(piece_tensor, "[npiece] inertia about its centre of mass, xx yy zz xy xz yz") \
  X(weigh_kind, "[nweigh] 0 shift, 1 turn of a body, 2 degrees of freedom, 3 tendon, 4 one over a mass") \
  X(weigh_what, "[nweigh] moving body, first degree of freedom, tendon or lump") \
  X(weigh_count, "[nweigh] degrees of freedom over which the mean is taken") \
  X(weigh_piece, "[nweigh] the piece whose centre of mass is shifted, -1: weigh_pos") \
  X(forced_body, "[nforced] moving body") \
  X(forced_at, "[nforced] where `vary` has force and torque") \
  X(forced_piece, "[nforced] the piece at whose centre of mass the force acts, -1: forced_pos") \
  X(motor_int, "[MOTOR_INT*nmotor] see motor.cuh; the others likewise") \
  X(net_int, "[NET_INT*nnet] networks of motors") \
  X(net_seen, "steps back that a network sees") \
  X(layer_int, "[LAYER_INT*nlayer]")

// Arrays of real numbers.
#define OSTLER_REALS(X) \
  X(qpos0, "[nq]") \
  X(qpos_spring, "[nq]") \
  X(body_pos, "[3*nb] in the parent's frame") \
  X(body_quat, "[4*nb]") \
  X(body_mass, "[nb]") \
  X(body_mcom, "[3*nb] mass times centre of mass, body frame") \
  X(body_inertia, "[6*nb] about the body's origin, body frame: xx yy zz xy xz yz") \
  X(jnt_pos, "[3*nj]") \
  X(jnt_axis, "[3*nj]") \
  X(jnt_stiffness, "[nj]") \
  X(dof_damping, "[nv]") \
  X(dof_armature, "[nv]") \
  X(dof_actlo, "[nv] range of the actuators' sum, -1e30 unlimited") \
  X(dof_acthi, "[nv] its end") \
  X(frame_pos, "[3*nframe] in the moving body's frame (or the world's)") \
  X(frame_quat, "[4*nframe]") \
  X(lim_lo, "[nlim]") \
  X(lim_hi, "[nlim]") \
  X(lim_soft, "[SOFT*nlim]") \
  X(fric_loss, "[nfric]") \
  X(fric_soft, "[SOFT*nfric]") \
  X(row_loss, "[nrow] dry friction of kind 1") \
  X(row_soft, "[SOFT*nrow]") \
  X(item_real, "[16*nitem] what the kind needs: see rows.cuh") \
  X(cg_pos, "[3*ncg] in the moving body's frame (or the world's)") \
  X(cg_mat, "[9*ncg]") \
  X(cg_size, "[3*ncg] MuJoCo's") \
  X(cg_bound, "[ncg] radius of the bounding sphere, 0 for planes") \
  X(cg_half, "[3*ncg] half sizes of a box about its centre, along its axes, that holds it") \
  X(group_near, "[ngroup] as pair_near, of the spheres' centres") \
  X(knot_box, "[6*nknot] least and greatest corner in the world of what is in it") \
  X(knot_near, "[nknot] squared distance of the sphere's centre from the box, at which nothing is touched") \
  X(watch_lo, "[nwatch] its range, and what it was taken to be larger") \
  X(watch_hi, "[nwatch] its end") \
  X(ball_pos, "[3*nball] in the moving body's frame") \
  X(pair_soft, "[SOFT*npair] normal direction") \
  X(pair_fricb, "[npair] damping B of elliptic friction directions") \
  X(pair_mu, "[5*npair]") \
  X(pair_dfri, "[5*npair] D of friction direction k over D of the normal (elliptic)") \
  X(pair_cone, "[3*npair] sliding friction as the elliptic cone has it, mu / sqrt(impratio); its square; 1 / (its square (1 + it))") \
  X(pair_pull, "[npair] adhesive force of a contact (N)") \
  X(pair_reach, "[npair] margin + gap: contacts exist (without force) within it") \
  X(pair_near, "[npair] contacts need centres nearer than this: g2's height above a plane g1, else the squared distance") \
  X(spot_pos, "[3*nspot] in the moving body's frame (or the world's)") \
  X(spot_quat, "[4*nspot]") \
  X(seg_radius, "[nseg]") \
  X(seg_share, "[nseg] 1 / divisor of the pulley") \
  X(ten_coef, "[ntenj]") \
  X(ten_stiffness, "[nten]") \
  X(ten_damping, "[nten]") \
  X(ten_armature, "[nten]") \
  X(ten_lo, "[nten] spring's dead band") \
  X(ten_hi, "[nten] its end") \
  X(act_coef, "[nactj] moment arm") \
  X(act_ctrllo, "[nu] least control") \
  X(act_ctrlhi, "[nu] greatest control") \
  X(act_forcelo, "[nu] least force") \
  X(act_forcehi, "[nu] greatest force") \
  X(act_gain, "[3*nu]") \
  X(act_bias, "[3*nu]") \
  X(act_gear, "[6*nu]") \
  X(act_rod, "[nu] length of a slider-crank's rod") \
  X(act_period, "[nu] a rotation's setpoint is taken modulo this, 0: as it is") \
  X(act_curve, "[MUSCLE*nu] a muscle's curves: see actuator.cuh") \
  X(act_prm, "[3*nu] time constant of a filter; a muscle's of activation, deactivation, width; a motor's, 1 over its constant, that constant") \
  X(act_step, "[nu] act grows by this times its rate in a time step: the step, or tau (1 - exp(-step/tau)) of an exact filter and a current") \
  X(act_lo, "[nu] least activation") \
  X(act_hi, "[nu] greatest activation") \
  X(share_lo, "[nshare]") \
  X(share_hi, "[nshare]") \
  X(fluid_pos, "[3*nfluid] centre of mass in the body's frame") \
  X(fluid_mat, "[9*nfluid] principal axes in the body's frame") \
  X(fluid_box, "[3*nfluid] equivalent box, full sizes") \
  X(grav_mass, "[ngrav] mass that is compensated") \
  X(grav_mcom, "[3*ngrav] times its centre, body frame") \
  X(meter_pos, "[3*nmeter] in the moving body's frame (or the world's)") \
  X(meter_mat, "[9*nmeter]") \
  X(meter_size, "[3*nmeter]") \
  X(part_mass, "[]") \
  X(part_mcom, "[3*] mass times centre of mass, moving body's (or world's) frame") \
  X(part_inertia, "[6*] as body_inertia") \
  X(csensor_above, "[ncsensor] of counts: the force (N) above which a physics step counts") \
  X(ell_pos, "[3*nell] centre in the body's frame") \
  X(ell_mat, "[9*nell] axes in the body's frame") \
  X(ell_real, "[19*nell] see fluid.cuh") \
  X(cg_friction, "[3*ncg]") \
  X(pair_shift, "[npair] sum of the bodies' inverse weights of translation") \
  X(lump_rest, "[10*nlump] mass, mcom, inertia of what does not vary") \
  X(piece_pos, "[3*npiece] the body's frame in the moving body's") \
  X(piece_mat, "[9*npiece]") \
  X(piece_own, "[10*npiece] mass, centre of mass, inertia about it (xx yy zz xy xz yz), in its frame") \
  X(piece_axes, "[9*npiece] principal axes in its frame") \
  X(weigh_pos, "[3*nweigh] in the moving body's frame") \
  X(forced_pos, "[3*nforced] in the moving body's frame") \
  X(motor_real, "[MOTOR_REAL*nmotor]") \
  X(net_real, "[NET_REAL*nnet]") \
  X(net_weight, "layers' weights and biases") \
  X(mesh_pos, "[3*] meshes' vertices") \
  X(core_pos, "[3*ncore] some vertices, for tests on all lanes") \
  X(core_over, "[nmesh] how far the mesh reaches beyond their hull") \
  X(mesh_bound, "[nmesh] radius of the sphere around the origin") \
  X(face_normal, "[3*nfaces] outwards") \
  X(field_data, "heights") \
  X(field_size, "[4*nfield] half-extents x and y, height, base")

// One soft constraint's parameters, from solref, solimp and the inverse weights.
enum {
  SOFT_K,       // stiffness of the reference acceleration
  SOFT_B,       // its damping
  SOFT_D0,      // impedance at zero
  SOFT_DW,      // impedance at full width
  SOFT_IW,      // 1 / width; 1 where the impedance is flat
  SOFT_MID,     // where the sigmoid between them turns
  SOFT_LA,      // 1 / mid
  SOFT_HB,      // 1 / (1 - mid)
  SOFT_POWER,   // the sigmoid's
  SOFT_MARGIN,  // distance at which the constraint acts
  SOFT_DIAG,    // the diagonal that regularises: R = (1-imp)/imp * diag
  SOFT,         // how many there are
};

// The generic kernel's model: pointers into the caller's arrays.
template<class T> struct Tables {
#define X(name, says) int name;
  OSTLER_COUNTS(X)
#undef X
#define X(name, says) T name;
  OSTLER_SCALARS(X)
#undef X
#define X(name, says) const int* name;
  OSTLER_INTS(X)
#undef X
#define X(name, says) const T* name;
  OSTLER_REALS(X)
#undef X
};
