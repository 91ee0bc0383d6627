// The columns of an environment's state, the buffers of a step, and the tables of a task: one
// line each.
//
// The kernels' arguments are made of these lists, and so, by sim/build/columns.rs, are the
// buffers on the host and the device, snapshots, joining, start values, the columns
// that expressions may read, and docs/state.md.
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
// The order is that of snapshots: changing it changes their version (sim/base/src/snapshot.rs).
#pragma once

// X(name, says)
#define OSTLER_SIZES(X) \
  X(nq, "generalised positions") \
  X(nv, "generalised velocities") \
  X(na, "activations") \
  X(nu, "actuators") \
  X(nbody, "bodies, the world included") \
  X(njoint, "joints") \
  X(ngeom, "geoms") \
  X(nsense, "numbers of the sensors that are measured while the worlds step") \
  X(nreading, "numbers that the task's contact sensors read") \
  X(nvaried, "numbers of the model that events change") \
  X(nderived, "numbers that follow from them") \
  X(nmemory, "numbers that actuators remember") \
  X(nagent, "agents") \
  X(naction, "outputs of all agents") \
  X(nraw, "numbers of an environment's rows of actions") \
  X(ncommand, "components of commands") \
  X(ndraw, "draws by distributions: of commands, resets, expressions of starts, noise, biases and events") \
  X(noption, "choices of all draws") \
  X(ncourse, "commands that are velocities of robots") \
  X(ntimer, "commands that hold for times that are drawn, or until a condition holds") \
  X(nresample, "conditions that draw commands anew") \
  X(nfunction, "native functions of the task") \
  X(nnative, "outputs of all native functions") \
  X(nkept, "numbers that native functions remember") \
  X(nhistory, "numbers that expressions keep from the step before, states of the task included") \
  X(nobs, "width of an environment's rows of observations, of all agents") \
  X(ncritic, "the same for critics; 0 where they see the policies' observations") \
  X(nreward, "reward terms") \
  X(nend, "causes of ends, the time-out included") \
  X(ndrive, "actuators that actions drive or that hold the task's pose") \
  X(nchoice, "controls of all choices of discrete actions") \
  X(nplace, "operations with which an episode's first pose is drawn") \
  X(nquat, "quaternions among the positions") \
  X(nstart, "expressions of these operations") \
  X(nstartvalue, "components of the widest of them") \
  X(nuntil, "conditions that a start fulfils") \
  X(nrandom, "random numbers that expressions read where an episode begins") \
  X(nclipped, "agents whose rewards are clipped") \
  X(nshare, "agents' shares of reward terms: pairs of a term and an agent") \
  X(nterm, "termination terms") \
  X(nmetric, "metrics") \
  X(nseen, "observation terms") \
  X(nentry, "components of all observation terms") \
  X(nsink, "places of observation terms in rows") \
  X(nsized, "components of places whose noise has a size for each") \
  X(nbias, "numbers that are added to observations for an episode") \
  X(nlag, "delays") \
  X(nredrawn, "delays of actuators that are drawn anew between physics steps") \
  X(nsteplag, "the same in all physics steps of a control step") \
  X(ndelayed, "numbers that are on their way into rows of observations, or to actuators") \
  X(nlate, "outputs that reach their actuators late") \
  X(nincrement, "outputs that are added to the control before") \
  X(nkeep, "places of observation terms that are seen late, or with their earlier values") \
  X(npad, "gaps in rows of observations, of agents that see less than the widest") \
  X(nground, "1 where episodes stand on a terrain") \
  X(ntile, "tiles of the terrain") \
  X(nreference, "1 where episodes follow a reference motion") \
  X(nclip, "clips of the reference") \
  X(nmotion, "numbers of all their frames") \
  X(nlook, "readings of the reference") \
  X(nlooked, "numbers of all of them") \
  X(nscan, "scans that expressions read") \
  X(nray, "places or rays of all scans") \
  X(nmet, "shapes that rays of scans may meet") \
  X(nsurface, "nodes of the trees of boxes of those with triangles") \
  X(ntriangle, "their triangles") \
  X(ncell, "expressions whose values are remembered for the next step") \
  X(nevent, "events") \
  X(ndrawn, "random numbers of all events") \
  X(nshown, "numbers of events that expressions read")

