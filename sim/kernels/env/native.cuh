// What a function of `[[task.native]]` sees of its environment, and how it is called:
// docs/native.md. The same text stands in front of the functions on a host and on a device.
#pragma once

// Of this view and of how functions are called.
enum { OSTLER_NATIVE_VERSION = 1 };

// In front of every function of a header.
#ifdef __CUDACC__
#define OSTLER_NATIVE __device__ inline
#else
#define OSTLER_NATIVE inline
#endif

// When functions are called: before rewards, before observations, in the first state of an
// episode.
enum { NATIVE_JUDGE, NATIVE_SEE, NATIVE_BEGIN };

// Elementary functions with the same bits on hosts and devices, and small vectors.
namespace ostler {
constexpr int native_version = OSTLER_NATIVE_VERSION;
constexpr float pi = 3.14159265f;
OSTLER_FN float exp(float x) { return exp_(x); }
OSTLER_FN float log(float x) { return ln_(x); }
OSTLER_FN float pow(float x, float y) { return pow_(x, y); }
OSTLER_FN float sqrt(float x) { return sqrt_(x); }
OSTLER_FN float sin(float x) { return sin_(x); }
OSTLER_FN float cos(float x) { return cos_(x); }
OSTLER_FN float tan(float x) { return tan_(x); }
OSTLER_FN float asin(float x) { return asin_(x); }
OSTLER_FN float acos(float x) { return acos_(x); }
OSTLER_FN float atan2(float y, float x) { return atan2_of(y, x); }
OSTLER_FN float tanh(float x) { return tanh_(x); }
OSTLER_FN float abs(float x) { return magnitude(x); }
OSTLER_FN float floor(float x) { return floor_(x); }
OSTLER_FN float round(float x) { return rint_(x); }
OSTLER_FN float min(float a, float b) { return a < b || is_nan(a) ? a : b; }
OSTLER_FN float max(float a, float b) { return a > b || is_nan(a) ? a : b; }
OSTLER_FN float clamp(float x, float low, float high) { return clamp_(x, low, high); }
OSTLER_FN bool is_finite(float x) { return (bits_of(x) & 0x7f800000u) != 0x7f800000u; }

struct Vec3 { float x, y, z; };
struct Quat { float w, x, y, z; };
OSTLER_FN Vec3 vec3(const float* x) { return {x[0], x[1], x[2]}; }
OSTLER_FN Quat quat(const float* x) { return {x[0], x[1], x[2], x[3]}; }
OSTLER_FN Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
OSTLER_FN Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
OSTLER_FN Vec3 operator*(float s, Vec3 a) { return {s * a.x, s * a.y, s * a.z}; }
OSTLER_FN Vec3 operator*(Vec3 a, float s) { return s * a; }
OSTLER_FN float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
OSTLER_FN Vec3 cross(Vec3 a, Vec3 b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
OSTLER_FN float length(Vec3 a) { return sqrt_(dot(a, a)); }
// v turned by the unit quaternion q, and turned back.
OSTLER_FN Vec3 rotate(Quat q, Vec3 v) {
  const Vec3 u = {q.x, q.y, q.z}, t = 2.0f * cross(u, v);
  return v + q.w * t + cross(u, t);
}
OSTLER_FN Vec3 rotate_inv(Quat q, Vec3 v) { return rotate({q.w, -q.x, -q.y, -q.z}, v); }

// One environment. Numbers are those that expressions read, in the same units; the places of
// parts by name are constants of this namespace.
class Env {
  const EnvArgs& a;
  const long n, e;
  const unsigned native, stage;
  OSTLER_FN float at(const float* column, int row) const { return column[row * n + e]; }
  OSTLER_FN Vec3 three(const float* column, int i) const {
    return {at(column, 3 * i), at(column, 3 * i + 1), at(column, 3 * i + 2)};
  }
  OSTLER_FN Words words(int index, unsigned normal) const {
    const unsigned long long clock = 2 * a.clock + (stage == NATIVE_BEGIN ? 1 : 0);
    return philox(a.seed, a.first_env + (unsigned)e, DRAW_NATIVE, clock, native << 20 | normal << 19 | ((unsigned)index / 4 & 0x7ffffu));
  }

 public:
  OSTLER_FN Env(const EnvArgs& args, long env, unsigned function, unsigned when)
      : a(args), n(args.n), e(env), native(function), stage(when) {}

  // Whether this is the first state of an episode.
  OSTLER_FN bool first() const { return stage == NATIVE_BEGIN; }
  // Control steps since the episode began, and their duration (s).
  OSTLER_FN unsigned step() const { return a.age[e]; }
  OSTLER_FN float step_dt() const { return a.step_dt[0]; }
  OSTLER_FN float time() const { return (float)a.age[e] * a.step_dt[0]; }

  // Positions and velocities by their place in MuJoCo's order: QPOS_NAME, QVEL_NAME of a joint.
  OSTLER_FN float qpos(int i) const { return at(a.physics.qpos, i); }
  OSTLER_FN float qvel(int i) const { return at(a.physics.qvel, i); }
  // Frames of bodies: BODY_NAME.
  OSTLER_FN Vec3 body_pos(int b) const { return three(a.physics.body_pos, b); }
  OSTLER_FN Quat body_quat(int b) const {
    const float* q = a.physics.body_quat;
    return {at(q, 4 * b), at(q, 4 * b + 1), at(q, 4 * b + 2), at(q, 4 * b + 3)};
  }
  OSTLER_FN Vec3 body_lin_vel(int b) const { return three(a.physics.body_lin_vel, b); }
  OSTLER_FN Vec3 body_ang_vel(int b) const { return three(a.physics.body_ang_vel, b); }
  // Normal contact force of a geom: GEOM_NAME.
  OSTLER_FN float contact_force(int g) const { return at(a.physics.contact_force, g); }
  // Force and control of an actuator: ACTUATOR_NAME.
  OSTLER_FN float actuator_force(int u) const { return at(a.physics.actuator_force, u); }
  OSTLER_FN float ctrl(int u) const { return at(a.ctrl, u); }
  // Outputs of the policy, of all agents one after the other.
  OSTLER_FN float action(int i) const { return at(a.action, i); }
  OSTLER_FN float last_action(int i) const { return at(a.last_action, i); }
  // Components of all commands; COMMAND_NAME is the first one of a command.
  OSTLER_FN float command(int i) const { return at(a.command, i); }

  // Random numbers of this control step, by their number: the same ones whenever they are
  // asked for. Uniform in [0, 1), and standard normal.
  OSTLER_FN float uniform(int i) const { return unit(words(i, 0).w[i & 3]); }
  OSTLER_FN float normal(int i) const {
    float x[4];
    normal_four(words(i, 1), x);
    return x[i & 3];
  }
};
}  // namespace ostler

// Calls `f(env, out, memory)` for environment e: the outputs go to rows `to` and on, what the
// function remembers is in rows `kept` and on. What it leaves there before rewards is dropped:
// the call before observations sees the same memory, and what that leaves is kept.
template<int OUTPUTS, int MEMORY, class F>
OSTLER_FN void call_native(const EnvArgs& a, const long e, unsigned function, unsigned stage, long to, long kept, F f) {
  const long n = a.n;
  float out[OUTPUTS], memory[MEMORY > 0 ? MEMORY : 1];
  for (int i = 0; i < OUTPUTS; i++) out[i] = 0.0f;
  memory[0] = 0.0f;
  for (int i = 0; i < MEMORY; i++) memory[i] = a.native_memory[(kept + i) * n + e];
  f(ostler::Env(a, e, function, stage), out, memory);
  for (int i = 0; i < OUTPUTS; i++) {
    float* at = a.native + (to + i) * n + e;
    // What broke the environment before its rewards stays to be examined.
    *at = stage == NATIVE_SEE && !is_finite(*at) ? *at : out[i];
  }
  if (stage == NATIVE_JUDGE) return;
  for (int i = 0; i < MEMORY; i++) a.native_memory[(kept + i) * n + e] = memory[i];
}

// The compiled functions of a task on a host.
struct OstlerNative {
  unsigned version, functions;
  unsigned long args_bytes;
  // Calls a function for environments first .. first+len-1, of those that begin anew only the
  // ones in the mask. Its inputs are [inputs][64].
  void (*call)(const EnvArgs* args, unsigned function, unsigned stage, long first, int len, const float* inputs);
};
