// The device's one stream. Work is put off until libtorch computes or somebody waits; what it
// copies to the host lands only when somebody waits.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>

namespace pretend {

struct Work {
  std::function<void()> run, land;
};

class Stream {
 public:
  std::uint64_t given() const { return given_; }
  std::uint64_t landed() const { return landed_; }

  void give(std::function<void()> run, std::function<void()> land = {}) {
    work_.push_back({std::move(run), std::move(land)});
    ++given_;
  }

  // Up to this place, in order.
  void run(std::uint64_t place) {
    while (ran_ < place && ran_ < given_) {
      auto run = std::move(work_[ran_ - landed_].run);
      ++ran_;
      if (run) run();
    }
  }

  void wait(std::uint64_t place) {
    run(place);
    while (landed_ < place && !work_.empty()) {
      auto land = std::move(work_.front().land);
      work_.pop_front();
      ++landed_;
      if (land) land();
    }
  }

 private:
  std::deque<Work> work_;  // given, not landed
  std::uint64_t given_ = 0, ran_ = 0, landed_ = 0;
};

[[noreturn]] inline void mistake(const char* text) {
  fprintf(stderr, "pretend GPU: %s\n", text);
  abort();
}

}  // namespace pretend
