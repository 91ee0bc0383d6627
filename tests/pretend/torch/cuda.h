// The driver's functions that are used, and what these files give one another.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>

extern "C" {
int cuMemAlloc_v2(std::uint64_t*, std::size_t);
int cuMemFree_v2(std::uint64_t);
int cuMemGetInfo_v2(std::size_t*, std::size_t*);
int cuMemHostAlloc(void**, std::size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemcpyHtoDAsync_v2(std::uint64_t, const void*, std::size_t, void*);
int cuCtxSynchronize();
int cuEventCreate(void**, unsigned);
int cuEventRecord(void*, void*);
int cuEventQuery(void*);
int cuEventSynchronize(void*);
int cuEventDestroy_v2(void*);
int cuEventElapsedTime(float*, void*, void*);
int cuDeviceGetCount(int*);
}

namespace pretend {

inline void check(int code) { TORCH_CHECK(code == 0, "CUDA error: ", code); }

c10::Allocator* device_memory();
c10::Allocator* pinned_memory();

}  // namespace pretend
