// Several processes as one, over libtorch's own c10d: TCPStore and Gloo. See guarded.h for the
// conventions. Tensors lie on the host.

#define USE_C10D_GLOO
#include <ATen/core/Tensor.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "guarded.h"

namespace {

using Milliseconds = std::chrono::milliseconds;

struct Store {
  c10::intrusive_ptr<c10d::Store> store;
};

using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

struct Peers {
  Group group;
  // For what others send, by size and kind: the same few come again and again.
  std::map<std::pair<std::int64_t, int>, std::vector<at::Tensor>> room;
};

// Up to so many processes exchange their numbers each with each: one message's time, where
// Gloo's ring takes several, whose threads wait for one another.
constexpr int few = 8;

// The sum, or the largest, in the order of the processes: the same bits in each.
void exchange(Peers& peers, at::Tensor& own, bool largest) {
  const int size = peers.group->getSize(), rank = peers.group->getRank();
  auto& room = peers.room[{own.numel(), static_cast<int>(own.scalar_type())}];
  while (static_cast<int>(room.size()) < size) room.push_back(own.clone());
  std::vector<std::vector<at::Tensor>> messages;
  std::vector<c10::intrusive_ptr<c10d::Work>> under_way;
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    messages.push_back({own});
    under_way.push_back(peers.group->send(messages.back(), other, 0));
    messages.push_back({room[other]});
    under_way.push_back(peers.group->recv(messages.back(), other, 0));
  }
  for (auto& work : under_way) work->wait();
  room[rank].copy_(own);
  own.copy_(room[0]);
  for (int other = 1; other < size; ++other) {
    if (largest) {
      own.copy_(own.maximum(room[other]));
    } else {
      own.add_(room[other]);
    }
  }
}

// glog's number.
constexpr int errors_alone = 2;

std::vector<at::Tensor> one(const void* tensor) {
  return {*static_cast<const at::Tensor*>(tensor)};
}

}  // namespace

extern "C" {

// Meets the store at `host:port`; `serve`: this process holds it, on the listening socket
// `socket` unless that is below 0.
int ostler_store_open(void** store, const char* host, std::uint16_t port, int serve, int socket,
                      std::int64_t timeout_ms, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    // What goes wrong is an error here; c10d would also write it to standard error.
    if (FLAGS_caffe2_log_level < errors_alone) FLAGS_caffe2_log_level = errors_alone;
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = serve != 0;
    options.waitWorkers = false;
    options.timeout = Milliseconds(timeout_ms);
    if (serve != 0 && socket >= 0) options.masterListenFd = socket;
    *store = new Store{c10::make_intrusive<c10d::TCPStore>(host, options)};
  });
}

// Another connection to the same store whose keys begin with `prefix/`.
int ostler_store_part(void* from, const char* prefix, void** store, char* error,
                      std::size_t error_size) {
  return guarded(error, error_size, [&] {
    auto own = static_cast<Store*>(from)->store->clone();
    *store = new Store{c10::make_intrusive<c10d::PrefixStore>(prefix, own)};
  });
}

int ostler_store_set(void* store, const char* key, const std::uint8_t* value, std::size_t size,
                     char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    static_cast<Store*>(store)->store->set(key, std::vector<std::uint8_t>(value, value + size));
  });
}

// Waits until `key` is there. What it holds goes to `value`, as far as `size` bytes hold it;
// `held`: how many they are.
int ostler_store_get(void* store, const char* key, std::uint8_t* value, std::size_t size,
                     std::size_t* held, std::int64_t timeout_ms, char* error,
                     std::size_t error_size) {
  return guarded(error, error_size, [&] {
    auto& own = static_cast<Store*>(store)->store;
    own->wait({key}, Milliseconds(timeout_ms));
    const auto found = own->get(key);
    *held = found.size();
    std::memcpy(value, found.data(), std::min(size, found.size()));
  });
}

void ostler_store_close(void* store) { delete static_cast<Store*>(store); }

// Joins `size` processes that meet at `store`; they reach this one at `address`, or where its
// name leads to without one.
int ostler_peers_open(void** peers, void* store, int rank, int size, const char* address,
                      std::int64_t timeout_ms, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    using Gloo = c10d::ProcessGroupGloo;
    auto options = Gloo::Options::create(Milliseconds(timeout_ms));
    options->threads = 1;
    const std::string named = address;
    options->devices.push_back(named.empty() ? Gloo::createDefaultDevice()
                                             : Gloo::createDeviceForHostname(named));
    auto& own = static_cast<Store*>(store)->store;
    *peers = new Peers{c10::make_intrusive<Gloo>(own, rank, size, options), {}};
  });
}

// The sum over all processes, in place; the largest with `largest`.
int ostler_peers_reduce(void* peers, const void* tensor, int largest, char* error,
                        std::size_t error_size) {
  return guarded(error, error_size, [&] {
    auto tensors = one(tensor);
    auto& all = *static_cast<Peers*>(peers);
    if (all.group->getSize() <= few) return exchange(all, tensors[0], largest != 0);
    c10d::AllreduceOptions options;
    options.reduceOp = largest != 0 ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
    all.group->allreduce(tensors, options)->wait();
  });
}

// The numbers of process `root`, for all.
int ostler_peers_broadcast(void* peers, const void* tensor, int root, char* error,
                           std::size_t error_size) {
  return guarded(error, error_size, [&] {
    auto tensors = one(tensor);
    c10d::BroadcastOptions options;
    options.rootRank = root;
    static_cast<Peers*>(peers)->group->broadcast(tensors, options)->wait();
  });
}

// To process `to`, or from it with `receive`.
int ostler_peers_pass(void* peers, const void* tensor, int other, int receive, char* error,
                      std::size_t error_size) {
  return guarded(error, error_size, [&] {
    auto tensors = one(tensor);
    auto& group = static_cast<Peers*>(peers)->group;
    (receive != 0 ? group->recv(tensors, other, 0) : group->send(tensors, other, 0))->wait();
  });
}

void ostler_peers_close(void* peers) { delete static_cast<Peers*>(peers); }

}  // extern "C"
