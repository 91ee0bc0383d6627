// What a translated program (translate.h) is made of: PTX's operations, and the lanes of a block
// where they have to meet or are counted.
//
// COOPERATES: 1 if lanes meet (barriers, shuffles, votes, shared memory).
// COUNTED: 1 if what a warp executes is counted.
#pragma once

#include <cxxabi.h>
#include <sys/mman.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#define INLINE static inline __attribute__((always_inline))

// Registers hold bits; an operation reads them as its type says.
template <class To, class From>
INLINE To bits(From from) {
  To to;
  static_assert(sizeof to == sizeof from, "");
  memcpy(&to, &from, sizeof to);
  return to;
}
template <class T>
INLINE T load(u64 address) {
  T value;
  memcpy(&value, (const void*)address, sizeof value);
  return value;
}
template <class T>
INLINE void store(u64 address, T value) { memcpy((void*)address, &value, sizeof value); }

// IEEE's minimum and maximum of PTX: a number before NaN, -0 before 0.
template <class T>
INLINE T least(T a, T b) { return a != a ? b : b != b ? a : a < b || (a == b && std::signbit(a)) ? a : b; }
template <class T>
INLINE T most(T a, T b) { return a != a ? b : b != b ? a : a > b || (a == b && std::signbit(b)) ? a : b; }
// To a whole number, as far as the type reaches; NaN is 0. Both float types fit in a double.
template <class T>
INLINE T whole(f64 x) {
  if (x != x) return 0;
  const f64 top = std::ldexp(1.0, sizeof(T) * 8 - (T(-1) < T(0)));
  if (x >= top) return T(-1) < T(0) ? T(~(u64(1) << (sizeof(T) * 8 - 1))) : T(-1);
  if (x <= (T(-1) < T(0) ? -top : 0)) return T(-1) < T(0) ? T(u64(1) << (sizeof(T) * 8 - 1)) : 0;
  return (T)x;
}
// The sum, rounded towards zero.
INLINE f32 sum_to_zero(f32 a, f32 b) {
  const f64 exact = (f64)a + (f64)b;
  const f32 near = (f32)exact;
  if (near != near || std::isinf(near)) return near;
  return std::fabs((f64)near) > std::fabs(exact) ? std::nextafter(near, 0.0f) : near;
}
template <class T>
INLINE T shifted_left(T x, u32 by) { return by >= sizeof(T) * 8 ? 0 : T(x << by); }
template <class T>
INLINE T shifted_right(T x, u32 by) {
  const u32 size = sizeof(T) * 8;
  return by < size ? T(x >> by) : T(-1) < T(0) ? T(x >> (size - 1)) : T(0);
}
INLINE u32 chosen_bits(u32 a, u32 b, u32 c, u32 table) {
  u32 out = 0;
  for (u32 k = 0; k < 8; ++k)
    if (table >> k & 1) out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return out;
}
INLINE u32 reversed(u32 x) {
  u32 out = 0;
  for (u32 k = 0; k < 32; ++k) out |= (x >> k & 1) << (31 - k);
  return out;
}
// `b` with the low `count` bits of `a` in place of its own from `at` on.
template <class T>
INLINE T with_bits(T a, T b, u32 at, u32 count) {
  const u32 size = sizeof(T) * 8;
  at &= 255, count = std::min(count & 255, size - std::min(at, size));
  if (at >= size || count == 0) return b;
  const T ones = (count >= size ? T(-1) : T((T(1) << count) - 1)) << at;
  return (b & ~ones) | ((a << at) & ones);
}
INLINE u32 permuted(u32 a, u32 b, u32 how) {
  const u64 both = (u64)b << 32 | a;
  u32 out = 0;
  for (u32 k = 0; k < 4; ++k) {
    const u32 nibble = how >> (4 * k) & 15;
    u32 byte = both >> (8 * (nibble & 7)) & 255;
    if (nibble & 8) byte = byte & 128 ? 255 : 0;
    out |= byte << (8 * k);
  }
  return out;
}

