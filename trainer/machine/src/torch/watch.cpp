// Which operators libtorch runs on this thread, by name; see guarded.h for the
// conventions.

#include <ATen/record_function.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "guarded.h"

namespace {

// Operators that describe memory anew, ask for it, or hand over to others: on a GPU they
// launch nothing themselves.
const std::set<std::string> without_launch = {
    "aten::_to_copy",      "aten::_unsafe_view", "aten::as_strided",    "aten::contiguous",
    "aten::detach",        "aten::diagonal",     "aten::empty",         "aten::empty_like",
    "aten::empty_strided", "aten::expand",       "aten::expand_as",     "aten::lift_fresh",
    "aten::narrow",        "aten::permute",      "aten::reshape",       "aten::resize_",
    "aten::resolve_conj",  "aten::resolve_neg",  "aten::select",        "aten::slice",
    "aten::squeeze",       "aten::t",            "aten::to",            "aten::transpose",
    "aten::unsqueeze",     "aten::view",
};

thread_local std::map<std::string, std::uint64_t> counts;
thread_local std::uint64_t launches = 0;
thread_local at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;

// How much was launched before an operator began.
struct Begun final : at::ObserverContext {
  std::uint64_t launches = 0;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  ++counts[function.name()];
  auto begun = std::make_unique<Begun>();
  begun->launches = launches;
  return begun;
}

// An operator that ran others left the launching to them.
void end(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* begun = static_cast<Begun*>(context);
  const bool own = begun->launches == launches;
  if (own && without_launch.count(function.name()) == 0) ++launches;
}

}  // namespace

extern "C" {

// From now on operators are counted, from nothing.
int ostler_torch_watch(char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    TORCH_CHECK(handle == at::INVALID_CALLBACK_HANDLE, "already counting");
    counts.clear();
    launches = 0;
    handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::FUNCTION}));
  });
}

// Ends that. Writes `NAME COUNT` lines into `text` (`text_size` bytes, terminated), and
// how many of them started something.
int ostler_torch_watched(char* text, std::size_t text_size, std::uint64_t* started,
                         char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    at::removeCallback(handle);
    handle = at::INVALID_CALLBACK_HANDLE;
    std::string all;
    for (const auto& [name, count] : counts) {
      all += name + ' ' + std::to_string(count) + '\n';
    }
    counts.clear();
    *started = launches;
    TORCH_CHECK(all.size() < text_size, "no room for ", all.size(), " bytes");
    std::memcpy(text, all.c_str(), all.size() + 1);
  });
}

}  // extern "C"
