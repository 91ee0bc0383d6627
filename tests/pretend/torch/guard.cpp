// The device and its one stream, as libtorch asks for them.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "cuda.h"
#include "runtime.h"
#include "../pretend.h"

namespace pretend {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

DeviceIndex count() {
  int n = 0;
  return cuDeviceGetCount(&n) == 0 ? static_cast<DeviceIndex>(n) : DeviceIndex{0};
}

// The memory is one device's.
void only_the_first(Device device) {
  TORCH_CHECK(device.index() <= 0, "the pretend GPU computes on cuda:0 alone, not on ", device);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device device) const override {
    only_the_first(device);
    return getDevice();
  }
  Device getDevice() const override { return {DeviceType::CUDA, 0}; }
  void setDevice(Device device) const override { only_the_first(device); }
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const override { return Stream(Stream::DEFAULT, getDevice()); }
  Stream getDefaultStream(Device) const override { return getStream(getDevice()); }
  Stream exchangeStream(Stream) const override { return getStream(getDevice()); }
  DeviceIndex deviceCount() const noexcept override { return count(); }

  void record(void** event, const Stream&, const DeviceIndex, const c10::EventFlag) const override {
    if (!*event) check(cuEventCreate(event, 2));
    check(cuEventRecord(*event, nullptr));
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void* event) const override { return !event || cuEventQuery(event) == 0; }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    if (event) cuEventDestroy_v2(event);
  }
  void synchronizeEvent(void* event) const override {
    if (event) check(runtime::event_synchronize(event));
  }
  double elapsedTime(void* begin, void* end, const DeviceIndex) const override {
    float milliseconds = 0;
    check(cuEventElapsedTime(&milliseconds, begin, end));
    return milliseconds;
  }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override { check(runtime::stream_synchronize()); }
  void synchronizeDevice(const DeviceIndex) const override { check(runtime::device_synchronize()); }
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard);

// The name by which libtorch asks for them.
struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return count() > 0; }
  bool hasCUDA() const override { return count() > 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return count(); }
  int getNumGPUs() const override { return count(); }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  Device getDeviceFromPtr(void* p) const override {
    return is_device(p) ? Device(DeviceType::CUDA, 0) : Device(DeviceType::CPU);
  }
  bool isPinnedPtr(const void* p) const override { return is_pinned(p, 1); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_memory(); }
  c10::Allocator* getCUDADeviceAllocator() const override { return device_memory(); }
  const at::Generator& getDefaultGenerator(DeviceIndex) const override {
    static auto* generator = new at::Generator(at::detail::createCPUGenerator());
    return *generator;
  }
  void deviceSynchronize(DeviceIndex) const override { check(runtime::device_synchronize()); }
};

using at::CUDAHooksArgs;
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks)

const bool registered = [] {
  c10::SetAllocator(DeviceType::CUDA, device_memory());
  return true;
}();

}  // namespace
}  // namespace pretend
