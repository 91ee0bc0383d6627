// Operators on tensors of the device: those that make, describe and copy memory are here, all
// others run on the processor over the device's own view of the same memory.

#include <elf.h>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "cuda.h"
#include "runtime.h"
#include "../pretend.h"
#include "../work.h"

namespace pretend {
namespace {

using at::IntArrayRef;
using at::Tensor;
using c10::IValue;

const c10::DispatchKeySet CUDA(c10::DispatchKey::CUDA);
const c10::Device DEVICE(c10::DeviceType::CUDA, 0);

// The tensor as the device's work reaches it.
Tensor reached(const Tensor& t) {
  c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset);
  const auto options = t.options().device(c10::kCPU).requires_grad(false);
  if (t.numel() == 0) return at::empty_strided(t.sizes(), t.strides(), options);
  return at::from_blob(reach(t.data_ptr()), t.sizes(), t.strides(), options);
}

Tensor empty(IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, device_memory(), CUDA, c10::dtype_or_default(type), format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, device_memory(), CUDA, c10::dtype_or_default(type));
}

const Tensor& resize_(const Tensor& self, IntArrayRef size, std::optional<at::MemoryFormat>) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  const std::size_t need = (self.storage_offset() + self.numel()) * self.itemsize();
  c10::StorageImpl* storage = self.storage().unsafeGetStorageImpl();
  if (storage->nbytes() < need) {
    auto more = device_memory()->allocate(need);
    if (storage->nbytes() > 0) device_memory()->copy_data(more.get(), storage->data(), storage->nbytes());
    storage->set_data_ptr_noswap(std::move(more));
    storage->set_nbytes(need);
  }
  return self;
}

bool plain(const Tensor& to, const Tensor& from) {
  return to.sizes() == from.sizes() && to.scalar_type() == from.scalar_type() && to.is_contiguous() &&
         from.is_contiguous() && to.numel() > 0;
}

Tensor& copy_(Tensor& to, const Tensor& from, bool non_blocking) {
  if (to.is_same(from)) return to;
  c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset);
  if (to.is_cuda() && from.is_cuda()) {
    run();
    reached(to).copy_(reached(from));
    check(runtime::launched());
  } else if (to.is_cuda()) {
    check(runtime::copied(runtime::TO_DEVICE));
    if (non_blocking && plain(to, from) && is_pinned(from.data_ptr(), from.nbytes())) {
      check(cuMemcpyHtoDAsync_v2(reinterpret_cast<std::uint64_t>(to.data_ptr()), from.data_ptr(), from.nbytes(), nullptr));
      return to;
    }
    // From memory that is not page-locked the bytes are taken at once.
    run();
    reached(to).copy_(from);
    if (!non_blocking) check(runtime::stream_synchronize());
  } else if (non_blocking && to.numel() > 0) {
    check(runtime::copied(runtime::TO_HOST));
    run();
    const Tensor taken = at::empty(to.sizes(), to.options().requires_grad(false));
    taken.copy_(reached(from));
    Tensor target = to.detach();
    if (at::isFloatingType(to.scalar_type())) target.fill_(std::numeric_limits<double>::quiet_NaN());
    else target.fill_(-1);
    land_later([=]() mutable {
      c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset);
      target.copy_(taken);
    });
  } else {
    check(runtime::copied(runtime::TO_HOST));
    check(runtime::stream_synchronize());
    to.copy_(reached(from));
  }
  return to;
}

at::Scalar read(const Tensor& t) {
  check(runtime::copied(runtime::TO_HOST));
  check(runtime::stream_synchronize());
  return reached(t).item();
}

// Matrix products whose factors TensorFloat-32 rounds to ten bits of mantissa.
const std::set<std::string> products = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
                                        "aten::addmv", "aten::_addmm_activation"};

