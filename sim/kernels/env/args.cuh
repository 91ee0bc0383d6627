// Arguments of the entries, and their numbers. Rust's are read from here: sim/build/mirrors.rs.
#pragma once
#include "stats.h"

// Words of a break record before its columns (see `record_break`).
enum { BREAK_HEAD = 8 };

// Laws of controls; targets of the draws at an episode's start and what they do; kinds of joints.
enum { DRIVE_HELD, DRIVE_AFFINE, DRIVE_CHOICE, DRIVE_BINARY, DRIVE_RELATIVE, DRIVE_INCREMENT };
enum { PLACE_POSITION, PLACE_VELOCITY, PLACE_ACTIVATION, PLACE_YAW, PLACE_TURN_X, PLACE_TURN_Y, PLACE_TURN_Z, PLACE_ROTATION };
enum { CHANGE_ADD, CHANGE_SET, CHANGE_SCALE, CHANGE_DRAWN };
// Inputs of an expression of a start, beside commands and draws: positions and velocities, the
// bodies' frames, commands that follow the robot.
enum : unsigned { READS_POSE = 1, READS_BODIES = 2, READS_STEERED = 4 };
// In `tries`: a condition failed in every try.
enum : unsigned { GAVE_UP = 0x80000000u };
// How the values of a metric become one.
enum { OVER_MEAN, OVER_LAST, OVER_MAX, OVER_MIN, OVER_SUM };
enum { JOINT_FREE, JOINT_BALL, JOINT_SLIDE, JOINT_HINGE };
enum : unsigned { NOWHERE = ~0u };

// Sizes where they are not constants.
struct alignas(8) TaskSizes {
  OSTLER_SIZES(OSTLER_SIZE)
  static constexpr int one = 1;
};

// Statistics.
struct StatAddresses {
#ifdef OSTLER_BLOCK
  typedef unsigned long long count;
#else
  typedef double count;
#endif
  typedef double sum;
  OSTLER_STATS(OSTLER_STAT)
};

// Buffers are [k][n], the environment fastest, unless said otherwise.
struct EnvArgs {
  StepArgs<float> physics;
  int n;                       // environments
  unsigned first_env;          // global id of environment 0
  unsigned long long seed, clock;
  unsigned noisy, spread;      // observation noise; random ages of first episodes
  unsigned events, reserved;   // whether events happen
  unsigned since;              // control steps of the rollout before this one
  unsigned only_new;           // 1: the history of environments that go on is written already
  // The future depends on these.
  typedef float real;
  typedef float row;
  typedef unsigned word;
  OSTLER_EPISODE(OSTLER_POINTER)
  OSTLER_STEP_BUFFERS(OSTLER_POINTER)
  // The task.
  OSTLER_TABLES(OSTLER_TABLE)
  TaskSizes size;
  const float* number;         // numbers of its expressions, where they are not in the code
  StatAddresses stats;         // since they were last taken: numbers on a host, on a device [size][n]
  double* tally;               // [TALLY][n] on a device: all of them
  unsigned* last_ret;          // [3]: return's bits, length, 1 + since of the last episode that ended
  unsigned* broken;            // one number: environments that broke
  unsigned* breaks;            // [BREAKS][BREAK]
  unsigned* listed;            // one number on a device: episodes that ended, since the beginning
  unsigned* list;              // [list_mask + 1][4] on a device: the last of these, in turn
  // One step; rows are agents of environments, [n][M].
  const float* actions;        // [n][nraw]
  float *obs, *critic_obs;     // [n][nobs]
  float *reward, *terminated, *truncated, *valid; // [n][nagent]
  float *final_obs, *final_critic; // [slots][n][nobs]
  int slots, padding;
  int* final_slot;             // [n][nagent]
  // Random numbers for the policy's next step.
  float* noise;                // [n][nagent][noise_width], or null
  int noise_width;
  unsigned noise_normal;       // else uniform
  unsigned long long noise_seed, noise_step;
  // Sums of the statistics.
  double* partial;             // [TALLY + 2][chunks]
  int chunks;
  unsigned list_mask;          // a power of two, less 1
  double* total;               // [TALLY + 2]
};
