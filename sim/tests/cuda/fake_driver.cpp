// A stand-in for an NVIDIA driver, as far as it can be seen from outside, without a GPU.
//
// The device's memory is the host's. Work is put off until somebody waits for it, so
// that a result that is read too early, or bytes that are changed too early, are wrong
// here, too; so is what a module's launch writes that is unloaded before it ran.
// FAKE_VERSION, FAKE_DEVICES, FAKE_MULTIPROCESSORS: its properties.
// FAKE_FAIL="cuInit=803;cuLaunchKernel@2=700" lets calls fail, from the second one on
// with @2 (only then, below 700; every call of any function afterwards, from 700).
// FAKE_LOG names a file to which calls are written.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace {
struct Work { std::function<void()> run; };
struct Event { uint64_t position = 0; };
// Its own function, too: programs have one entry. Never freed, so that work can look.
struct Module { bool loaded = true; };
std::recursive_mutex guard;
std::deque<Work> pending;
uint64_t given = 0, done = 0;
std::map<std::string, int> calls;
int sticky = 0;

int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text ? atoi(text) : otherwise;
}

void give(std::function<void()> run) {
  pending.push_back({run});
  ++given;
}

void finish(uint64_t position) {
  while (done < position && !pending.empty()) {
    pending.front().run();
    pending.pop_front();
    ++done;
  }
}

int enter(const char* name, const std::string& about) {
  if (const char* path = getenv("FAKE_LOG")) {
    if (FILE* file = fopen(path, "a")) {
      fprintf(file, "%s%s%s\n", name, about.empty() ? "" : " ", about.c_str());
      fclose(file);
    }
  }
  const int call = ++calls[name];
  if (sticky) return sticky;
  std::string script = getenv("FAKE_FAIL") ? getenv("FAKE_FAIL") : "";
  for (size_t at = 0; at < script.size();) {
    size_t end = script.find(';', at);
    if (end == std::string::npos) end = script.size();
    const std::string entry = script.substr(at, end - at);
    at = end + 1;
    const size_t equals = entry.find('='), from = entry.find('@');
    const std::string which = entry.substr(0, from < equals ? from : equals);
    const int code = atoi(entry.c_str() + equals + 1);
    if (which != name) continue;
    if (from < equals && atoi(entry.c_str() + from + 1) != call) continue;
    if (code >= 700 && code < 800) sticky = code;
    return code;
  }
  return 0;
}
}  // namespace

#define ENTER(...) \
  std::lock_guard<std::recursive_mutex> lock(guard); \
  if (int code = enter(__func__, std::string(__VA_ARGS__))) return code

extern "C" {
int cuDriverGetVersion(int* v) { ENTER(); *v = number("FAKE_VERSION", 13000); return 0; }
int cuInit(unsigned) { ENTER(); return 0; }
int cuDeviceGetCount(int* n) { ENTER(); *n = number("FAKE_DEVICES", 2); return 0; }
int cuDeviceGet(int* d, int ordinal) { ENTER(); *d = ordinal; return 0; }
int cuDeviceGetName(char* name, int n, int) { ENTER(); snprintf(name, n, "Fake GPU"); return 0; }
int cuDeviceGetAttribute(int* v, int what, int) {
  ENTER();
  *v = what == 75 ? 9 : what == 76 ? 0 : what == 16 ? number("FAKE_MULTIPROCESSORS", 132) : what == 97 ? 232448 : what == 39 ? 2048 : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** c, int) { ENTER(); *c = &guard; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { ENTER(); return 0; }
int cuCtxSetCurrent(void* c) { return c == &guard ? 0 : 201; }
int cuCtxSynchronize() { ENTER(); finish(given); return 0; }

int cuModuleLoadData(void** m, const void* image) {
  ENTER();
  if (memcmp(image, "\x7f" "ELF", 4) != 0) return 200;
  *m = new Module;
  return 0;
}
// Waits for nothing: NVIDIA's does not promise to.
int cuModuleUnload(void* m) { ENTER(); ((Module*)m)->loaded = false; return 0; }
int cuModuleGetFunction(void** f, void* m, const char* name) {
  ENTER(name);
  if (strcmp(name, "fill") != 0) return 500;
  *f = m;
  return 0;
}
int cuFuncGetAttribute(int* v, int what, void*) { ENTER(); *v = what == 0 ? 1024 : 0; return 0; }
int cuFuncGetParamInfo(void*, size_t index, size_t* offset, size_t* size) {
  if (index > 0) return 1;
  *offset = 0;
  *size = 16;
  return 0;
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** parameters, void** extra) {
  ENTER(std::to_string(gx) + " x " + std::to_string(bx));
  const Module* module = (Module*)f;
  if (!module->loaded || gy * gz * by * bz != 1 || shared != 0 || stream || extra || gx == 0) return 1;
  // The parameter is copied at once.
  struct { uint32_t* out; uint32_t n, value; } args;
  memcpy(&args, parameters[0], sizeof args);
  give([=] {
    for (uint64_t i = 0; i < uint64_t(gx) * bx; ++i)
      if (i < args.n) args.out[i] = module->loaded ? args.value + uint32_t(i) : 0xdead;
  });
  return 0;
}

int cuMemAlloc_v2(uint64_t* p, size_t n) {
  ENTER(std::to_string(n));
  *p = uint64_t(malloc(n));
  memset((void*)*p, 0xa5, n);
  return 0;
}
int cuMemFree_v2(uint64_t p) { ENTER(); finish(given); free((void*)p); return 0; }
int cuMemsetD8Async(uint64_t p, unsigned char v, size_t n, void*) {
  ENTER();
  give([=] { memset((void*)p, v, n); });
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) { ENTER(); *free = 3; *total = 7; return 0; }
int cuMemFreeHost(void* p) { ENTER(); free(p); return 0; }
#ifndef INCOMPLETE
int cuMemHostAlloc(void** p, size_t n, unsigned) {
  ENTER(std::to_string(n));
  *p = malloc(n);
  memset(*p, 0xa5, n);
  return 0;
}
#endif
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* stream) {
  ENTER(std::to_string(n));
  give([=] { memcpy((void*)to, from, n); });
  return stream ? 1 : 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* stream) {
  ENTER(std::to_string(n));
  give([=] { memcpy(to, (void*)from, n); });
  return stream ? 1 : 0;
}

int cuEventCreate(void** e, unsigned flags) { ENTER(); *e = new Event; return flags == 2 ? 0 : 1; }
int cuEventRecord(void* e, void* stream) {
  ENTER();
  ((Event*)e)->position = given;
  return stream ? 1 : 0;
}
int cuEventQuery(void* e) { ENTER(); return ((Event*)e)->position > done ? 600 : 0; }
int cuEventSynchronize(void* e) { ENTER(); finish(((Event*)e)->position); return 0; }
int cuEventDestroy_v2(void* e) { ENTER(); delete (Event*)e; return 0; }

// NVRTC asks for tables of functions that are not published. One of no length has none.
int cuGetExportTable(const void** table, const void*) {
  static const size_t length = sizeof length;
  *table = &length;
  return 0;
}

int cuGetErrorName(int code, const char** text) {
  switch (code) {
    case 2: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 700: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    case 803: *text = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
  }
  return 1;
}
int cuGetErrorString(int code, const char** text) {
  switch (code) {
    case 2: *text = "out of memory"; return 0;
    case 700: *text = "an illegal memory access was encountered"; return 0;
    case 803: *text = "system has unsupported display driver / cuda driver combination"; return 0;
  }
  return 1;
}
}
