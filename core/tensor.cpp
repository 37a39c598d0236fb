#include "core/tensor.h"

#include <algorithm>
#include <cstring>

#include "core/autograd.h"
#include "core/convert_value.h"
#include "core/kernels/convert.h"

namespace norma {
namespace {

// Bytes of a tensor of this shape. Throws Error where no memory could hold it.
std::int64_t bytes_of(const Shape& shape, DType dtype) {
  constexpr std::int64_t kMost = std::int64_t{1} << 47;  // what a process can address on x86-64
  std::int64_t bytes = size_of(dtype);
  bool too_large = false;
  for (std::int64_t n : shape) {
    too_large |= __builtin_mul_overflow(bytes, std::max<std::int64_t>(1, n), &bytes);
  }
  require(!too_large && bytes <= kMost, "tensor: shape {} of {} is too large for any memory", shape,
          name_of(dtype));
  return shape.numel() * size_of(dtype);
}

Tensor make(Ref<Storage> storage, std::int64_t offset_bytes, const Shape& shape, DType dtype) {
  auto impl = make_ref<TensorImpl>();
  impl->storage = std::move(storage);
  impl->offset_bytes = offset_bytes;
  impl->shape = shape;
  impl->numel = shape.numel();
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

void check_in_place(const Tensor& x, const char* op) {
  require(!(grad_enabled() && x.requires_grad()),
          "{}: an in-place change of a tensor {} that takes part in a graph would not be recorded; "
          "use NoGrad, or an op that returns a new tensor",
          op, x.shape());
}

}  // namespace

Tensor::Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  return make(Storage::allocate(bytes_of(shape, dtype)), 0, shape, dtype);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor x = empty(shape, dtype);
  std::memset(x.mutable_raw(), 0, static_cast<std::size_t>(x.numel() * size_of(dtype)));
  return x;
}

Tensor Tensor::ones(const Shape& shape, DType dtype) { return full(shape, 1.0, dtype); }

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor x = empty(shape, dtype);
  x.fill_(value);
  return x;
}

Tensor Tensor::scalar(double value, DType dtype) { return full(Shape{}, value, dtype); }

Tensor Tensor::arange(std::int64_t n, DType dtype) {
  Tensor x = empty(Shape{n}, dtype);
  dispatch_all(dtype, [&]<class T>() {
    T* p = x.mutable_data<T>();
    for (std::int64_t i = 0; i < n; ++i) p[i] = convert_value<T>(i);
  });
  return x;
}

Tensor Tensor::from(const Shape& shape, std::span<const double> values, DType dtype) {
  require(static_cast<std::int64_t>(values.size()) == shape.numel(),
          "tensor: shape {} needs {} values; got {}", shape, shape.numel(), values.size());
  Tensor x = empty(shape, dtype);
  dispatch_all(dtype, [&]<class T>() {
    std::transform(values.begin(), values.end(), x.mutable_data<T>(),
                   [](double v) { return convert_value<T>(v); });
  });
  return x;
}

Tensor Tensor::from(const Shape& shape, std::initializer_list<double> values, DType dtype) {
  return from(shape, std::span<const double>(values.begin(), values.size()), dtype);
}

Tensor Tensor::from_ids(const Shape& shape, std::span<const std::int64_t> values) {
  require(static_cast<std::int64_t>(values.size()) == shape.numel(),
          "tensor: shape {} needs {} values; got {}", shape, shape.numel(), values.size());
  Tensor x = empty(shape, DType::i64);
  std::copy(values.begin(), values.end(), x.mutable_data<std::int64_t>());
  return x;
}

Tensor Tensor::view(Ref<Storage> storage, std::int64_t offset_bytes, const Shape& shape,
                    DType dtype) {
  const std::int64_t bytes = bytes_of(shape, dtype);
  require(offset_bytes >= 0 && offset_bytes + bytes <= storage->bytes(),
          "tensor: a view of {} bytes at {} does not fit into a storage of {}", bytes, offset_bytes,
          storage->bytes());
  return make(std::move(storage), offset_bytes, shape, dtype);
}

void Tensor::throw_empty() {
  throw Error("tensor: this handle is empty: no tensor was assigned to it");
}

void Tensor::throw_type(DType expected) const {
  throw Error::format("tensor: its elements are {}, but were asked for as {}", name_of(dtype()),
                      name_of(expected));
}

double Tensor::item() const {
  require(numel() == 1, "item: expected a tensor of one element; got shape {}", shape());
  return to_vector()[0];
}

std::vector<double> Tensor::to_vector() const {
  std::vector<double> out(static_cast<std::size_t>(numel()));
  dispatch_all(dtype(), [&]<class T>() {
    const T* p = data<T>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = convert_value<double>(p[i]);
  });
  return out;
}

std::vector<std::int64_t> Tensor::to_ids() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(numel()));
  dispatch_all(dtype(), [&]<class T>() {
    const T* p = data<T>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = convert_value<std::int64_t>(p[i]);
  });
  return out;
}

void Tensor::fill_(double value) {
  check_in_place(*this, "fill_");
  dispatch_all(dtype(), [&]<class T>() {
    T* p = mutable_data<T>();
    std::fill(p, p + numel(), convert_value<T>(value));
  });
}

void Tensor::copy_(const Tensor& source) {
  check_in_place(*this, "copy_");
  require(shape() == source.shape(), "copy_: expected shape {}; got {}", shape(), source.shape());
  if (dtype() == source.dtype()) {
    std::memmove(mutable_raw(), source.raw(), static_cast<std::size_t>(numel() * size_of(dtype())));
    return;
  }
  kernels::convert(source.dtype(), source.raw(), dtype(), mutable_raw(), numel());
}

Tensor& Tensor::set_requires_grad(bool on) {
  require(is_leaf(), "set_requires_grad: this tensor is the result of {}; detach() it first",
          self().node ? self().node->op->name : "");
  require(!on || is_floating(dtype()), "set_requires_grad: expected a floating type; got {}",
          name_of(dtype()));
  impl_->requires_grad = on;
  return *this;
}

Tensor Tensor::grad() const { return self().grad; }

void Tensor::set_grad(Tensor grad) {
  require(!grad.defined() || grad.shape() == shape(), "set_grad: expected shape {}; got {}",
          shape(), grad);
  const DType type = impl_->grad_buffer.defined() ? impl_->grad_buffer.dtype() : dtype();
  require(!grad.defined() || grad.dtype() == type, "set_grad: expected {}; got {}", name_of(type),
          grad.defined() ? name_of(grad.dtype()) : "");
  impl_->grad = std::move(grad);
}

void Tensor::clear_grad() {
  (void)self();
  impl_->grad = Tensor();
}

void Tensor::set_grad_buffer(Tensor buffer) {
  require(buffer.shape() == shape() &&
              (buffer.dtype() == dtype() || (is_half(dtype()) && buffer.dtype() == DType::f32)),
          "set_grad_buffer: expected shape {} of {}; got {} of {}", shape(), name_of(dtype()),
          buffer.shape(), name_of(buffer.dtype()));
  impl_->grad_buffer = std::move(buffer);
}

Tensor Tensor::grad_buffer() const { return self().grad_buffer; }

Tensor Tensor::detach() const {
  return make(self().storage, impl_->offset_bytes, impl_->shape, impl_->dtype);
}

Tensor Tensor::clone() const {
  Tensor x = empty(shape(), dtype());
  std::memcpy(x.mutable_raw(), raw(), static_cast<std::size_t>(numel() * size_of(dtype())));
  return x;
}

void Tensor::backward() const { norma::backward(*this); }

}  // namespace norma
