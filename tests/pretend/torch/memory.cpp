// libtorch's allocators: of the device, with a reserve as CUDA's has one, and of page-locked
// memory of the host.

#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>
#include <map>
#include <mutex>

#include "cuda.h"
#include "runtime.h"
#include "../pretend.h"

namespace pretend {
namespace {

using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr std::size_t STEP = 512;

// Blocks that are given back stay reserved, by size, until somebody needs the memory.
class DeviceMemory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    const c10::Device device(c10::DeviceType::CUDA, 0);
    if (n == 0) return {nullptr, nullptr, &release, device};
    void* block = take((n + STEP - 1) / STEP * STEP, n);
    return {block, block, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t n) const override {
    run();
    std::memcpy(reach(to), reach(from), n);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    std::lock_guard<std::mutex> lock(guard_);
    give_back();
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  DeviceStats getDeviceStats(c10::DeviceIndex) override {
    std::lock_guard<std::mutex> lock(guard_);
    DeviceStats stats;
    const auto all = static_cast<std::size_t>(StatType::AGGREGATE);
    stats.allocated_bytes[all].current = static_cast<std::int64_t>(allocated_);
    stats.reserved_bytes[all].current = static_cast<std::int64_t>(reserved_);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    std::size_t free = 0, total = 0;
    check(cuMemGetInfo_v2(&free, &total));
    return {free, total};
  }

  static DeviceMemory& one() {
    static auto* memory = new DeviceMemory;
    return *memory;
  }

 private:
  void* take(std::size_t size, std::size_t asked) {
    std::lock_guard<std::mutex> lock(guard_);
    void* block = nullptr;
    const auto kept = kept_.find(size);
    if (kept != kept_.end()) {
      block = kept->second;
      kept_.erase(kept);
      run();
      std::memset(reach(block), 0xff, size);
    } else {
      int code = runtime::malloc(&block, size);
      if (code == 2) {
        give_back();
        code = runtime::malloc(&block, size);
      }
      if (code == 2) {
        const auto [free, total] = getMemoryInfo(0);
        TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", asked,
                         " bytes. GPU 0 has a total capacity of ", total, " bytes of which ", free,
                         " bytes is free.");
      }
      check(code);
      reserved_ += size;
    }
    allocated_ += size;
    sizes_[block] = size;
    return block;
  }

  static void release(void* block) {
    if (!block) return;
    auto& m = one();
    std::lock_guard<std::mutex> lock(m.guard_);
    const auto size = m.sizes_.find(block);
    m.allocated_ -= size->second;
    m.kept_.emplace(size->second, block);
    m.sizes_.erase(size);
  }

  void give_back() {
    for (const auto& [size, block] : kept_) {
      cuMemFree_v2(reinterpret_cast<std::uint64_t>(block));
      reserved_ -= size;
    }
    kept_.clear();
  }

  std::mutex guard_;
  std::multimap<std::size_t, void*> kept_;
  std::map<void*, std::size_t> sizes_;
  std::size_t allocated_ = 0, reserved_ = 0;
};

// A block that is given back is free once all copies of before have ended.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    void* block = nullptr;
    if (n > 0) {
      const int code = runtime::host_alloc(&block, n);
      TORCH_CHECK_WITH(OutOfMemoryError, code != 2, "CUDA out of memory: ", n, " bytes of page-locked memory");
      check(code);
    }
    return {block, block, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t n) const override { std::memcpy(to, from, n); }

 private:
  static void release(void* block) {
    if (block) land_later([=] { cuMemFreeHost(block); });
  }
};

}  // namespace

c10::Allocator* device_memory() { return &DeviceMemory::one(); }

c10::Allocator* pinned_memory() {
  static auto* memory = new PinnedMemory;
  return memory;
}

}  // namespace pretend
