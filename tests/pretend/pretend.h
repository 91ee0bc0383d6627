// What the other libraries of the pretend GPU ask of its driver.
#pragma once

#include <cstddef>
#include <functional>

namespace pretend {

// The address under which the device's own work reaches its memory; the same address where
// it is the host's.
void* reach(const void* address);

// Whether an address is the device's.
bool is_device(const void* address);

// Whether all of these bytes are page-locked memory of the host.
bool is_pinned(const void* address, std::size_t bytes);

// Does all of the device's work that was started, in order. What it copies to the host does
// not land yet.
void run();

// Does `land` when somebody next waits for what was started by now.
void land_later(std::function<void()> land);

}  // namespace pretend
