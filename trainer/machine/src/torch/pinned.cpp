// Page-locked memory of the host; see guarded.h for the conventions. libtorch's `is_pinned` with
// a device, which tch calls, warns every time.

#include <ATen/core/Tensor.h>

#include "guarded.h"

extern "C" {

// Whether a tensor lies there.
int ostler_torch_is_pinned(const void* tensor, int* pinned, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    *pinned = static_cast<const at::Tensor*>(tensor)->is_pinned() ? 1 : 0;
  });
}

}  // extern "C"
