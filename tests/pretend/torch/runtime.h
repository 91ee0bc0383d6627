// The runtime's functions that libtorch would call, each of them counted where somebody counts.
#pragma once

#include <cstddef>

struct Dim { unsigned x, y, z; };

namespace pretend::runtime {

enum Direction { TO_DEVICE = 1, TO_HOST = 2, WITHIN = 3 };

int malloc(void** p, std::size_t n);
int host_alloc(void** p, std::size_t n);
int stream_synchronize();
int device_synchronize();
int event_synchronize(void* event);
int copied(Direction direction);
int launched();

}  // namespace pretend::runtime