// To the nearest, ties to even, as the hardware's conversion does.
Tensor tf32(const Tensor& t) {
  const Tensor rounded = t.clone();
  const Tensor bits = rounded.view(at::kInt);
  const Tensor odd = bits.bitwise_right_shift(13).bitwise_and(1);
  bits.add_(odd).add_(0xfff).bitwise_and_(~0x1fff);
  return rounded;
}

bool rounds(const std::string& name) {
  return products.count(name) && at::globalContext().float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST;
}

// Operators after which the host waits, as they tell it how much there is.
const std::set<std::string> waits = {"aten::equal", "aten::nonzero", "aten::masked_select", "aten::_unique2",
                                     "aten::unique_dim", "aten::repeat_interleave"};

// Tensors of a call, as the processor sees them.
class Call {
 public:
  // The processor's tensor for an argument.
  Tensor of(const Tensor& t) {
    if (!t.defined()) return t;
    if (!t.is_cuda()) {
      if (t.dim() > 0 && !elsewhere_.defined()) elsewhere_ = t;
      return t;
    }
    any_ = true;
    for (const auto& [device, host] : pairs_) {
      if (device.is_same(t)) return host;
    }
    pairs_.emplace_back(t, reached(t));
    return pairs_.back().second;
  }

  // As libtorch checks it before it launches.
  void check_devices(const char* name) const {
    TORCH_CHECK(!any_ || !elsewhere_.defined(),
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking arguments of ", name, ")");
  }

  // The device's tensor for a result: the argument that was written, or a new one.
  Tensor back(const char* name, const Tensor& result) {
    if (!result.defined() || result.is_cuda()) return result;
    for (auto& [device, host] : pairs_) {
      if (host.is_same(result)) return device;
      TORCH_CHECK(result.numel() == 0 || host.numel() == 0 || !host.storage().is_alias_of(result.storage()),
                  "pretend GPU: ", name, " returns a view; it needs a function of its own");
    }
    Tensor out = at::empty_strided(result.sizes(), result.strides(), result.options().device(DEVICE));
    if (out.numel() > 0) reached(out).copy_(result);
    return out;
  }

  // Arguments that the operator has given another size.
  void take_sizes() {
    for (auto& [device, host] : pairs_) {
      if (host.sizes() == device.sizes()) continue;
      resize_(device, host.sizes(), std::nullopt);
      if (device.numel() > 0) reached(device).copy_(host);
    }
  }

 private:
  bool any_ = false;
  Tensor elsewhere_;
  std::vector<std::pair<Tensor, Tensor>> pairs_;
};

// The words of the real library's read-only data, among them the names under which it registers
// its operators.
std::string words_of_cuda() {
  std::ifstream file(PRETEND_CUDA, std::ios::binary);
  Elf64_Ehdr head{};
  file.read((char*)&head, sizeof head);
  std::vector<Elf64_Shdr> sections(head.e_shnum);
  file.seekg(head.e_shoff).read((char*)sections.data(), sections.size() * sizeof sections[0]);
  const auto bytes = [&](const Elf64_Shdr& of) {
    std::string text(of.sh_size, 0);
    file.seekg(of.sh_offset).read(&text[0], text.size());
    return text;
  };
  if (!file || head.e_shstrndx >= sections.size()) return "";
  const std::string names = bytes(sections[head.e_shstrndx]);
  for (const auto& section : sections)
    if (names.compare(section.sh_name, 8, std::string(".rodata\0", 8)) == 0) return bytes(section);
  return "";
}

// Whether a GPU has a kernel for an operator that comes here: one that is not made of others. A
// word that another one ends with is stored within it, so that a few operators pass which have none;
// of a libtorch without its CUDA part all do.
bool has_kernel(const c10::OperatorName& op) {
  static const auto* words = new std::string(words_of_cuda());
  static auto* known = new std::map<std::string, bool>;
  std::string name = op.name.substr(op.name.rfind(':') + 1) + (op.overload_name.empty() ? "" : "." + op.overload_name);
  const auto found = known->find(name);
  if (found != known->end()) return found->second;
  return (*known)[name] = words->empty() || words->find(name + '\0') != std::string::npos;
}

