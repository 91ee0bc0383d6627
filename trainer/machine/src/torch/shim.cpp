// The few things of libtorch that tch does not reach, as plain C functions; see
// guarded.h for the conventions.

#include <ATen/Context.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Logging.h>
#include <torch/headeronly/version.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <string>

#include "guarded.h"

// Gives the reserve back to the system; 1 if there was one. Rust's.
extern "C" int ostler_release_reserve();

namespace {

int release_reserve() noexcept { return ostler_release_reserve(); }

// C++ asks for memory again after this returned.
void new_handler() {
  if (release_reserve() == 0) throw std::bad_alloc();
}

// Stands between libtorch's tensors and their memory on the CPU: counts what they ask
// for, refuses where a drill wants it, and gives the reserve back to the system when
// there is no memory, so that there is some for the error.
class WatchedAllocator final : public c10::Allocator {
 public:
  explicit WatchedAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    calls_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (armed_.load(std::memory_order_relaxed)) refuse(bytes);
    try {
      return inner_->allocate(bytes);
    } catch (...) {
      release_reserve();
      throw;
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

  // From now on the allocation after `after` others fails, and all of `above` bytes or
  // more.
  void arm(std::uint64_t after, std::uint64_t above) {
    armed_.store(false);
    left_.store(after);
    above_.store(above);
    armed_.store(after != never || above != never);
  }

  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  static constexpr std::uint64_t never = ~std::uint64_t{0};

  void read(std::uint64_t* calls, std::uint64_t* bytes) const {
    *calls = calls_.load(std::memory_order_relaxed);
    *bytes = bytes_.load(std::memory_order_relaxed);
  }

 private:
  // The message of libtorch's allocator when there is no memory.
  void refuse(std::size_t bytes) {
    bool due = bytes >= above_.load(std::memory_order_relaxed);
    if (left_.load(std::memory_order_relaxed) != never) {
      // Exactly one thread meets 0; then the count stays where it means never.
      due = left_.fetch_sub(1, std::memory_order_relaxed) == 0 || due;
    }
    if (!due) return;
    refused_.fetch_add(1, std::memory_order_relaxed);
    CAFFE_ENFORCE(false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ",
                  bytes, " bytes. Error code ", ENOMEM, " (a drill)");
  }

  c10::Allocator* inner_;
  std::atomic<bool> armed_{false};
  std::atomic<std::uint64_t> left_{never};
  std::atomic<std::uint64_t> above_{never};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

// Puts the allocator in place once and for the rest of the process: tensors keep the
// deleter of the allocator they came from, which is the inner one's.
WatchedAllocator& watched() {
  static WatchedAllocator* installed = [] {
    auto* watching = new WatchedAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(watching, 1);
    return watching;
  }();
  return *installed;
}

}  // namespace

extern "C" {

// tch frees the numbers it gave to a call before it asks whether that call failed, and
// then takes the call's failure for one of freeing, which panics: every `f_*_scalar`
// without memory would. So the question after freeing is answered with "no", and the
// failure stays where tch looks next. The linker puts these in the place of tch's
// (--wrap in build.rs).
void __real_ats_free(void* scalar);
char* __real_get_and_reset_last_err();

static thread_local bool just_freed = false;

void __wrap_ats_free(void* scalar) {
  __real_ats_free(scalar);
  just_freed = true;
}

char* __wrap_get_and_reset_last_err() {
  if (just_freed) {
    just_freed = false;
    return nullptr;
  }
  return __real_get_and_reset_last_err();
}

// Tensor allocations on the CPU, in number and bytes, since the first call.
int ostler_torch_cpu_allocations(std::uint64_t* calls, std::uint64_t* bytes, char* error,
                                 std::size_t error_size) {
  return guarded(error, error_size, [&] { watched().read(calls, bytes); });
}

// Lets the allocation after `after` others fail, and all of `above` bytes or more;
// 2^64 - 1 is never. Writes how many have failed so since the start.
int ostler_torch_fail_allocations(std::uint64_t after, std::uint64_t above,
                                  std::uint64_t* refused, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    watched().arm(after, above);
    *refused = watched().refused();
  });
}

// From now on C++ code that finds no memory, and tensors that do not, release the
// reserve first.
int ostler_torch_use_reserve(char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    watched();
    std::set_new_handler(new_handler);
  });
}

// From now on libtorch's errors carry no C++ stack: it is of no use in a log, four
// kilobytes long, and putting it into words takes so much memory that an error for
// want of memory ends in a segmentation fault.
int ostler_torch_short_errors(char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    c10::SetStackTraceFetcher(std::function<std::string()>([] { return std::string(); }));
  });
}

// How float32 matrix products may be computed: "highest", "high" or "medium".
int ostler_torch_set_matmul_precision(const char* name, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    // libtorch only warns about a name it does not know.
    const std::string precision = name;
    TORCH_CHECK(precision == "highest" || precision == "high" || precision == "medium",
                "float32 matmul precision '", precision, "' is none of highest, high, medium");
    at::globalContext().setFloat32MatmulPrecision(precision);
  });
}

// Writes 0 for highest, 1 for high, 2 for medium.
int ostler_torch_matmul_precision(int* level, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    *level = static_cast<int>(at::globalContext().float32MatmulPrecision());
  });
}

// The version of the libtorch that this was compiled against, terminated.
const char* ostler_torch_version() { return TORCH_VERSION; }

}  // extern "C"
