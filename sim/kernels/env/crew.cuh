// Teams on the host's stand-in for a device: the ranks of a few environments, each on a
// stack of its own, run in turn from one wait to the next. A rank that waits at another
// place than the rest would hang a device; here it ends the process.
#pragma once

#ifndef __CUDACC__
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

namespace ostler_team {
// Environments of a block.
enum { LANES = 3, STACK = 512 * 1024 };
struct Member {
  ucontext_t at;
  bool done;
  int lane, rank;
  unsigned waits, votes;
};
struct Crew {
  Member members[LANES * OSTLER_TEAM];
  char* stacks;
  ucontext_t home;
  volatile int now;
  volatile bool votes[3];
  void (*task)(void* of, int lane);
  void* of;
};
static thread_local Crew crew;

static inline int rank() { return crew.members[crew.now].rank; }
static inline void wait() {
  Member& m = crew.members[crew.now];
  m.waits++;
  swapcontext(&m.at, &crew.home);
}
// Of three ballots one is counted, one is being read by ranks that are late, one is empty.
static inline bool vote(bool some) {
  const unsigned k = crew.members[crew.now].votes++;
  crew.votes[(k + 1) % 3] = false;
  if (some) crew.votes[k % 3] = true;
  wait();
  return crew.votes[k % 3];
}
static void enter() {
  Member& m = crew.members[crew.now];
  crew.task(crew.of, m.lane);
  m.done = true;
}
// Runs `task` on every rank of `lanes` environments, in the order of ranks or against it.
static void run(int lanes, bool backwards, void (*task)(void*, int), void* of) {
  if (!crew.stacks) crew.stacks = (char*)malloc((size_t)STACK * LANES * OSTLER_TEAM);
  if (!crew.stacks) abort();
  crew.task = task, crew.of = of;
  crew.votes[0] = crew.votes[1] = crew.votes[2] = false;
  const int all = lanes * OSTLER_TEAM;
  for (int i = 0; i < all; i++) {
    Member& m = crew.members[i];
    m.done = false, m.waits = m.votes = 0;
    m.lane = i % lanes, m.rank = i / lanes;
    getcontext(&m.at);
    m.at.uc_stack.ss_sp = crew.stacks + (size_t)STACK * i;
    m.at.uc_stack.ss_size = STACK;
    m.at.uc_link = &crew.home;
    makecontext(&m.at, enter, 0);
  }
  for (bool more = true; more;) {
    for (int k = 0; k < all; k++) {
      crew.now = backwards ? all - 1 - k : k;
      Member& m = crew.members[crew.now];
      if (!m.done) swapcontext(&crew.home, &m.at);
    }
    more = false;
    for (int i = 0; i < all; i++) {
      const Member &m = crew.members[i], &first = crew.members[0];
      more = more || !m.done;
      // Ranks other than the leader may end before it.
      if (m.waits != first.waits || m.votes != first.votes) {
        fprintf(stderr, "a team's rank %d waits %u times where its leader waits %u times\n", m.rank, m.waits, first.waits);
        abort();
      }
    }
  }
}
}  // namespace ostler_team
#endif
