// Several threads for one environment: a team. Work that falls into parts which do not
// need each other is divided by rank; all else every rank does for itself, with the same
// numbers, or the leader alone. Between two waits nobody reads what another writes, and
// every value comes of the same operations in the same order as with one thread: the
// bits are the same.
//
// A block of threads has as many environments as it has lanes (32 or fewer); their teams
// wait together. Branches around a wait are therefore taken by all of them, on
// `team_any`: as lanes of a vector do, environments with nothing to do go along.
#pragma once

#ifdef OSTLER_TEAM  // more than one
OSTLER_FN constexpr int team_size() { return OSTLER_TEAM; }
#ifdef __CUDACC__
// A warp has one rank of 32 environments: no branch on it is divergent.
OSTLER_FN int team_rank() { return (int)(threadIdx.x >> 5); }
OSTLER_FN void team_sync() { __syncthreads(); }
OSTLER_FN bool team_any(bool some) { return __syncthreads_or(some) != 0; }
#else
OSTLER_FN int team_rank() { return ostler_team::rank(); }
OSTLER_FN void team_sync() { ostler_team::wait(); }
OSTLER_FN bool team_any(bool some) { return ostler_team::vote(some); }
#endif
#else
OSTLER_FN constexpr int team_size() { return 1; }
OSTLER_FN constexpr int team_rank() { return 0; }
OSTLER_FN void team_sync() {}
template<class B> OSTLER_FN bool team_any(B some) { return any(some); }
#endif

OSTLER_FN bool team_leader() { return team_rank() == 0; }
// Whether item i of an array is this rank's where several loops must agree on it.
OSTLER_FN bool mine(int i) { return team_size() == 1 || i % team_size() == team_rank(); }
// The items that are this rank's.
#define OSTLER_EACH(i, n) for (int i = team_rank(); i < (n); i += team_size())
