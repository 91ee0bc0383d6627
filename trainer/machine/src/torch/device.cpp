// libtorch's caching allocator of a GPU, as plain C functions; see guarded.h for the
// conventions. c10 alone: nothing of CUDA is linked or loaded.

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <cstdint>

#include "guarded.h"

namespace {

c10::DeviceAllocator& allocator() {
  auto* found = c10::getDeviceAllocator(c10::kCUDA);
  TORCH_CHECK(found->initialized(), "CUDA is not initialised");
  return *found;
}

}  // namespace

extern "C" {

// Bytes that tensors on CUDA device `index` take, and bytes that the allocator holds.
int ostler_torch_device_memory(int index, std::uint64_t* allocated, std::uint64_t* reserved,
                               char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    const auto stats = allocator().getDeviceStats(static_cast<c10::DeviceIndex>(index));
    const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    *allocated = static_cast<std::uint64_t>(stats.allocated_bytes[all].current);
    *reserved = static_cast<std::uint64_t>(stats.reserved_bytes[all].current);
  });
}

// Bytes of CUDA device `index` that nobody has, by its driver.
int ostler_torch_device_free(int index, std::uint64_t* free, char* error,
                             std::size_t error_size) {
  return guarded(error, error_size, [&] {
    *free = allocator().getMemoryInfo(static_cast<c10::DeviceIndex>(index)).first;
  });
}

// Gives what the allocator holds and no tensor uses back to the GPU.
int ostler_torch_release_device_memory(char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] { allocator().emptyCache(); });
}

}  // extern "C"
