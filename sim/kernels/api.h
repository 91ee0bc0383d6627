// How a program meets a kernel: a table of functions, the same for the generic
// kernels that are linked and for specialised ones that are loaded.
#ifndef OSTLER_API_H
#define OSTLER_API_H

struct OstlerKernel {
  int version;       // of this struct and of the arguments
  int lanes;         // environments per block
  int real_bytes;    // 4 or 8
  int specialised;   // 1: knows its robot, `tables` is not read
  // Bytes of working memory for one thread, and its set-up (64-byte aligned, zeroed).
  unsigned long (*work_bytes)(const void* tables);
  void (*work_init)(const void* tables, void* work);
  // Environments first .. first+lanes-1; StepArgs<T> and EvalArgs<T> of step.cuh.
  void (*step)(const void* tables, void* work, const void* args, int first, int lanes);
  void (*evaluate)(const void* tables, void* work, const void* args, int first, int lanes);
};
enum { OSTLER_KERNEL_VERSION = 8 };

#endif
