// A stand-in for NVRTC: a program's text becomes a shared library by the host's compiler, which
// the pretend driver loads. Programs compile as C++17 where __CUDACC__ is not defined.
//
// FAKE_PTX: a folder with NVIDIA's NVRTC. It compiles the text to PTX, which is translated
// (ptx/translate.h), so that what runs is what a GPU would be given, up to its assembler.
// FAKE_COUNTS: with FAKE_PTX, a file that gets a line for each launch, or for every
// FAKE_COUNTS_EVERY-th of an entry: what warps execute.
// FAKE_SCHEDULE: with FAKE_PTX and lanes that meet, `lockstep` or `alone`: each lane runs to
// its next meeting by itself, the last one first.
// FAKE_STACK: bytes of local memory that every entry is said to need.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "ptx/translate.h"

namespace {
enum { DONE = 0, OUT_OF_MEMORY = 1, COMPILATION = 6, INTERNAL = 11 };

struct Program {
  std::string text, code, log;
};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

std::string stack() {
  const char* text = getenv("FAKE_STACK");
  return text ? text : "0";
}

// As ptxas tells it.
std::string needs(const std::string& text) {
  const std::string parameters = "(const void* args, long long first, long long end)";
  std::ostringstream log;
  for (size_t at = text.find(parameters); at != std::string::npos; at = text.find(parameters, at + 1)) {
    size_t begin = at;
    while (begin > 0 && (isalnum((unsigned char)text[begin - 1]) || text[begin - 1] == '_')) --begin;
    log << "ptxas info    : Compiling entry function '" << text.substr(begin, at - begin) << "' for 'sm_90'\n"
        << "ptxas         .     " << stack() << " bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        << "ptxas info    : Used 32 registers, used 0 barriers\n";
  }
  return log.str();
}

int run(const std::string& command) {
  const int status = system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// What ptxas would say, by what PTX says.
std::string needs(const ptx::Translator& program) {
  std::ostringstream log;
  for (const auto& [name, bytes] : program.entries())
    log << "ptxas info    : Compiling entry function '" << name << "' for 'sm_90'\n"
        << "ptxas         .     " << program.stack(name) << " bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        << "ptxas info    : Used 32 registers, used 0 barriers\n";
  return log.str();
}

// NVIDIA's NVRTC.
class Nvrtc {
 public:
  explicit Nvrtc(const std::string& folder) {
    // It looks for these by their name alone.
    dlopen((folder + "/libnvrtc-builtins.so.13.0").c_str(), RTLD_NOW | RTLD_LOCAL);
    library_ = dlopen((folder + "/libnvrtc.so.13").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library_) problem_ = dlerror();
  }
  // PTX, or the log behind false.
  std::pair<bool, std::string> compile(const std::string& text) {
    if (!library_) return {false, problem_};
    void* program = nullptr;
    if (call<int(void**, const char*, const char*, int, const char* const*, const char* const*)>("nvrtcCreateProgram")(
            &program, text.c_str(), "program.cu", 0, nullptr, nullptr) != DONE)
      return {false, "nvrtcCreateProgram fails"};
    const char* options[] = {"--gpu-architecture=compute_90", "--std=c++17", "--fmad=false", "-default-device", "--disable-warnings", "-lineinfo"};
    const bool done = call<int(void*, int, const char* const*)>("nvrtcCompileProgram")(program, 6, options) == DONE;
    size_t size = 0;
    call<int(void*, size_t*)>(done ? "nvrtcGetPTXSize" : "nvrtcGetProgramLogSize")(program, &size);
    std::string out(size, 0);
    call<int(void*, char*)>(done ? "nvrtcGetPTX" : "nvrtcGetProgramLog")(program, &out[0]);
    call<int(void**)>("nvrtcDestroyProgram")(&program);
    return {done, out.c_str()};
  }

 private:
  void* library_ = nullptr;
  std::string problem_;
  template <class F>
  F* call(const char* name) { return (F*)dlsym(library_, name); }
};

int compile(Program& p) {
  const char* nvrtc = getenv("FAKE_PTX");
  std::string text = p.text, said;
  if (nvrtc && *nvrtc) {
    static auto* real = new Nvrtc(nvrtc);
    auto [done, ptx] = real->compile(text);
    if (!done) {
      p.log = ptx;
      return COMPILATION;
    }
    try {
      ptx::Translator translator;
      text = translator.translate(ptx, getenv("FAKE_COUNTS") != nullptr);
      said = needs(translator);
    } catch (const std::exception& e) {
      p.log = e.what();
      return COMPILATION;
    }
  }
  char folder[] = "/tmp/pretend-nvrtc-XXXXXX";
  if (!mkdtemp(folder)) return INTERNAL;
  const std::string in = std::string(folder) + "/program.cpp", out = std::string(folder) + "/program.so",
                    log = std::string(folder) + "/log";
  std::ofstream(in) << text << "\nextern \"C\" __attribute__((visibility(\"default\"))) const unsigned pretend_stack = "
                    << stack() << ";\n";
  const char* cxx = getenv("OSTLER_CXX") ? getenv("OSTLER_CXX") : getenv("CXX") ? getenv("CXX") : "c++";
  const std::string base = std::string(cxx) +
                           " -std=c++17 -fno-math-errno -fno-trapping-math -ffp-contract=off -Wno-psabi -w"
                           " -fvisibility=hidden -I " PRETEND_PTX " " + (__builtin_cpu_supports("avx2") ? "-mavx2 -mfma " : "");
  // What an entry needs is told by name: the macros that make entries are expanded first.
  const std::string expanded = std::string(folder) + "/expanded.ii";
  int code = said.empty() ? run(base + "-E -P -o " + expanded + " " + in + " 2> " + log) : 0;
  if (code == 0) code = run(base + (said.empty() ? "-Og -DOSTLER_SMALL" : "-O1") + " -shared -fPIC -o " + out + " " + in + " 2> " + log);
  p.log = code != 0 ? read(log) : said.empty() ? needs(read(expanded)) : said;
  p.code = code == 0 ? read(out) : "";
  run("rm -rf " + std::string(folder));
  return code == 0 ? DONE : COMPILATION;
}
}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) { *major = 13; *minor = 0; return DONE; }
int nvrtcGetNumSupportedArchs(int* n) { *n = 1; return DONE; }
int nvrtcGetSupportedArchs(int* all) { *all = 90; return DONE; }
int nvrtcCreateProgram(void** p, const char* text, const char*, int, const char* const*, const char* const*) {
  *p = new Program{text, "", ""};
  return DONE;
}
int nvrtcDestroyProgram(void** p) { delete (Program*)*p; *p = nullptr; return DONE; }
int nvrtcCompileProgram(void* p, int, const char* const*) { return compile(*(Program*)p); }
int nvrtcGetCUBINSize(void* p, size_t* n) { *n = ((Program*)p)->code.size(); return DONE; }
int nvrtcGetCUBIN(void* p, char* to) {
  const auto& code = ((Program*)p)->code;
  memcpy(to, code.data(), code.size());
  return DONE;
}
int nvrtcGetProgramLogSize(void* p, size_t* n) { *n = ((Program*)p)->log.size() + 1; return DONE; }
int nvrtcGetProgramLog(void* p, char* to) {
  const auto& log = ((Program*)p)->log;
  memcpy(to, log.c_str(), log.size() + 1);
  return DONE;
}
const char* nvrtcGetErrorString(int code) { return code == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INTERNAL_ERROR"; }
}