void on_the_processor(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset);
  const auto& schema = op.schema();
  const char* name = schema.name().c_str();
  if (!has_kernel(op.operator_name()))
    mistake(("no GPU has a kernel for the operator " + schema.name()).c_str());
  run();
  check(runtime::launched());
  if (waits.count(schema.name())) check(runtime::stream_synchronize());
  Call call;
  const auto arguments = schema.arguments().size();
  const auto begin = stack->size() - arguments;
  for (std::size_t i = begin; i < stack->size(); ++i) {
    IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = call.of(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<Tensor> all;
      for (const Tensor& t : value.toTensorVector()) all.push_back(call.of(t));
      value = c10::List<Tensor>(all);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> all;
      for (const std::optional<Tensor>& t : value.toOptionalTensorVector())
        all.push_back(t ? std::optional<Tensor>(call.of(*t)) : std::nullopt);
      value = all;
    } else if (value.isDevice()) {
      value = c10::Device(c10::kCPU);
    }
  }
  call.check_devices(name);
  if (rounds(schema.name())) {
    for (std::size_t i = begin; i < stack->size(); ++i) {
      IValue& value = (*stack)[i];
      const auto& argument = schema.arguments()[i - begin];
      const bool factor = value.isTensor() && (argument.name() == "mat1" || argument.name() == "mat2" || argument.name() == "batch1" ||
                           argument.name() == "batch2" || argument.name() == "mat" || argument.name() == "vec" ||
                           (argument.name() == "self" && (schema.name() == "aten::mm" || schema.name() == "aten::bmm")));
      if (factor && value.toTensor().scalar_type() == at::kFloat) value = tf32(value.toTensor());
    }
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  call.take_sizes();
  for (std::size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = call.back(name, value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<Tensor> all;
      for (const Tensor& t : value.toTensorVector()) all.push_back(call.back(name, t));
      value = c10::List<Tensor>(all);
    }
  }
}

// libtorch's GRU has an operator that only GPUs have; the formulae are those of its RNN.cu.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input, const Tensor& hidden, const Tensor& before,
                                    const std::optional<Tensor>& input_bias, const std::optional<Tensor>& hidden_bias) {
  auto i = input, h = hidden;
  if (input_bias && input_bias->defined()) i = i + *input_bias, h = h + *hidden_bias;
  const auto in = i.chunk(3, 1), hid = h.chunk(3, 1);
  const Tensor reset = (in[0] + hid[0]).sigmoid(), update = (in[1] + hid[1]).sigmoid();
  const Tensor fresh = (in[2] + reset * hid[2]).tanh();
  return {fresh + update * (before - fresh), at::cat({reset, update, fresh, before, hid[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad, const Tensor& kept, bool bias) {
  const auto k = kept.chunk(5, 1);
  const Tensor &reset = k[0], &update = k[1], &fresh = k[2], &before = k[3], &hid = k[4];
  const Tensor d_update = grad * (before - fresh) * (1 - update) * update;
  const Tensor d_fresh = grad * (1 - update) * (1 - fresh * fresh);
  const Tensor d_reset = d_fresh * hid * (1 - reset) * reset;
  const Tensor d_input = at::cat({d_reset, d_update, d_fresh}, 1), d_hidden = at::cat({d_reset, d_update, d_fresh * reset}, 1);
  return {d_input, d_hidden, grad * update, bias ? d_input.sum(0) : Tensor(), bias ? d_hidden.sum(0) : Tensor()};
}

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_processor>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("resize_", &resize_);
  m.impl("copy_", &copy_);
  m.impl("_local_scalar_dense", &read);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("_thnn_fused_gru_cell", &gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
}

}  // namespace
}  // namespace pretend
