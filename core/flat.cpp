#include "core/flat.h"

#include <cstring>
#include <unordered_set>

#include "core/autograd.h"
#include "core/error.h"
#include "core/kernels/convert.h"

namespace norma {
namespace {

constexpr std::int64_t kAlignBytes = 64;  // a cache line, and the widest vector

// Elements that a part takes with its gap; at least one line, so that empty parts have a place too.
std::int64_t padded(std::int64_t numel, DType dtype) {
  const std::int64_t line = kAlignBytes / size_of(dtype);
  return std::max<std::int64_t>(1, (numel + line - 1) / line) * line;
}

std::size_t bytes_of(const Tensor& t) {
  return static_cast<std::size_t>(t.numel() * size_of(t.dtype()));
}

}  // namespace

FlatParameters::FlatParameters(const std::vector<NamedParameter>& parameters,
                               std::optional<DType> half) {
  std::unordered_set<const TensorImpl*> seen;
  std::unordered_set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    require(tensor.defined(), "parameters: '{}' is undefined; make the tensor first", name);
    require(tensor.is_leaf(), "parameters: '{}' is the result of an op; expected a leaf", name);
    require(names.insert(name).second, "parameters: the name '{}' stands there twice", name);
    if (!seen.insert(tensor.impl()).second) continue;
    if (parts_.empty()) {
      dtype_ = tensor.dtype();
      require(is_compute(dtype_), "parameters: expected f32 or f64; got {} in '{}'",
              name_of(dtype_), name);
    }
    if (!parts_.empty()) {
      require(tensor.dtype() == dtype_, "parameters: '{}' is {} but '{}' is {}; use one type", name,
              name_of(tensor.dtype()), parts_.front().name, name_of(dtype_));
    }
    parts_.push_back({name, tensor, flat_size_});
    numel_ += tensor.numel();
    flat_size_ += padded(tensor.numel(), dtype_);
  }

  require(!half || (is_half(*half) && dtype_ == DType::f32),
          "parameters: copies in {} need weights of f32; got {}", half ? name_of(*half) : "",
          name_of(dtype_));

  weights_ = Tensor::zeros({flat_size_}, dtype_);
  gradients_ = Tensor::zeros({flat_size_}, dtype_);
  if (half) copies_ = Tensor::zeros({flat_size_}, *half);
  const std::int64_t size = size_of(dtype_);
  for (Part& p : parts_) {
    TensorImpl& impl = *p.tensor.impl();
    const std::int64_t bytes = p.tensor.numel() * size;
    Ref<Storage> weight = Storage::carve(weights_.storage(), p.begin * size, bytes);
    std::memcpy(weight->data(), p.tensor.raw(), static_cast<std::size_t>(bytes));
    if (half) {
      const std::int64_t narrow = size_of(*half);
      weight = Storage::carve(copies_.storage(), p.begin * narrow, p.tensor.numel() * narrow);
    }
    // A graph that saved the old values must notice that they are gone.
    while (weight->version() <= impl.storage->version()) weight->bump_version();
    impl.storage = std::move(weight);
    impl.offset_bytes = 0;
    impl.dtype = half.value_or(dtype_);

    const Tensor grad = p.tensor.grad();
    Tensor buffer = Tensor::view(Storage::carve(gradients_.storage(), p.begin * size, bytes), 0,
                                 p.tensor.shape(), dtype_);
    p.tensor.set_grad_buffer(buffer);
    if (grad.defined()) p.tensor.set_grad(grad);
  }
  gather_gradients();
  publish();
  // Nobody asks for blocks of the old parameters' sizes again; a large model would keep them twice.
  release_cached_memory();
}

void FlatParameters::touch(std::int64_t i) { part(i).tensor.storage()->bump_version(); }

void FlatParameters::publish() {
  if (!copies_.defined()) return;
  kernels::convert(dtype_, weights_.raw(), copies_.dtype(), copies_.mutable_raw(), flat_size_);
  for (std::int64_t i = 0; i < count(); ++i) touch(i);
}

void FlatParameters::collect() {
  if (!copies_.defined()) return;
  Tensor rounded = Tensor::empty({flat_size_}, copies_.dtype());
  Tensor wide = Tensor::empty({flat_size_}, dtype_);
  kernels::convert(dtype_, weights_.raw(), copies_.dtype(), rounded.mutable_raw(), flat_size_);
  kernels::convert(copies_.dtype(), copies_.raw(), dtype_, wide.mutable_raw(), flat_size_);
  const auto* old = reinterpret_cast<const std::uint16_t*>(rounded.raw());
  const auto* now = reinterpret_cast<const std::uint16_t*>(copies_.raw());
  const float* written = wide.data<float>();
  float* master = weights_.mutable_data<float>();
  for (std::int64_t i = 0; i < flat_size_; ++i) {
    if (old[i] != now[i]) master[i] = written[i];
  }
}

std::vector<NamedTensor> FlatParameters::masters() const {
  std::vector<NamedTensor> result;
  for (std::int64_t i = 0; i < count(); ++i) result.push_back({name(i), slice(weights_, i)});
  return result;
}

bool FlatParameters::has_gradient(std::int64_t i) const { return part(i).tensor.grad().defined(); }

void FlatParameters::gather_gradients() {
  for (Part& p : parts_) {
    const Tensor grad = p.tensor.grad();
    if (!grad.defined()) continue;
    Tensor buffer = p.tensor.grad_buffer();
    if (grad.raw() == buffer.raw()) continue;
    require(grad.shape() == buffer.shape() && grad.dtype() == dtype_,
            "parameters: the gradient of '{}' must be {} {}; got {} {}", p.name, name_of(dtype_),
            buffer.shape(), name_of(grad.dtype()), grad.shape());
    std::memcpy(buffer.mutable_raw(), grad.raw(), bytes_of(grad));
    p.tensor.set_grad(buffer);
  }
}

void FlatParameters::clear_gradients() {
  for (Part& p : parts_) p.tensor.clear_grad();
}

Tensor FlatParameters::make_buffer(double value) const {
  Tensor buffer = Tensor::zeros({flat_size_}, dtype_);
  if (value != 0) {
    for (std::int64_t i = 0; i < count(); ++i) slice(buffer, i).fill_(value);
  }
  return buffer;
}

Tensor FlatParameters::slice(const Tensor& buffer, std::int64_t i) const {
  require(buffer.numel() == flat_size_ && buffer.dtype() == dtype_,
          "parameters: expected a buffer of {} {} elements; got {} {}", flat_size_, name_of(dtype_),
          buffer.numel(), name_of(buffer.dtype()));
  return Tensor::view(buffer.storage(), buffer.offset_bytes() + part(i).begin * size_of(dtype_),
                      part(i).tensor.shape(), dtype_);
}

FlatParametersPtr flatten(const std::vector<NamedParameter>& parameters,
                          std::optional<DType> half) {
  return std::make_shared<FlatParameters>(parameters, half);
}

}  // namespace norma
