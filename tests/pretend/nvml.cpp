// An NVML with one GPU that is warm and busy: what is used of nvml.h. FAKE_HEAT=1 slows it down
// and loses numbers, FAKE_GONE=1 takes it off the bus, FAKE_ORDER=1 has another one at its number.

#include <stdlib.h>
#include <string.h>

extern "C" {
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Utilization;

static int on(const char *name) {
  const char *text = getenv(name);
  return text && *text == '1';
}

static int gpu;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = 1;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  if (index > 0 || on("FAKE_ORDER")) return 2; // invalid argument
  *device = &gpu;
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  if (strncmp(uuid, "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0", 41)) return 6; // not found
  *device = &gpu;
  return 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
  (void)device;
  strncpy(name, "Fake GPU", length);
  return 0;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, Memory *memory) {
  (void)device;
  if (on("FAKE_GONE")) return 15; // GPU is lost
  memory->total = 80ull << 30;
  memory->reserved = 1ull << 30;
  memory->free = 60ull << 30;
  memory->used = 19ull << 30;
  return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, Utilization *rates) {
  (void)device;
  rates->gpu = 71;
  rates->memory = 23;
  return 0;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) {
  (void)device;
  if (sensor != 0) return 2;
  *degrees = on("FAKE_HEAT") ? 94 : 57;
  return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  (void)device;
  *milliwatts = 312500;
  return 0;
}

int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count) {
  (void)device;
  if (counter != 0) return 2;
  *count = kind == 0 ? 3 : on("FAKE_HEAT") ? 2 : 0;
  return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  (void)device;
  *reasons = on("FAKE_HEAT") ? 0x40 : 0x1; // hardware's thermal slowdown; idle
  return 0;
}
}
