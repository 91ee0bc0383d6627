// The default stream of a GPU: copies that the host does not wait for, and waits; see
// guarded.h for the conventions. c10's interfaces alone: nothing of CUDA is linked.

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <memory>

#include "guarded.h"

namespace {

c10::Device gpu(int index) {
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace

extern "C" {

// Copies tensor `from` into tensor `to`. Unless told to wait, and where the host's side is
// pinned, the host goes on.
int ostler_torch_copy(const void* from, void* to, int wait, char* error,
                      std::size_t error_size) {
  return guarded(error, error_size, [&] {
    static_cast<at::Tensor*>(to)->copy_(*static_cast<const at::Tensor*>(from), wait == 0);
  });
}

// Records an event behind all that was started on the stream, and waits for it.
int ostler_torch_wait_for_event(int index, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    const c10::impl::VirtualGuardImpl device(c10::DeviceType::CUDA);
    c10::Event event(c10::DeviceType::CUDA);
    event.record(device.getStream(gpu(index)));
    event.synchronize();
  });
}

// Records an event that has a time: the begin of a measurement. Null where that fails.
void* ostler_torch_clock_start(int index, char* error, std::size_t error_size) {
  c10::Event* begun = nullptr;
  guarded(error, error_size, [&] {
    const c10::impl::VirtualGuardImpl device(c10::DeviceType::CUDA);
    auto event = std::make_unique<c10::Event>(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
    event->record(device.getStream(gpu(index)));
    begun = event.release();
  });
  return begun;
}

// Milliseconds of the device between that event and now, for which it waits. Frees the event.
int ostler_torch_clock_stop(int index, void* begun, double* milliseconds, char* error,
                            std::size_t error_size) {
  return guarded(error, error_size, [&] {
    const std::unique_ptr<c10::Event> begin(static_cast<c10::Event*>(begun));
    const c10::impl::VirtualGuardImpl device(c10::DeviceType::CUDA);
    c10::Event end(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
    end.record(device.getStream(gpu(index)));
    end.synchronize();
    *milliseconds = begin->elapsedTime(end);
  });
}

// Waits until the device is idle.
int ostler_torch_wait_for_device(int index, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    const c10::impl::VirtualGuardImpl device(c10::DeviceType::CUDA);
    device.synchronizeDevice(gpu(index).index());
  });
}

}  // extern "C"