// The state of an episode, beside the world's.
#define OSTLER_EPISODE(X) \
  X(action, real, 1, naction, zero, yes, "clipped outputs of all agents in the last step") \
  X(last_action, real, 1, naction, zero, yes, "clipped outputs of all agents in the step before") \
  X(command, real, 1, ncommand, own, yes, "commands") \
  X(course, real, 4, ncourse, own, no, "of a velocity: heading (rad), x and y in the world's axes (m/s), COURSE_* of command.cuh") \
  X(timer, word, 1, ntimer, own, no, "control steps until commands are drawn anew") \
  X(history, real, 1, nhistory, own, yes, "values of expressions in the step before, and states of the task") \
  X(native, real, 1, nnative, own, yes, "outputs of native functions") \
  X(native_memory, real, 1, nkept, zero, no, "what native functions remember") \
  X(bias, real, 1, nbias, own, no, "errors of observations that stay for the episode") \
  X(lag, word, 1, nlag, own, no, "delays: steps in the lower half, the phase of draws in the upper one") \
  X(delayed, real, 1, ndelayed, own, no, "values on their way: entry t % steps of a delay of at most so many steps is that of step t") \
  X(increment, real, 1, nincrement, zero, no, "the controls to which outputs are added") \
  X(ret, real, 1, nagent, zero, no, "return so far of every agent") \
  X(sums, real, 1, nreward, zero, no, "weighted reward terms, summed so far") \
  X(metric, real, 1, nmetric, zero, no, "metrics so far: the sum of a mean's values") \
  X(clipped, word, 1, nclipped, zero, no, "rewards so far that were clipped, of every agent") \
  X(last_policy, row, 1, nobs, kept, no, "last finite observations") \
  X(last_critic, row, 1, ncritic, kept, no, "last finite observations of the critics") \
  X(age, word, 1, one, own, yes, "age of the episode in control steps; random at the start of a spread batch") \
  X(length, word, 1, one, zero, no, "control steps taken in the episode") \
  X(counted, word, 1, one, own, no, "1 where the episode began at age 0 and counts in the statistics") \
  X(stuck, word, 1, one, own, no, "fault bits of a reset that itself failed; the next step tries again") \
  X(final_used, word, 1, one, kept, no, "slots of the final observations taken in this rollout") \
  X(born, word, 1, one, kept, no, "1 once the events of startup have happened") \
  X(event_left, word, 1, nevent, kept, no, "control steps until the event happens again") \
  X(event_hold, word, 1, nevent, kept, no, "control steps that its force acts on; 0: until the next") \
  X(event_since, word, 1, nevent, kept, no, "control steps of the episode since the event happened or its force ended; the greatest number before it has") \
  X(shown, real, 1, nshown, kept, yes, "numbers that events drew, of those that expressions read") \
  X(tile, word, 1, nground, kept, no, "1 + the tile of the terrain on which the episode began; 0: none yet") \
  X(stand, real, 4, nground, kept, yes, "where on the terrain the episode began (m), and that tile's level") \
  X(follow, word, 2, nreference, kept, no, "1 + the clip of the reference that the episode follows, 0 before the first; the frame at which it is") \
  X(failure, word, 6, nreference, kept, no, "of the last episode that failed 1 + its clip, 0 before the first, the second of the clip and the clock; the same when the rollout began") \
  X(broke, word, 1, one, kept, no, "how often the environment broke")

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
  X(sensordata, real, 1, nsense, zero, yes, "readings of the sensors that are measured while the worlds step, in the state in which the last substep began; MuJoCo's units") \
  X(contact_data, real, 1, nreading, zero, yes, "readings of contact sensors over the last control step: means of normal forces (N), of forces (N), of places (N m) and directions (N) times normal forces, or these of the last physics step; physics steps that count; times with and without contact (s)") \
  X(varied, real, 1, nvaried, own, yes, "numbers of the model that events change, in the units of the robot's file") \
  X(derived, real, 1, nderived, own, no, "inertias and inverse weights that follow from them") \
  X(stale, word, 1, one, own, no, "1 until that has been worked out; 2 after a push") \
  X(fault, word, 1, one, zero, no, "bits of physics::fault") \
  X(act, real, 1, na, own, yes, "activations of actuators") \
  X(memory, real, 1, nmemory, zero, no, "what actuators remember: 1 after a step, controls on their way, earlier errors and velocities (MLP), outputs and cells (LSTM)") \
  X(overflow, word, 1, one, kept, no, "control steps with more contacts than the tables hold") \
  X(unsolved, word, 1, one, kept, no, "time steps whose solver stopped at its cap on iterations")

