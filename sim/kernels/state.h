// What the future of an environment depends on: a line a column.
//
// The kernels' arguments are made of these lists, and so, by sim/build/columns.rs, are the
// buffers on the host and the device, snapshots, what is joined of them, what begins at
// zero, what expressions may read, and docs/state.md.
//
// X(name, kind, factor, size, begin, seen, says)
//   name    buffer [factor * size][N], the environment fastest
//   kind    real: a number; word: an unsigned number;
//           row: numbers of an environment side by side, [N][factor * size]
//   size    one of OSTLER_SIZES, or one
//   begin   where an episode begins it is zero, kept as it was, or its own code's
//   seen    yes, if expressions may read it by this name; no
//   says    contents and unit, for the documentation
//
// The order is that of snapshots: changing it changes their version (sim/src/snapshot.rs).
#pragma once

// X(name, says)
#define OSTLER_SIZES(X) \
  X(nq, "generalised positions") \
  X(nv, "generalised velocities") \
  X(na, "activations") \
  X(nu, "actuators") \
  X(nbody, "bodies, the world included") \
  X(ngeom, "geoms") \
  X(nsense, "numbers of the sensors that are measured while the worlds step") \
  X(nagent, "agents") \
  X(naction, "outputs of all agents") \
  X(nraw, "numbers of an environment's rows of actions") \
  X(ncommand, "components of commands") \
  X(nhistory, "numbers that expressions need of the step before") \
  X(nobs, "width of an environment's rows of observations, of all agents") \
  X(ncritic, "the same for critics; 0 where they see what policies see") \
  X(nreward, "reward terms") \
  X(nend, "causes of ends, the time-out included")

// The state of an episode, beside the world's.
#define OSTLER_EPISODE(X) \
  X(action, real, 1, naction, zero, yes, "clipped outputs of all agents in the last step") \
  X(last_action, real, 1, naction, zero, yes, "those of the step before") \
  X(command, real, 1, ncommand, own, yes, "commands") \
  X(history, real, 1, nhistory, own, yes, "values of expressions in the step before") \
  X(ret, real, 1, nagent, zero, no, "return so far of every agent") \
  X(sums, real, 1, nreward, zero, no, "weighted reward terms, summed so far") \
  X(last_policy, row, 1, nobs, kept, no, "last finite observations") \
  X(last_critic, row, 1, ncritic, kept, no, "last finite observations of the critics") \
  X(age, word, 1, one, own, yes, "age of the episode in control steps; random at the start of a spread batch") \
  X(length, word, 1, one, zero, no, "control steps taken in the episode") \
  X(counted, word, 1, one, own, no, "1 where the episode began at age 0 and counts in the statistics") \
  X(stuck, word, 1, one, own, no, "fault bits of a reset that itself failed; the next step tries again") \
  X(final_used, word, 1, one, kept, no, "slots of the final observations taken in this rollout")

// The state of a world. `real` is what the kernel computes in.
#define OSTLER_WORLD(X) \
  X(qpos, real, 1, nq, own, yes, "generalised positions (m, rad)") \
  X(qvel, real, 1, nv, own, yes, "generalised velocities (m/s, rad/s)") \
  X(body_pos, real, 3, nbody, own, yes, "positions of the body frames in the world (m)") \
  X(body_quat, real, 4, nbody, own, yes, "orientations of the body frames (w, x, y, z)") \
  X(body_lin_vel, real, 3, nbody, own, yes, "linear velocities of the body frames' origins, world frame (m/s)") \
  X(body_ang_vel, real, 3, nbody, own, yes, "angular velocities, world frame (rad/s)") \
  X(contact_force, real, 1, ngeom, zero, yes, "sum of normal contact forces at each geom (N), mean over the last control step's substeps; 0 without contact") \
  X(actuator_force, real, 1, nu, zero, yes, "actuator forces after clamping, before the gear, in the last substep (N, N m)") \
  X(qacc, real, 1, nv, zero, yes, "generalised accelerations of the last substep (RK4: the mean of its stages); the native engine's solver starts there") \
  X(sensordata, real, 1, nsense, zero, yes, "sensors' readings, of those that are measured while the worlds step, in the state in which the last substep began; MuJoCo's units") \
  X(fault, word, 1, one, zero, no, "bits of physics::fault") \
  X(act, real, 1, na, zero, no, "activations of actuators") \
  X(overflow, word, 1, one, kept, no, "control steps in which a contact found no room") \
  X(unsolved, word, 1, one, kept, no, "time steps whose solver stopped at its cap on iterations")

// Uses of the lists. Where they are used, `real`, `word` and `row` are types.
#define OSTLER_POINTER(name, kind, factor, size, begin, seen, says) kind* name;
