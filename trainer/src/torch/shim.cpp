// The few things of libtorch that tch does not reach, as plain C functions.
//
// No exception leaves a function: the result is 0, or 1 with a message in
// `error` (`error_size` bytes, always terminated).

#include <ATen/Context.h>
#include <c10/core/CPUAllocator.h>
#include <torch/headeronly/version.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace {

template <typename F>
int guarded(char* error, std::size_t error_size, F&& body) noexcept {
  const char* message = "an exception that is no std::exception";
  try {
    body();
    return 0;
  } catch (const std::exception& e) {
    if (error_size > 0) std::snprintf(error, error_size, "%s", e.what());
    return 1;
  } catch (...) {
    if (error_size > 0) std::snprintf(error, error_size, "%s", message);
    return 1;
  }
}

// Counts what libtorch's tensors ask for on the CPU and passes it on.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    calls_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return inner_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

  void read(std::uint64_t* calls, std::uint64_t* bytes) const {
    *calls = calls_.load(std::memory_order_relaxed);
    *bytes = bytes_.load(std::memory_order_relaxed);
  }

 private:
  c10::Allocator* inner_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

// Puts the counter in place once and for the rest of the process: tensors keep
// the deleter of the allocator they came from, which is the inner one's.
CountingAllocator& counter() {
  static CountingAllocator* installed = [] {
    auto* counting = new CountingAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(counting, 1);
    return counting;
  }();
  return *installed;
}

}  // namespace

extern "C" {

// Tensor allocations on the CPU, in number and bytes, since the first call.
int ostler_torch_cpu_allocations(std::uint64_t* calls, std::uint64_t* bytes, char* error,
                                 std::size_t error_size) {
  return guarded(error, error_size, [&] { counter().read(calls, bytes); });
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
