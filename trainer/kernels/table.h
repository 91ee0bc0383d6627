// The learner's passes over rows as host.cpp has them: what each does is said there.
#pragma once

enum {
  ROWS = 32,  // of a block of columns
};

struct Table {
  void (*forward)(int activation, const float* bias, float* y, size_t rows, size_t width);
  void (*backward)(int activation, const float* y, float* d, float* d_bias, size_t rows, size_t width);
  void (*norm_forward)(int activation, const float* bias, const float* gain, const float* shift, float* x, float* scale, float* y, size_t rows, size_t width);
  void (*norm_backward)(int activation, const float* y, const float* x, const float* scale, const float* gain, float* d, float* d_gain, float* d_shift, float* d_bias, size_t rows, size_t width);
  void (*gru_forward)(const float* x_bias, const float* y_bias, float* x, float* y, const float* h, float* to, size_t rows, size_t width);
  void (*gru_backward)(float* x, float* y, const float* h, float* d, size_t rows, size_t width);
  void (*sum_rows)(const float* d, float* to, size_t rows, size_t width);
  void (*loss)(const PpoLoss* args, size_t rows, double* stats);
  void (*adam)(const AdamStep* step, float* theta, float* g, float* m, float* v, size_t n);
  float (*sum)(const float* x, size_t n);
  double (*squares)(const float* x, size_t n);
  void (*adam_begin)(const AdamConfig* c, double norm, double lr, double* powers, AdamStep* out);
  int (*tally)(const Tally* t);
  int (*policy_goes_on)(float kl, double limit, double* end);
  int (*judge)(const Tally* t, int policy, double limit);
  void (*add)(float* to, const float* from, size_t n);
  void (*columns_layer)(const float* weight, const float* bias, size_t inputs, size_t outputs, const float* x, float* y);
  void (*columns_norm)(const float* gain, const float* shift, float* x, size_t width);
  int (*gather_rows)(const float* from, size_t rows, size_t width, const long long* index, size_t n, float* to);
  int (*gather_columns)(const float* from, size_t rows, size_t width, const long long* index, size_t n, float* to, size_t stride);
  void (*fill_order)(unsigned long long seed, unsigned long long update, unsigned epoch, size_t count, long long* to);
};
