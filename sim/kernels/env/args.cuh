// What the entries take; mirrored by sim/src/env/on_device/args.rs.
#pragma once

// Words of an entry of the morgue before its columns (see `bury`).
enum { GRAVE_HEAD = 8 };

// Buffers are [k][n], the environment fastest, unless said otherwise.
struct EnvArgs {
  StepArgs<float> physics;
  int n;                       // environments
  unsigned first_env;          // global id of environment 0
  unsigned long long seed, clock;
  unsigned noisy, spread;      // observation noise; random ages of first episodes
  unsigned since, unused;      // control steps of the rollout before this one
  // The future depends on these.
  typedef float real;
  typedef float row;
  typedef unsigned word;
  OSTLER_EPISODE(OSTLER_POINTER)
  // Work.
  float* ctrl;                 // [nu]
  const float* number;         // the task's numbers, where they are not in the code
  // Statistics since they were last taken.
  double* tally;               // [TALLY]
  unsigned* last_ret;          // [3]: return's bits, length, 1 + since of the last episode that ended
  unsigned* buried;            // one number: broken environments that asked for a grave
  unsigned* grave;             // [GRAVES][GRAVE]
  // One step; rows are agents of environments, [n][M].
  const float* actions;        // [n][nraw]
  float *obs, *critic_obs;     // [n][nobs]
  float *reward, *terminated, *truncated, *valid; // [n][nagent]
  float *final_obs, *final_critic; // [slots][n][nobs]
  int slots;
  int* final_slot;             // [n][nagent]
  // Random numbers for the policy's next step.
  float* noise;                // [n][nagent][noise_width], or null
  int noise_width;
  unsigned noise_normal;       // else uniform
  unsigned long long noise_seed, noise_step;
  // Sums of the statistics.
  double* partial;             // [TALLY + 2][chunks]
  int chunks;
  double* total;               // [TALLY + 2], then 4 words a chunk
  // A copy of words.
  const unsigned* from;
  unsigned* to;
  long long words;
};
