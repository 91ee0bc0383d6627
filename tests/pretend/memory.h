// The device's memory: one range of addresses that nobody may read, and the same memory once
// more for the device's own work.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

namespace pretend {

constexpr std::uint64_t RANGE = 256ull << 30;  // addresses, not memory
constexpr std::uint64_t ALIGN = 512;

inline struct sigaction before;
inline std::uint8_t* shown = nullptr;  // what programs see
inline std::uint8_t* own = nullptr;    // what the device's work uses

inline bool within(const void* address) {
  const auto* p = (const std::uint8_t*)address;
  return shown && p >= shown && p < shown + RANGE;
}

// Says what happened, then lets it happen.
inline void touched(int, siginfo_t* info, void*) {
  if (within(info->si_addr)) {
    const char text[] = "pretend GPU: the host touched memory of the device\n";
    (void)!write(2, text, sizeof text - 1);
    signal(SIGSEGV, SIG_DFL);
  } else {
    sigaction(SIGSEGV, &before, nullptr);
  }
}

// First fit. Bytes beyond `total` are refused.
class Memory {
 public:
  explicit Memory(std::uint64_t total) : total_(total) {
    const int file = memfd_create("pretend-gpu", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, RANGE) != 0) abort();
    auto map = [&](int protection) {
      void* at = mmap(nullptr, RANGE, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
      if (at == MAP_FAILED) abort();
      return (std::uint8_t*)at;
    };
    shown = map(PROT_NONE);
    own = map(PROT_READ | PROT_WRITE);
    close(file);
    struct sigaction action = {};
    action.sa_sigaction = touched;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before);
  }

  std::uint64_t total() const { return total_; }
  std::uint64_t free() const { return used_ < total_ ? total_ - used_ : 0; }

  // Memory that is nobody's block: local memory of threads.
  bool reserve(std::uint64_t bytes) {
    if (bytes > free()) return false;
    used_ += bytes;
    return true;
  }

  // 0 if there is none. It holds NaN.
  std::uint64_t allocate(std::uint64_t bytes) {
    const std::uint64_t size = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (size > free()) return 0;
    std::uint64_t at = ALIGN;
    for (const auto& [begin, length] : blocks_) {
      if (begin - at >= size) break;
      at = begin + length;
    }
    if (at + size > RANGE) return 0;
    blocks_[at] = size;
    used_ += size;
    memset(own + at, 0xff, size);
    return (std::uint64_t)(shown + at);
  }

  bool release(std::uint64_t address) {
    const auto block = blocks_.find(address - (std::uint64_t)shown);
    if (block == blocks_.end()) return false;
    used_ -= block->second;
    // The machine gets it back.
    const std::uint64_t page = 4096, begin = (block->first + page - 1) / page * page;
    const std::uint64_t end = (block->first + block->second) / page * page;
    if (end > begin) madvise(own + begin, end - begin, MADV_REMOVE);
    blocks_.erase(block);
    return true;
  }

 private:
  std::uint64_t total_, used_ = 0;
  std::map<std::uint64_t, std::uint64_t> blocks_;  // bytes of each, by place
};

}  // namespace pretend
