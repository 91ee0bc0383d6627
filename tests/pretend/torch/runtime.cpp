// CUDA's runtime, as far as libtorch calls it for its own work. A program that has functions by
// these names, as the GPU's tests do to count, is called in their place, as it would be by
// libtorch's CUDA part; it passes the call on to these.

#include "runtime.h"

#include <dlfcn.h>
#include <link.h>

#include "../pretend.h"
#include "cuda.h"

namespace pretend {
namespace {

// The program's function, if it has one.
void* in_program(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  Dl_info info;
  static const void* program = [] {
    const void* base = nullptr;
    // The first that is told is the program.
    dl_iterate_phdr([](dl_phdr_info* i, size_t, void* to) {
      *(const void**)to = (const void*)(i->dlpi_addr + (i->dlpi_phnum ? i->dlpi_phdr[0].p_vaddr - i->dlpi_phdr[0].p_offset : 0));
      return 1;
    }, &base);
    Dl_info of;
    return base && dladdr(base, &of) ? of.dli_fbase : nullptr;
  }();
  return found && dladdr(found, &info) && info.dli_fbase == program ? found : nullptr;
}

template <typename F> F* chosen(const char* name, F* own) {
  void* found = in_program(name);
  return found ? (F*)found : own;
}

}  // namespace
}  // namespace pretend

extern "C" {
int cudaMalloc(void** p, std::size_t n) {
  std::uint64_t at = 0;
  const int code = cuMemAlloc_v2(&at, n);
  *p = (void*)at;
  return code;
}
int cudaHostAlloc(void** p, std::size_t n, unsigned flags) { return cuMemHostAlloc(p, n, flags); }
int cudaStreamSynchronize(void*) { return cuCtxSynchronize(); }
int cudaDeviceSynchronize() { return cuCtxSynchronize(); }
int cudaEventSynchronize(void* event) { return cuEventSynchronize(event); }
// What is copied is told to the driver by libtorch's operators; this is where it is counted.
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*) { return 0; }
int cudaLaunchKernel(const void*, Dim, Dim, void**, std::size_t, void*) { return 0; }
}

#define CALL(name, ...) \
  static auto* const function = pretend::chosen(#name, &name); \
  return function(__VA_ARGS__)

namespace pretend::runtime {
int malloc(void** p, std::size_t n) { CALL(cudaMalloc, p, n); }
int host_alloc(void** p, std::size_t n) { CALL(cudaHostAlloc, p, n, 0); }
int stream_synchronize() { CALL(cudaStreamSynchronize, nullptr); }
int device_synchronize() { CALL(cudaDeviceSynchronize); }
int event_synchronize(void* event) { CALL(cudaEventSynchronize, event); }
int copied(Direction direction) { CALL(cudaMemcpyAsync, nullptr, nullptr, 0, direction, nullptr); }
int launched() { CALL(cudaLaunchKernel, nullptr, Dim{1, 1, 1}, Dim{1, 1, 1}, nullptr, 0, nullptr); }
}  // namespace pretend::runtime
