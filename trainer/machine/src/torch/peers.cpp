// Several processes as one, over libtorch's own c10d: TCPStore and Gloo. See guarded.h for the
// conventions. Tensors lie on the host.

#define USE_C10D_GLOO
#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "guarded.h"

namespace {

using Milliseconds = std::chrono::milliseconds;

struct Store {
  c10::intrusive_ptr<c10d::Store> store;
};

struct Peers {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
};

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
    *peers = new Peers{c10::make_intrusive<Gloo>(own, rank, size, options)};
  });
}

// The sum over all processes, in place; the largest with `largest`.
int ostler_peers_reduce(void* peers, const void* tensor, int largest, char* error,
                        std::size_t error_size) {
  return guarded(error, error_size, [&] {
    auto tensors = one(tensor);
    c10d::AllreduceOptions options;
    options.reduceOp = largest != 0 ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
    static_cast<Peers*>(peers)->group->allreduce(tensors, options)->wait();
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
