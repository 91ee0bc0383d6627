// A stand-in for an NVIDIA driver, as far as it can be seen from outside, without a GPU.
// README.md says which mistakes it shows.
//
// FAKE_VERSION, FAKE_DEVICES, FAKE_MULTIPROCESSORS: its properties.
// FAKE_MEMORY: bytes of its memory; 16 GiB without it.
// FAKE_FAIL="cuInit=803;cuLaunchKernel@2=700" lets calls fail, from the second one on
// with @2 (only then, below 700; every call of any function afterwards, from 700).
// FAKE_LOG names a file to which calls are written.

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory.h"
#include "pretend.h"
#include "work.h"

namespace {
using pretend::mistake;

struct Event { uint64_t place = 0; std::chrono::steady_clock::time_point time; };

// A compiled program, or, in a real cubin's place, one whose only entry is `fill`. Never
// freed, so that work can look.
struct Module {
  void* library = nullptr;
  bool loaded = true;
};

using Run = void (*)(const void* args, long long first, long long end);
// Of a program that was translated from PTX.
using Launch = void (*)(const void* args, unsigned blocks, unsigned lanes, unsigned shared);

struct Function {
  Module* module;
  Run run = nullptr;  // none for `fill`
  Launch launch = nullptr;
  size_t bytes = 16;  // of its struct
  unsigned stack = 0;
};

// Never freed: other libraries call until the process ends.
std::recursive_mutex& guard = *new std::recursive_mutex;
pretend::Stream& stream = *new pretend::Stream;
std::map<std::string, int>& calls = *new std::map<std::string, int>;
std::map<const uint8_t*, size_t>& pinned = *new std::map<const uint8_t*, size_t>;
int sticky = 0;
uint64_t stacks = 0;  // bytes of local memory that are set aside

long long number(const char* name, long long otherwise) {
  const char* text = getenv(name);
  return text ? atoll(text) : otherwise;
}

pretend::Memory& memory() {
  static auto* all = new pretend::Memory(number("FAKE_MEMORY", 16ll << 30));
  return *all;
}

int multiprocessors() { return (int)number("FAKE_MULTIPROCESSORS", 132); }
constexpr int RESIDENT = 2048;

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

// Whether a word is the address of ordinary memory of the host. Numbers of a struct are far from
// where the system puts programs and their heaps.
bool is_hosts(uint64_t word) {
  if (word < 0x500000000000 || word >= 0x800000000000) return false;
  unsigned char resident;
  void* page = (void*)(word & ~uint64_t(4095));
  return !pretend::is_device((void*)word) && !pretend::is_pinned((void*)word, 1) && mincore(page, 1, &resident) == 0;
}

// Addresses of the device in a struct become those that its work can reach.
std::vector<uint64_t> reachable(const void* args, size_t bytes) {
  std::vector<uint64_t> words(bytes / 8 + 1);
  memcpy(words.data(), args, bytes);
  for (uint64_t& word : words) {
    if (is_hosts(word)) mistake("an address in a kernel's arguments is not the device's");
    word = (uint64_t)pretend::reach((void*)word);
  }
  return words;
}

// Local memory for every thread that can be resident, once, as large as the largest yet.
bool set_aside(unsigned stack) {
  const uint64_t need = (uint64_t)stack * RESIDENT * multiprocessors();
  if (need <= stacks) return true;
  if (!memory().reserve(need - stacks)) return false;
  stacks = need;
  return true;
}

void only_the_devices(const void* address, size_t n) {
  if (n > 0 && !pretend::is_device(address)) mistake("an address of a copy is not the device's");
}

void copy_to_device(void* to, const void* from, size_t n) {
  only_the_devices(to, n);
  auto sent = std::make_shared<std::vector<uint8_t>>((const uint8_t*)from, (const uint8_t*)from + n);
  stream.give([=] { memcpy(pretend::reach(to), from, n); },
              [=] {
                if (memcmp(sent->data(), from, n) != 0)
                  mistake("the source of a copy to the device was changed before anybody waited for the copy");
              });
}

void copy_to_host(void* to, const void* from, size_t n) {
  only_the_devices(from, n);
  auto sent = std::make_shared<std::vector<uint8_t>>(n);
  memset(to, 0xff, n);
  stream.give([=] { memcpy(sent->data(), pretend::reach(from), n); },
              [=] { memcpy(to, sent->data(), n); });
}
}  // namespace

