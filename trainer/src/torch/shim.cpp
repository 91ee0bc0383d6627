// The few things of libtorch that tch does not reach, as plain C functions.
//
// No exception leaves a function: the result is 0, or 1 with a message in
// `error` (`error_size` bytes, always terminated).

#include <ATen/Context.h>
#include <torch/headeronly/version.h>

#include <cstddef>
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

}  // namespace

extern "C" {

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
