// No exception leaves a C function: its result is 0, or 1 with a message in `error`
// (`error_size` bytes, always terminated).

#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>

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
