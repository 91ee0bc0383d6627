#ifndef OSTLER_POLICY_RUNTIME
#define OSTLER_POLICY_RUNTIME
#include <math.h>

#ifdef __cplusplus
#define OSTLER_RESTRICT __restrict
#else
#define OSTLER_RESTRICT restrict
#endif
#define OSTLER_NAN ((float)NAN)
#define OSTLER_INF ((float)INFINITY)

/* Operations of observations. Conditions are 0 and 1. */
static inline float ostler_Neg(float x) { return -x; }
static inline float ostler_Abs(float x) { return fabsf(x); }
static inline float ostler_Sqrt(float x) { return sqrtf(x); }
static inline float ostler_Exp(float x) { return expf(x); }
static inline float ostler_Ln(float x) { return logf(x); }
static inline float ostler_Sin(float x) { return sinf(x); }
static inline float ostler_Cos(float x) { return cosf(x); }
static inline float ostler_Tan(float x) { return tanf(x); }
static inline float ostler_Asin(float x) { return asinf(x); }
static inline float ostler_Acos(float x) { return acosf(x); }
static inline float ostler_Tanh(float x) { return tanhf(x); }
static inline float ostler_Floor(float x) { return floorf(x); }
static inline float ostler_Round(float x) { return rintf(x); }
static inline float ostler_Sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
static inline float ostler_Finite(float x) { return x - x == 0.0f ? 1.0f : 0.0f; }
static inline float ostler_Not(float x) { return 1.0f - x; }
static inline float ostler_Min(float a, float b) { return a < b || a != a ? a : b; }
static inline float ostler_Max(float a, float b) { return a > b || a != a ? a : b; }
static inline float ostler_Pow(float a, float b) { return powf(a, b); }
static inline float ostler_Atan2(float a, float b) { return atan2f(a, b); }
static inline float ostler_Lt(float a, float b) { return a < b ? 1.0f : 0.0f; }
static inline float ostler_Le(float a, float b) { return a <= b ? 1.0f : 0.0f; }
static inline float ostler_Eq(float a, float b) { return a == b ? 1.0f : 0.0f; }
static inline float ostler_And(float a, float b) { return a * b; }
static inline float ostler_Or(float a, float b) { return a + b - a * b; }
static inline float ostler_Select(float p, float q, float r) { return p != 0.0f ? q : r; }

