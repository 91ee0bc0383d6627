// A stand-in for NVRTC: a program's text becomes a shared library by the host's compiler, which
// the pretend driver loads. Programs compile as C++17 where __CUDACC__ is not defined.
//
// FAKE_STACK: bytes of local memory that every entry is said to need.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

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

int compile(Program& p) {
  char folder[] = "/tmp/pretend-nvrtc-XXXXXX";
  if (!mkdtemp(folder)) return INTERNAL;
  const std::string in = std::string(folder) + "/program.cpp", out = std::string(folder) + "/program.so",
                    log = std::string(folder) + "/log";
  std::ofstream(in) << p.text << "\nextern \"C\" __attribute__((visibility(\"default\"))) const unsigned pretend_stack = "
                    << stack() << ";\n";
  const char* cxx = getenv("OSTLER_CXX") ? getenv("OSTLER_CXX") : getenv("CXX") ? getenv("CXX") : "c++";
  const std::string base = std::string(cxx) +
                           " -std=c++17 -fno-math-errno -fno-trapping-math -ffp-contract=off -Wno-psabi -w"
                           " -fvisibility=hidden " + (__builtin_cpu_supports("avx2") ? "-mavx2 -mfma " : "");
  // What an entry needs is told by name: the macros that make entries are expanded first.
  const std::string expanded = std::string(folder) + "/expanded.ii";
  int code = run(base + "-E -P -o " + expanded + " " + in + " 2> " + log);
  if (code == 0) code = run(base + "-O1 -shared -fPIC -o " + out + " " + in + " 2> " + log);
  p.log = code == 0 ? needs(read(expanded)) : read(log);
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