namespace pretend {
bool is_device(const void* address) { return within(address); }

void* reach(const void* address) {
  return within(address) ? own + ((const uint8_t*)address - shown) : (void*)address;
}

void run() {
  std::lock_guard<std::recursive_mutex> lock(guard);
  stream.run(stream.given());
}

void land_later(std::function<void()> land) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  stream.give({}, std::move(land));
}

bool is_pinned(const void* address, std::size_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  const auto* p = (const uint8_t*)address;
  auto after = pinned.upper_bound(p);
  if (after == pinned.begin()) return false;
  --after;
  return p + bytes <= after->first + after->second;
}
}  // namespace pretend

#define ENTER(...) \
  std::lock_guard<std::recursive_mutex> lock(guard); \
  if (int code = enter(__func__, std::string(__VA_ARGS__))) return code

extern "C" {
int cuDriverGetVersion(int* v) { ENTER(); *v = (int)number("FAKE_VERSION", 13000); return 0; }
int cuInit(unsigned flags) {
  ENTER();
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  return flags != 0 ? 1 : visible && *visible == 0 ? 100 : 0;
}
int cuDeviceGetCount(int* n) { ENTER(); *n = (int)number("FAKE_DEVICES", 2); return 0; }
int cuDeviceGet(int* d, int ordinal) { ENTER(); *d = ordinal; return 0; }
int cuDeviceGetName(char* name, int n, int) { ENTER(); snprintf(name, n, "Fake GPU"); return 0; }
int cuDeviceGetUuid_v2(uint8_t* bytes, int d) {
  ENTER();
  for (int i = 0; i < 16; i++) bytes[i] = (uint8_t)(i == 0 ? d : 16 * i);
  return 0;
}
int cuDeviceGetAttribute(int* v, int what, int) {
  ENTER();
  *v = what == 75 ? 9 : what == 76 ? 0 : what == 16 ? multiprocessors() : what == 97 ? 232448 : what == 39 ? RESIDENT : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** c, int) { ENTER(); *c = &guard; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { ENTER(); return 0; }
int cuCtxSetCurrent(void* c) { return c == &guard ? 0 : 201; }
int cuCtxSynchronize() { ENTER(); stream.wait(stream.given()); return 0; }

// A file, as the pretend compiler makes it, or a cubin.
int cuModuleLoadData(void** m, const void* image) {
  ENTER();
  const auto* bytes = (const uint8_t*)image;
  if (memcmp(bytes, "\x7f" "ELF", 4) != 0) return 200;
  auto* module = new Module;
  const uint16_t machine = bytes[18] | bytes[19] << 8;
  if (machine == 62) {  // x86-64
    uint64_t sections = 0;
    memcpy(&sections, bytes + 40, 8);
    const size_t length = sections + (bytes[58] | bytes[59] << 8) * (size_t)(bytes[60] | bytes[61] << 8);
    char path[] = "/tmp/pretend-gpu-XXXXXX";
    const int file = mkstemp(path);
    const bool written = file >= 0 && write(file, image, length) == (ssize_t)length;
    if (file >= 0) close(file);
    if (written) module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (file >= 0) unlink(path);
    if (!module->library) { delete module; return 200; }
  }
  *m = module;
  return 0;
}
// Waits for nothing: NVIDIA's does not promise to.
int cuModuleUnload(void* m) { ENTER(); ((Module*)m)->loaded = false; return 0; }
int cuModuleGetFunction(void** f, void* m, const char* name) {
  ENTER(name);
  auto* module = (Module*)m;
  auto* function = new Function{module};
  if (module->library) {
    function->run = (Run)dlsym(module->library, name);
    function->launch = (Launch)dlsym(module->library, (std::string(name) + "_launch").c_str());
    if (!function->run && !function->launch) { delete function; return 500; }
    const std::string bytes = std::string(name) + "_bytes";
    const auto* size = (const unsigned*)dlsym(module->library, bytes.c_str());
    if (size) function->bytes = *size;
    const auto* stack = (const unsigned*)dlsym(module->library, "pretend_stack");
    if (stack) function->stack = *stack;
  } else if (strcmp(name, "fill") != 0) {
    delete function;
    return 500;
  }
  *f = function;
  return 0;
}
int cuFuncGetAttribute(int* v, int what, void* f) {
  ENTER();
  *v = what == 0 ? 1024 : what == 3 ? (int)((Function*)f)->stack : 0;
  return 0;
}
int cuFuncGetParamInfo(void* f, size_t index, size_t* offset, size_t* size) {
  if (index > 0) return 1;
  *offset = 0;
  *size = ((Function*)f)->bytes;
  return 0;
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* on, void** parameters, void** extra) {
  ENTER(std::to_string(gx) + " x " + std::to_string(bx));
  const auto* function = (Function*)f;
  const Module* module = function->module;
  if (!module->loaded || gy * gz * by * bz != 1 || (shared != 0 && !function->launch) || on || extra || gx == 0) return 1;
  if (!set_aside(function->stack)) return 2;
  // The parameter is copied at once.
  auto args = std::make_shared<std::vector<uint64_t>>(reachable(parameters[0], function->bytes));
  const long long threads = (long long)gx * bx;
  stream.give([=] {
    if (function->run || function->launch) {
      if (!module->loaded) mistake("a program was unloaded before its launch had ended");
      if (function->launch) return function->launch(args->data(), gx, bx, shared);
      return function->run(args->data(), 0, threads);
    }
    struct { uint32_t* out; uint32_t n, value; } fill;
    memcpy(&fill, args->data(), sizeof fill);
    for (long long i = 0; i < threads; ++i)
      if (i < fill.n) fill.out[i] = module->loaded ? fill.value + uint32_t(i) : 0xdead;
  });
  return 0;
}

int cuMemAlloc_v2(uint64_t* p, size_t n) {
  ENTER(std::to_string(n));
  *p = memory().allocate(n);
  return *p ? 0 : 2;
}
int cuMemFree_v2(uint64_t p) {
  ENTER();
  stream.wait(stream.given());
  return memory().release(p) ? 0 : 1;
}
int cuMemsetD8Async(uint64_t p, unsigned char v, size_t n, void*) {
  ENTER();
  stream.give([=] { memset(pretend::reach((void*)p), v, n); });
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER();
  *free = memory().free();
  *total = memory().total();
  return 0;
}
int cuMemFreeHost(void* p) {
  ENTER();
  stream.wait(stream.given());
  pinned.erase((const uint8_t*)p);
  free(p);
  return 0;
}
#ifndef INCOMPLETE
int cuMemHostAlloc(void** p, size_t n, unsigned) {
  ENTER(std::to_string(n));
  *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096 + (n ? 0 : 4096));
  if (!*p) return 2;
  memset(*p, 0xa5, n);
  pinned[(const uint8_t*)*p] = n;
  return 0;
}
#endif
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* on) {
  ENTER(std::to_string(n));
  copy_to_device((void*)to, from, n);
  return on ? 1 : 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* on) {
  ENTER(std::to_string(n));
  copy_to_host(to, (const void*)from, n);
  return on ? 1 : 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void* on) {
  ENTER(std::to_string(n));
  stream.give([=] { memcpy(pretend::reach((void*)to), pretend::reach((const void*)from), n); });
  return on ? 1 : 0;
}

int cuEventCreate(void** e, unsigned flags) { ENTER(); *e = new Event; return flags == 2 ? 0 : 1; }
int cuEventRecord(void* e, void* on) {
  ENTER();
  ((Event*)e)->place = stream.given();
  ((Event*)e)->time = std::chrono::steady_clock::now();
  return on ? 1 : 0;
}
int cuEventQuery(void* e) { ENTER(); return ((Event*)e)->place > stream.landed() ? 600 : 0; }
int cuEventSynchronize(void* e) { ENTER(); stream.wait(((Event*)e)->place); return 0; }
// There is one stream: what the other one waits for has been given before what it does. It is
// told in the log.
int cuStreamWaitEvent(void* other, void*, unsigned flags) {
  ENTER(std::to_string((uint64_t)other));
  return flags == 0 ? 0 : 1;
}
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  ENTER();
  *milliseconds = std::chrono::duration<float, std::milli>(((Event*)end)->time - ((Event*)begin)->time).count();
  return 0;
}
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
    case 802: *text = "CUDA_ERROR_SYSTEM_NOT_READY"; return 0;
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