// Results that one phase of a step leaves for the later ones.
#define OSTLER_STEP_BUFFERS(X) \
  X(ctrl, real, 1, nu, own, no, "controls") \
  X(late, real, 1, nlate, own, no, "late outputs as their actuators get them") \
  X(step_lag, real, 1, nsteplag, own, no, "delays of actuators, those of a physics step side by side") \
  X(gain, real, 1, nagent, own, no, "this step's reward of every agent, clipped, even where the environment broke") \
  X(bits, word, 1, one, own, no, "fault bits of this step") \
  X(ended, word, 1, one, own, no, "1 + the termination term that ended the task; 0: none") \
  X(cut, word, 1, one, own, no, "the same for terms that truncate") \
  X(mask, word, 1, one, own, no, "1 where a new episode begins") \
  X(suspect, word, 1, nevent, own, no, "1 where the environment broke soon after the event, or, of an event of startup, again and again") \
  X(next_history, real, 1, nhistory, own, no, "history of the next step, until all of it is known") \
  X(new_qpos, real, 1, nq, own, no, "positions in which a new episode begins") \
  X(new_qvel, real, 1, nv, own, no, "velocities in which a new episode begins") \
  X(new_act, real, 1, na, own, no, "activations with which a new episode begins") \
  X(start_value, real, 1, nstartvalue, own, no, "the last expression's value of a new episode's start") \
  X(start_random, real, 1, nrandom, own, no, "random numbers that expressions read where an episode begins") \
  X(scan, real, 1, nray, own, no, "what scans read: heights of a body over the terrain, distances along rays (m)") \
  X(motion_now, real, 1, nlooked, own, no, "what expressions read of the reference (m, rad, m/s, rad/s, quaternions)") \
  X(tries, word, 1, one, own, no, "draws that the last start took; its highest bit: conditions failed in all")

