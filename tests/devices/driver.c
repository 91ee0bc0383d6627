/* A driver's library that answers as the environment says: what is used of cuda.h. */

#include <stdlib.h>
#include <string.h>

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

int cuDriverGetVersion(int *version) {
  *version = number("FAKE_DRIVER", 13000);
  return 0;
}

int cuInit(unsigned flags) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (flags != 0) return 1;
  if (visible && *visible == 0) return 100;
  return number("FAKE_INIT", 0);
}

int cuDeviceGetCount(int *count) {
  *count = number("FAKE_GPUS", 1);
  return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
  (void)device;
  strncpy(name, "Fake GPU", size);
  return 0;
}

int cuDeviceGetAttribute(int *value, int which, int device) {
  (void)device;
  *value = which == 75 ? 9 : 0;
  return 0;
}

int cuGetErrorName(int code, const char **name) {
  *name = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