/* x within low and high; NaN stays. */
static inline float ostler_within(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* Frames of bodies: position (m), orientation (w, x, y, z), velocities (m/s, rad/s), in the
   world's axes. A floating base is at the origin, at rest: nothing that is observed depends on
   where it is and how fast it moves. */
typedef struct { float pos[3], quat[4], lin[3], ang[3]; } ostler_frame;

static inline void ostler_cross(const float *a, const float *b, float *out) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}
static inline void ostler_product(const float *a, const float *b, float *out) {
  float q[4];
  int k;
  q[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  q[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  q[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  q[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
  for (k = 0; k < 4; k++) out[k] = q[k];
}
static inline void ostler_turn(const float *q, const float *v, float *out) {
  float t[3], last[3];
  int k;
  ostler_cross(q + 1, v, t);
  for (k = 0; k < 3; k++) t[k] *= 2.0f;
  ostler_cross(q + 1, t, last);
  for (k = 0; k < 3; k++) out[k] = v[k] + q[0] * t[k] + last[k];
}
static inline void ostler_unit(const float *q, float *out) {
  const float norm = sqrtf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  int k;
  for (k = 0; k < 4; k++) out[k] = norm > 0.0f ? q[k] / norm : k == 0 ? 1.0f : 0.0f;
}
static inline ostler_frame ostler_world(void) {
  ostler_frame f = {{0.0f, 0.0f, 0.0f}, {1.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}};
  return f;
}
/* A frame that is fixed in another. */
static inline ostler_frame ostler_fixed(const ostler_frame *p, float x, float y, float z, float qw, float qx, float qy, float qz) {
  ostler_frame f = *p;
  float pos[3], quat[4], offset[3], swing[3];
  int k;
  pos[0] = x, pos[1] = y, pos[2] = z;
  quat[0] = qw, quat[1] = qx, quat[2] = qy, quat[3] = qz;
  ostler_turn(p->quat, pos, offset);
  ostler_cross(p->ang, offset, swing);
  ostler_product(p->quat, quat, f.quat);
  for (k = 0; k < 3; k++) f.pos[k] += offset[k], f.lin[k] += swing[k];
  return f;
}
/* A base with its orientation and its angular velocity in its own axes. */
static inline ostler_frame ostler_base(const float *quat, const float *gyro) {
  ostler_frame f = ostler_world();
  ostler_unit(quat, f.quat);
  ostler_turn(f.quat, gyro, f.ang);
  return f;
}
static inline void ostler_slide(ostler_frame *f, float q, float v, float ax, float ay, float az) {
  float own[3], axis[3], shift[3], swing[3];
  int k;
  own[0] = ax, own[1] = ay, own[2] = az;
  ostler_turn(f->quat, own, axis);
  for (k = 0; k < 3; k++) shift[k] = axis[k] * q;
  ostler_cross(f->ang, shift, swing);
  for (k = 0; k < 3; k++) f->pos[k] += shift[k], f->lin[k] += swing[k] + axis[k] * v;
}
/* A turn about an anchor: rate is in the world's axes. */
static inline void ostler_about(ostler_frame *f, const float *anchor, const float *turn, const float *rate) {
  float to[3], back[3], swing[3];
  int k;
  ostler_turn(f->quat, anchor, to);
  ostler_cross(f->ang, to, swing);
  for (k = 0; k < 3; k++) f->lin[k] += swing[k], f->ang[k] += rate[k], f->pos[k] += to[k];
  ostler_product(f->quat, turn, f->quat);
  ostler_turn(f->quat, anchor, back);
  for (k = 0; k < 3; k++) back[k] = -back[k], f->pos[k] += back[k];
  ostler_cross(f->ang, back, swing);
  for (k = 0; k < 3; k++) f->lin[k] += swing[k];
}
static inline void ostler_hinge(ostler_frame *f, float q, float v, float x, float y, float z, float ax, float ay, float az) {
  const float s = sinf(0.5f * q);
  float anchor[3], axis[3], turn[4], rate[3];
  int k;
  anchor[0] = x, anchor[1] = y, anchor[2] = z;
  axis[0] = ax, axis[1] = ay, axis[2] = az;
  turn[0] = cosf(0.5f * q), turn[1] = s * ax, turn[2] = s * ay, turn[3] = s * az;
  ostler_turn(f->quat, axis, rate);
  for (k = 0; k < 3; k++) rate[k] *= v;
  ostler_about(f, anchor, turn, rate);
}
static inline void ostler_ball(ostler_frame *f, const float *q, const float *v, float x, float y, float z) {
  float anchor[3], turn[4], whole[4], rate[3];
  anchor[0] = x, anchor[1] = y, anchor[2] = z;
  ostler_unit(q, turn);
  ostler_product(f->quat, turn, whole);
  ostler_turn(whole, v, rate);
  ostler_about(f, anchor, turn, rate);
}

/* Layers. w has a row of outputs for every input. */
static inline void ostler_dense(const float *OSTLER_RESTRICT w, const float *OSTLER_RESTRICT b, int inputs, int outputs, const float *OSTLER_RESTRICT x, float *OSTLER_RESTRICT y) {
  int i = 0, k;
  for (k = 0; k < outputs; k++) y[k] = b[k];
  for (; i + 4 <= inputs; i += 4) {
    const float *OSTLER_RESTRICT r = w + (long)i * outputs;
    const float x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
    for (k = 0; k < outputs; k++) y[k] += (x0 * r[k] + x1 * r[k + outputs]) + (x2 * r[k + 2 * outputs] + x3 * r[k + 3 * outputs]);
  }
  for (; i < inputs; i++)
    for (k = 0; k < outputs; k++) y[k] += x[i] * w[(long)i * outputs + k];
}
static inline void ostler_layer_norm(const float *gain, const float *bias, int n, float *y) {
  float mean = 0.0f, var = 0.0f, scale;
  int k;
  for (k = 0; k < n; k++) mean += y[k];
  mean /= (float)n;
  for (k = 0; k < n; k++) var += (y[k] - mean) * (y[k] - mean);
  scale = 1.0f / sqrtf(var / (float)n + 1e-5f);
  for (k = 0; k < n; k++) y[k] = gain[k] * ((y[k] - mean) * scale) + bias[k];
}
static inline float ostler_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
static inline void ostler_elu(int n, float *y) {
  int k;
  for (k = 0; k < n; k++) y[k] = y[k] > 0.0f ? y[k] : expf(y[k]) - 1.0f;
}
static inline void ostler_relu(int n, float *y) {
  int k;
  for (k = 0; k < n; k++) y[k] = y[k] > 0.0f ? y[k] : 0.0f;
}
static inline void ostler_tanh(int n, float *y) {
  int k;
  for (k = 0; k < n; k++) y[k] = tanhf(y[k]);
}
static inline void ostler_silu(int n, float *y) {
  int k;
  for (k = 0; k < n; k++) y[k] *= ostler_sigmoid(y[k]);
}
#endif