// A task's numbers, but for those in its expressions, and the robot's kinematics.
//
// X(name, kind, factor, size, says)
#define OSTLER_TABLES(X) \
  X(max_steps, word, 1, one, "control steps until the time-out") \
  X(step_dt, real, 1, one, "control step (s)") \
  X(discrete, word, 1, one, "1 where actions are choices") \
  X(raw, word, 1, naction, "place of an output in its environment's rows of actions") \
  X(clip_low, real, 1, naction, "least value of an output") \
  X(clip_high, real, 1, naction, "greatest value of an output") \
  X(drive_law, word, 1, ndrive, "law from output to control: DRIVE_* of args.cuh") \
  X(drive_actuator, word, 1, ndrive, "actuator that gets the control") \
  X(drive_output, word, 1, ndrive, "the output that decides it") \
  X(drive_scale, real, 1, ndrive, "factor of the output") \
  X(drive_offset, real, 1, ndrive, "added to the scaled output; the control of an actuator that holds the pose") \
  X(drive_encoder, word, 1, ndrive, "the bias of its joint's encoder, or NOWHERE; of an increment, its place among these") \
  X(drive_gear, real, 1, ndrive, "control per position of that joint; without one, the first control to add to") \
  X(drive_late, word, 1, ndrive, "its place among late outputs, or NOWHERE") \
  X(drive_choice, word, 1, ndrive, "first of the actuator's entries in `choice`; of what is added to: its joint in qpos, or NOWHERE") \
  X(drive_low, real, 1, ndrive, "least control") \
  X(drive_high, real, 1, ndrive, "greatest control") \
  X(choice, real, 1, nchoice, "controls, one after the other for every choice") \
  X(draw_chance, word, 1, ndraw, "distribution: CHANCE_* of draw.cuh") \
  X(draw_low, real, 1, ndraw, "least of a uniform draw; its logarithm; middle; mean; probability of 1; first shape of a beta distribution") \
  X(draw_high, real, 1, ndraw, "greatest of a uniform draw; its logarithm; half-width; standard deviation; second shape") \
  X(draw_least, real, 1, ndraw, "least number") \
  X(draw_most, real, 1, ndraw, "greatest number") \
  X(draw_end, word, 1, ndraw, "end of its choices") \
  X(option, real, 1, noption, "value of a choice") \
  X(option_share, real, 1, noption, "probability of it and of those before") \
  X(command_first, word, 1, ncommand, "first component of the choice") \
  X(command_timer, word, 1, ncommand, "timer of the draws, or NOWHERE") \
  X(command_interval, word, 1, ncommand, "control steps between draws; 0: only where an episode begins") \
  X(resample_timer, word, 1, nresample, "timer that the condition ends") \
  X(timer_low, real, 1, ntimer, "least control steps between draws") \
  X(timer_high, real, 1, ntimer, "most control steps between draws") \
  X(course_first, word, 1, ncourse, "first component of the velocity") \
  X(course_body, word, 1, ncourse, "body whose velocity is meant") \
  X(course_low, real, 4, ncourse, "least x, y (m/s), turn (rad/s) and heading (rad)") \
  X(course_high, real, 4, ncourse, "greatest of them") \
  X(course_share, real, 4, ncourse, "probabilities of a heading, of standing, of going forward alone, of a direction in the world") \
  X(course_stiffness, real, 1, ncourse, "turn per error of the heading (1/s)") \
  X(course_dead, real, 1, ncourse, "linear velocities up to this are zero (m/s)") \
  X(begin_qpos, real, 1, nq, "positions before the operations") \
  X(begin_qvel, real, 1, nv, "velocities before the operations") \
  X(begin_act, real, 1, na, "activations before the operations") \
  X(place_target, word, 1, nplace, "target of the draw: PLACE_* of args.cuh") \
  X(place_index, word, 1, nplace, "entry of the positions, velocities or activations; first one of a quaternion") \
  X(place_word, word, 1, nplace, "pair of random words") \
  X(place_change, word, 1, nplace, "what the draw does: CHANGE_* of args.cuh") \
  X(place_value, real, 1, nplace, "the value that replaces the old one") \
  X(place_least, real, 1, nplace, "least coordinate") \
  X(place_most, real, 1, nplace, "greatest coordinate") \
  X(place_part, word, 1, nplace, "component of an expression that is the value, or NOWHERE") \
  X(quaternion, word, 1, nquat, "first entry in the positions") \
  X(start_place, word, 1, nstart, "the first operation that takes the expression's value") \
  X(start_size, word, 1, nstart, "its components") \
  X(start_reads, word, 1, nstart, "its inputs: READS_* of args.cuh") \
  X(until_reads, word, 1, one, "the same of all conditions of a start") \
  X(most_tries, word, 1, one, "draws of a start at most") \
  X(weight, real, 1, nreward, "weight of a reward term") \
  X(share_end, word, 1, nreward, "end of the term's shares") \
  X(share_agent, word, 1, nshare, "agent that gets the share") \
  X(reward_limit, real, 1, one, "an agent's reward beyond it breaks the environment") \
  X(reward_low, real, 1, one, "least reward of an agent") \
  X(reward_high, real, 1, one, "greatest reward of an agent") \
  X(truncates, word, 1, nterm, "1 where a termination term truncates") \
  X(metric_over, word, 1, nmetric, "how the values of an episode become one: OVER_* of args.cuh") \
  X(seen_end, word, 1, nseen, "end of a term's components") \
  X(seen_low, real, 1, nseen, "least value") \
  X(seen_high, real, 1, nseen, "greatest value") \
  X(sink_end, word, 1, nseen, "end of a term's places in rows") \
  X(sink_critic, word, 1, nsink, "1 where the place is in critics' rows") \
  X(sink_at, word, 1, nsink, "first place of the present value") \
  X(sink_bias, word, 1, nsink, "first of the biases, or NOWHERE") \
  X(sink_size, word, 1, nsink, "first of the sizes of the components' noise, or NOWHERE: it is drawn in its own") \
  X(noise_size, real, 1, nsized, "factor of a component's noise") \
  X(bias_once, word, 1, nbias, "1: drawn once for an environment, 0: for every episode") \
  X(lag_low, word, 1, nlag, "least control steps; of actuators physics steps") \
  X(lag_high, word, 1, nlag, "most steps") \
  X(lag_redraw, word, 1, nlag, "steps between draws; 0: only where an episode begins") \
  X(lag_hold, real, 1, nlag, "probability that a draw changes nothing") \
  X(lag_end, word, 1, nlag, "end of its values on their way") \
  X(redrawn_lag, word, 1, nredrawn, "the delay, counted in physics steps") \
  X(late_output, word, 1, nlate, "the output") \
  X(late_lag, word, 1, nlate, "its delay") \
  X(late_place, word, 1, nlate, "its place among the outputs of that delay") \
  X(late_size, word, 1, nlate, "outputs of that delay") \
  X(keep_critic, word, 1, nkeep, "1 where the place is in critics' rows") \
  X(keep_at, word, 1, nkeep, "first place of the present value") \
  X(keep_size, word, 1, nkeep, "components") \
  X(keep_frames, word, 1, nkeep, "control steps that are seen") \
  X(keep_stride, word, 1, nkeep, "places from one control step to the next") \
  X(keep_lag, word, 1, nkeep, "the delay, or NOWHERE") \
  X(entry_scale, real, 1, nentry, "factor of a component") \
  X(pad_critic, word, 1, npad, "1 where the gap is in critics' rows") \
  X(pad_from, word, 1, npad, "first place of the gap") \
  X(pad_to, word, 1, npad, "end of the gap") \
  X(cell_end, word, 1, ncell, "end of an expression's rows of the history") \
  X(event_when, word, 1, nevent, "EVENT_* of event.cuh") \
  X(event_form, word, 1, nevent, "FORM_* of event.cuh") \
  X(event_end, word, 1, nevent, "end of its random numbers") \
  X(event_low, real, 1, nevent, "least interval in control steps") \
  X(event_high, real, 1, nevent, "greatest interval") \
  X(event_hold_low, real, 1, nevent, "least time that a force acts, in control steps") \
  X(event_hold_high, real, 1, nevent, "greatest such time; 0: until the next draw") \
  X(event_dof, word, 1, nevent, "first degree of freedom of a pushed body") \
  X(event_quat, word, 1, nevent, "first of its quaternion among the positions") \
  X(drawn_row, word, 1, ndrawn, "row of what varies, or degree of freedom") \
  X(drawn_operation, word, 1, ndrawn, "OPERATION_* of event.cuh") \
  X(drawn_least, real, 1, ndrawn, "least possible number") \
  X(drawn_most, real, 1, ndrawn, "greatest possible number") \
  X(drawn_word, word, 1, ndrawn, "pair of random words") \
  X(drawn_shown, word, 1, ndrawn, "place among the numbers that expressions read, or NOWHERE") \
  X(shown_base, real, 1, nshown, "such numbers as long as an event has not happened: those that change nothing") \
  X(varied_base, real, 1, nvaried, "the model's own numbers of what varies") \
  X(tile_columns, word, 1, one, "columns of the terrain; its tiles are numbered level by level") \
  X(tile_climbs, word, 1, one, "1 where an episode's end decides about the next one's level, 0 where tiles are drawn for every episode") \
  X(tile_first, word, 2, one, "least and greatest level where environments begin") \
  X(tile_origin, real, 3, ntile, "where episodes begin on a tile (m)") \
  X(follow_how, word, 1, one, "where episodes begin: FOLLOW_* of motion.cuh") \
  X(motion_width, word, 1, one, "numbers of a frame") \
  X(motion_second, word, 1, one, "frames in a second") \
  X(motion, real, 1, nmotion, "what is read of the clips' frames, frame by frame (m, rad, m/s, rad/s, quaternions)") \
  X(clip_first, word, 1, nclip, "first frame of a clip") \
  X(clip_frames, word, 1, nclip, "its frames, two or more") \
  X(clip_loops, word, 1, nclip, "1 where it goes round") \
  X(clip_share, real, 1, nclip, "share of it and of those before among the episodes") \
  X(clip_shift, real, 3, nclip, "where a round leads: shift along x and y (m) after a turn about z (rad)") \
  X(look_kind, word, 1, nlook, "LOOK_* of motion.cuh") \
  X(look_at, word, 1, nlook, "first number in a frame") \
  X(look_ahead, real, 1, nlook, "how much later, in frames") \
  X(look_end, word, 1, nlook, "end of its numbers") \
  X(scan_kind, word, 1, nscan, "SCAN_* of ground.cuh") \
  X(scan_body, word, 1, nscan, "the body that carries the scan") \
  X(scan_end, word, 1, nscan, "end of its places or rays") \
  X(scan_met, word, 1, nscan, "end of what its rays may meet") \
  X(met_kind, word, 1, nmet, "collide/shapes.h") \
  X(met_body, word, 1, nmet, "the body that carries it") \
  X(met_at, real, 3, nmet, "position in that body's frame (m)") \
  X(met_turn, real, 4, nmet, "orientation in that body's frame (w, x, y, z)") \
  X(met_size, real, 3, nmet, "MuJoCo's") \
  X(met_first, word, 1, nmet, "first node of its tree of boxes, of meshes and height fields") \
  X(met_end, word, 1, nmet, "end of its tree") \
  X(surface_box, real, 6, nsurface, "least and greatest corner of a node") \
  X(surface_next, word, 1, nsurface, "node to go on with where a ray does not enter it") \
  X(surface_first, word, 1, nsurface, "first of its triangles") \
  X(surface_end, word, 1, nsurface, "end of its triangles; a node of boxes has none") \
  X(triangle, real, 9, ntriangle, "corners in the shape's frame (m)") \
  X(ray_from, real, 3, nray, "beginning (m) in the body's frame; of a scan of heights in its heading frame") \
  X(ray_along, real, 3, nray, "unit direction in the body's frame") \
  X(cell_native, word, 1, ncell, "1 where the value that an episode begins with follows from outputs of native functions") \
  X(cell_state, word, 1, ncell, "1 for a state of the task, renewed before observations; 0 for a value before, renewed after them") \
  X(body_parent, word, 1, nbody, "parent body") \
  X(body_at, real, 3, nbody, "position in the parent body") \
  X(body_turn, real, 4, nbody, "orientation in the parent body (w, x, y, z)") \
  X(body_joints, word, 1, nbody, "end of the body's joints") \
  X(joint_kind, word, 1, njoint, "JOINT_* of args.cuh") \
  X(joint_pos, real, 3, njoint, "anchor in its body") \
  X(joint_axis, real, 3, njoint, "axis in its body") \
  X(joint_reference, real, 1, njoint, "joint position in the modelled pose") \
  X(joint_vary, word, 1, njoint, "row of what varies that takes its place, or NOWHERE") \
  X(joint_q, word, 1, njoint, "first of the joint's positions") \
  X(joint_v, word, 1, njoint, "first of the joint's velocities")

// Uses of the lists. Where they are used, `real`, `word` and `row` are types.
#define OSTLER_POINTER(name, kind, factor, size, begin, seen, says) kind* name;
#define OSTLER_TABLE(name, kind, factor, size, says) const kind* name;
#define OSTLER_SIZE(name, says) int name;