// A straight piece of a function, and what one execution of it costs.
struct Piece {
  const char* function;
  float instructions;
  u16 doubles, local_loads, local_stores;
};
extern const Piece PIECES[];

static u32 LANE, BLOCK, LANES, BLOCKS;  // %tid.x, %ctaid.x, %ntid.x, %nctaid.x

#if COOPERATES || COUNTED

namespace run {
enum Wait { NOTHING, WARP, SHUFFLE, VOTE, WHOLE_BLOCK, ENDED };

struct Lane {
  void* stack = nullptr;
  u8* memory = nullptr;  // of that stack
  Wait wait = NOTHING;
  u32 depth = 0, piece = 0, mask = 0;
  const char* place = "";
  // What it brings to a meeting, and takes from it.
  u32 kind = 0, value = 0, operand = 0, clamp = 0, valid = 0;
  std::vector<u32> seen;  // of each lane's steps between meetings, those that came before its own
  std::vector<u64> touched;    // lines of memory, of a piece
};

constexpr size_t STACK = 8 << 20;
static Lane lanes[1024];  // the first LANES of them
static Lane* me;
static void* scheduler;
static void (*body)(const u8*);
static const u8* arguments;
static bool lockstep, counting;
static std::vector<u8> shared;
struct Word { u32 writer = ~0u, when = 0; bool atomic = false; std::vector<u32> read; };
static std::vector<Word> words;  // of shared memory

// Of a launch.
struct Counts {
  double lanes = 0, warp = 0, doubles = 0, local_loads = 0, local_stores = 0, lines = 0, footprint = 0;
  std::unordered_set<u64> distinct;  // of a block
  std::map<std::string, std::pair<double, double>> functions;  // instructions of lanes, of warps
};
static Counts counts;

[[noreturn]] static void mistake(const std::string& what) {
  fprintf(stderr, "pretend GPU: %s (block %u, lane %u, %s)\n", what.c_str(), BLOCK, LANE, me ? me->place : "");
  abort();
}
static std::string hex(u32 x) {
  char text[16];
  snprintf(text, sizeof text, "0x%08x", x);
  return text;
}

// Keeps what a function of x86-64's System V keeps, on its own stack, and goes on with another.
// (noipa: the compiler may not conclude from it that memory stays as it is.)
__attribute__((naked, noipa)) static void change(void** from, void* to) {
  asm("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
      "movq %rsp, (%rdi); movq %rsi, %rsp\n"
      "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}
static void pause() { change(&me->stack, scheduler); }
static void begin() {
  body(arguments);
  me->wait = ENDED;
  pause();
}
static void start(Lane& lane) {
  if (!lane.memory) {
    lane.memory = (u8*)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (lane.memory == MAP_FAILED) abort();
  }
  auto** top = (void**)(lane.memory + STACK) - 1;  // as a call leaves it
  *--top = (void*)begin;
  top -= 6;
  lane.stack = top;
  lane.wait = NOTHING;
  lane.depth = lane.piece = 0;
}

static u32 index(const Lane& lane) { return (u32)(&lane - lanes); }
static u32 first_of(u32 lane) { return lane & ~31u; }

// What was done before this meeting is before what comes after it.
static void joined(const std::vector<u32>& who) {
  std::vector<u32> all(LANES);
  for (u32 l : who)
    for (size_t k = 0; k < all.size(); ++k) all[k] = std::max(all[k], lanes[l].seen[k]);
  for (u32 l : who) {
    lanes[l].seen = all;
    ++lanes[l].seen[l];
  }
}

static void answer(Lane& lane, const std::vector<u32>& who) {
  const u32 l = index(lane) & 31;
  if (lane.wait == VOTE) {
    u32 ballot = 0;
    for (u32 k : who) ballot |= (lanes[k].value & 1) << (k & 31);
    const u32 all = lane.mask;
    lane.operand = lane.kind == 'b' ? ballot : lane.kind == 'a' ? ballot == all : lane.kind == 'n' ? ballot != 0 : ballot == 0 || ballot == all;
    return;
  }
  if (lane.wait != SHUFFLE) return;
  // As PTX's manual has it.
  const u32 b = lane.operand & 31, c = lane.clamp & 31, part = lane.clamp >> 8 & 31;
  const u32 high = (l & part) | (c & ~part), low = l & part;
  s32 from = 0;
  bool valid = false;
  switch (lane.kind) {
    case 'u': from = (s32)l - (s32)b; valid = from >= (s32)high; break;
    case 'd': from = l + b; valid = from <= (s32)high; break;
    case 'b': from = l ^ b; valid = from <= (s32)high; break;
    default: from = low | (b & ~part); valid = from <= (s32)high;
  }
  if (!valid) from = l;
  LANE = index(lane);
  me = &lane;
  if (!(lane.mask >> from & 1)) mistake("a shuffle from lane " + std::to_string(from) + ", which takes no part (mask " + hex(lane.mask) + ")");
  lane.valid = valid;
  lane.operand = lanes[first_of(index(lane)) + from].value;
}

// Whether those that this lane waits for have come; then they go on.
static void meet(Lane& lane) {
  std::vector<u32> who;
  if (lane.wait == WHOLE_BLOCK) {
    for (u32 l = 0; l < LANES; ++l) {
      if (lanes[l].wait != WHOLE_BLOCK || strcmp(lanes[l].place, lane.place)) return;
      who.push_back(l);
    }
  } else {
    for (u32 k = 0; k < 32; ++k) {
      if (!(lane.mask >> k & 1)) continue;
      const u32 l = first_of(index(lane)) + k;
      if (l >= LANES) return;
      const Lane& other = lanes[l];
      if (other.wait != lane.wait || other.mask != lane.mask || other.kind != lane.kind) return;
      who.push_back(l);
    }
  }
  for (u32 l : who) answer(lanes[l], who);
  // A shuffle and a vote order nothing in memory.
  if (lane.wait == WARP || lane.wait == WHOLE_BLOCK) joined(who);
  for (u32 l : who) lanes[l].wait = NOTHING;
}

static void wait(Wait what, u32 mask, u32 kind, const char* place) {
  me->wait = what;
  me->mask = mask;
  me->kind = kind;
  me->place = place;
  if (what != WHOLE_BLOCK && !(mask >> (LANE & 31) & 1)) mistake("a lane is not in its own mask " + hex(mask));
  pause();
}

// Nobody can go on.
[[noreturn]] static void stuck() {
  for (u32 l = 0; l < LANES; ++l) {
    Lane& lane = lanes[l];
    if (lane.wait == ENDED) continue;
    me = &lane;
    LANE = l;
    std::string others;
    for (u32 k = 0; k < LANES; ++k) {
      const Lane& other = lanes[k];
      const bool awaited = lane.wait == WHOLE_BLOCK || (first_of(index(other)) == first_of(LANE) && (lane.mask >> (index(other) & 31) & 1));
      if (!awaited || (other.wait == lane.wait && !strcmp(other.place, lane.place) && other.mask == lane.mask)) continue;
      others += " " + std::to_string(index(other)) + (other.wait == ENDED ? " (ended)" : std::string(" (waits at ") + other.place + ")");
      if (others.size() > 60) break;
    }
    if (lane.wait != WHOLE_BLOCK && LANES - first_of(LANE) < 32 && lane.mask >> (LANES - first_of(LANE))) others += " some that the block does not have";
    mistake(std::string(lane.wait == WHOLE_BLOCK ? "a barrier that not all lanes reach" : "lanes of mask " + hex(lane.mask) + " do not come") + ", among them" + others);
  }
  abort();
}

static void go_on(Lane& lane) {
  me = &lane;
  LANE = index(lane);
  change(&scheduler, lane.stack);
  if (lane.wait != NOTHING && lane.wait != ENDED) meet(lane);
}

// All lanes of a warp that stand at the same piece, in the deepest call, at the first piece there.
static bool step_together(u32 warp) {
  const u32 end = std::min(warp + 32, LANES);
  std::vector<u32> who;
  for (u32 l = warp; l < end; ++l) {
    const Lane& lane = lanes[l];
    if (lane.wait != NOTHING) continue;
    if (!who.empty()) {
      const Lane& best = lanes[who[0]];
      if (lane.depth < best.depth || (lane.depth == best.depth && lane.piece > best.piece)) continue;
      if (lane.depth != best.depth || lane.piece != best.piece) who.clear();
    }
    who.push_back(l);
  }
  if (who.empty()) return false;
  const Piece& piece = PIECES[lanes[who[0]].piece];
  std::vector<std::set<u64>> lines;
  for (u32 l : who) {
    lanes[l].touched.clear();
    go_on(lanes[l]);
    for (size_t k = 0; k < lanes[l].touched.size(); ++k) {
      if (lines.size() <= k) lines.emplace_back();
      lines[k].insert(lanes[l].touched[k]);
    }
  }
  if (counting) {
    counts.lanes += piece.instructions * who.size();
    counts.warp += piece.instructions;
    counts.doubles += piece.doubles;
    counts.local_loads += piece.local_loads;
    counts.local_stores += piece.local_stores;
    for (const auto& access : lines) {
      counts.lines += access.size();
      counts.distinct.insert(access.begin(), access.end());
    }
    auto& of = counts.functions[piece.function];
    of.first += piece.instructions * who.size();
    of.second += piece.instructions;
  }
  return true;
}

static void block(void (*entry)(const u8*), const u8* args, u32 bytes) {
  body = entry;
  arguments = args;
  if (LANES > 1024) mistake("a block of more than 1,024 lanes");
  shared.assign(bytes + 16, 0xff);
  words.assign(bytes / 4 + 4, {});
  for (u32 l = 0; l < LANES; ++l) {
    start(lanes[l]);
    lanes[l].seen.assign(LANES, 0);
    lanes[l].seen[l] = 1;
  }
  for (;;) {
    bool moved = false;
    for (u32 l = LANES; l-- > 0 && !lockstep;)
      while (lanes[l].wait == NOTHING) go_on(lanes[l]), moved = true;
    for (u32 warp = 0; lockstep && warp < LANES; warp += 32)
      while (step_together(warp)) moved = true;
    if (moved) continue;
    for (u32 l = 0; l < LANES; ++l)
      if (lanes[l].wait != ENDED) stuck();
    counts.footprint += counts.distinct.size();
    counts.distinct.clear();
    return;
  }
}

enum Use { READ, WRITE, ATOMIC };
// Words of shared memory that two lanes use, one of them to write, with no meeting between.
static void use(u32 offset, u32 size, Use how, const char* place) {
  me->place = place;
  if (offset + size > shared.size() - 16) mistake("shared memory ends before");
  for (u32 w = offset / 4; w <= (offset + size - 1) / 4; ++w) {
    Word& word = words[w];
    const auto before = [&](u32 lane, u32 when) { return lane == LANE || when <= me->seen[lane]; };
    if (word.writer != ~0u && !(how == ATOMIC && word.atomic) && !before(word.writer, word.when))
      mistake("a race on shared memory: byte " + std::to_string(offset) + (how == READ ? " is read" : " is written") + " and lane " + std::to_string(word.writer) + " has written it, no barrier between");
    if (how != READ) {
      for (u32 l = 0; l < word.read.size(); ++l)
        if (!before(l, word.read[l])) mistake("a race on shared memory: byte " + std::to_string(offset) + " is written and lane " + std::to_string(l) + " has read it, no barrier between");
      word.writer = LANE;
      word.when = me->seen[LANE];
      word.atomic = how == ATOMIC;
    } else {
      word.read.resize(LANES);
      word.read[LANE] = me->seen[LANE];
    }
  }
}

// A function's name without its type, namespaces, arguments and templates.
static std::string plain(const std::string& mangled) {
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr);
  std::string all = text ? text : mangled, name;
  free(text);
  const std::string nameless = "(anonymous namespace)::";
  for (size_t at; (at = all.find(nameless)) != std::string::npos;) all.erase(at, nameless.size());
  int depth = 0;
  for (char c : all) {
    if (c == '<') ++depth;
    else if (c == '>') --depth;
    else if (depth == 0) name += c;
  }
  name = name.substr(0, name.find('('));
  const size_t last = name.find_last_of(" :");
  return last == std::string::npos ? name : name.substr(last + 1);
}

// A word that all lanes have at one place of their stacks is one line of local memory.
INLINE void touch(u64 address, u32 size) {
  if (!counting) return;
  const u64 place = (u64)me->memory + STACK - address;
  if (place >= STACK) me->touched.push_back(address / 128);
  else for (u32 k = 0; k < size; k += 4) me->touched.push_back((place - k) / 4 | 1ull << 63 | (u64)(LANE / 32) << 48);
}
}  // namespace run

#define AT(n) do { run::me->piece = n; if (run::lockstep) run::pause(); } while (0)
#define ENTER ++run::me->depth
#define LEAVE --run::me->depth
#define SHARED ((u64)run::shared.data())
#define USE(offset, size, how, place) run::use((u32)(offset), size, run::how, place)
INLINE u32 shuffle(u32 kind, u32 value, u32 operand, u32 clamp, u32 mask, u32* valid, const char* place) {
  run::me->value = value;
  run::me->operand = operand;
  run::me->clamp = clamp;
  run::wait(run::SHUFFLE, mask, kind, place);
  *valid = run::me->valid;
  return run::me->operand;
}
INLINE u32 vote(u32 kind, u32 value, u32 mask, const char* place) {
  run::me->value = value;
  run::wait(run::VOTE, mask, kind, place);
  return run::me->operand;
}
INLINE void warp_barrier(u32 mask, const char* place) { run::wait(run::WARP, mask, 0, place); }
INLINE void barrier(const char* place) { run::wait(run::WHOLE_BLOCK, 0, 0, place); }
#else
#define AT(n)
#define ENTER
#define LEAVE
#endif

#if COUNTED
#define TOUCH(address, size) run::touch(address, size)
#else
#define TOUCH(address, size)
#endif

// All threads of a launch.
static void launch(const char* name, void (*entry)(const u8*), const void* args, u32 blocks, u32 lanes, u32 bytes) {
  LANES = lanes;
  BLOCKS = blocks;
#if COOPERATES || COUNTED
  const char* schedule = getenv("FAKE_SCHEDULE");
  static std::map<std::string, int> before;  // launches of each entry
  const char* every = getenv("FAKE_COUNTS_EVERY");
  run::counting = COUNTED && ++before[name] % (every ? atoi(every) : 1) == 0;
  run::lockstep = run::counting || (COOPERATES && (!schedule || strcmp(schedule, "alone")));
  run::counts = {};
  for (BLOCK = 0; BLOCK < blocks; ++BLOCK) run::block(entry, (const u8*)args, bytes);
  const char* path = getenv("FAKE_COUNTS");
  FILE* file = run::counting && path ? fopen(path, "a") : nullptr;
  if (!file) return;
  const auto& c = run::counts;
  fprintf(file, "{\"entry\": \"%s\", \"threads\": %.0f, \"lanes\": %.0f, \"warp\": %.0f, \"doubles\": %.0f, \"local_loads\": %.0f, \"local_stores\": %.0f, \"lines\": %.0f, \"footprint\": %.0f, \"functions\": {",
          name, (double)blocks * lanes, c.lanes, c.warp, c.doubles, c.local_loads, c.local_stores, c.lines, c.footprint);
  const char* comma = "";
  std::map<std::string, std::pair<double, double>> plain;
  for (const auto& [function, of] : c.functions) {
    auto& sum = plain[run::plain(function)];
    sum.first += of.first, sum.second += of.second;
  }
  for (const auto& [function, of] : plain) {
    fprintf(file, "%s\"%s\": [%.0f, %.0f]", comma, function.c_str(), of.first, of.second);
    comma = ", ";
  }
  fprintf(file, "}}\n");
  fclose(file);
#else
  (void)name, (void)bytes;
  for (BLOCK = 0; BLOCK < blocks; ++BLOCK)
    for (LANE = 0; LANE < lanes; ++LANE) entry((const u8*)args);
#endif
}
