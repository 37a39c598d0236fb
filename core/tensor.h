// Tensor: a value handle over reference-counted, contiguous storage, and its place in the graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/recycled.h"
#include "core/shape.h"
#include "core/storage.h"

namespace norma {

class Node;
struct TensorImpl;
struct Hooks;

// Note [Contiguous only]. Every tensor is dense and row-major. A transpose is an argument of matmul
// or a real permute; reshape and slices of the leading axis share memory. So every kernel sees one
// layout, and no fast path can differ from a slow one.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor& operator=(Tensor&&) noexcept = default;
  ~Tensor() = default;

  // --- Making one. -----------------------------------------------------------------------------
  [[nodiscard]] static Tensor empty(const Shape& shape, DType dtype = DType::f32);
  [[nodiscard]] static Tensor zeros(const Shape& shape, DType dtype = DType::f32);
  [[nodiscard]] static Tensor ones(const Shape& shape, DType dtype = DType::f32);
  [[nodiscard]] static Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
  [[nodiscard]] static Tensor scalar(double value, DType dtype = DType::f32);
  // 0, 1, ..., n-1.
  [[nodiscard]] static Tensor arange(std::int64_t n, DType dtype = DType::i64);
  // Row-major values, converted to `dtype`. Throws Error if their number is not shape.numel().
  [[nodiscard]] static Tensor from(const Shape& shape, std::span<const double> values,
                                   DType dtype = DType::f32);
  [[nodiscard]] static Tensor from(const Shape& shape, std::initializer_list<double> values,
                                   DType dtype = DType::f32);
  [[nodiscard]] static Tensor from_ids(const Shape& shape, std::span<const std::int64_t> values);
  // A view of `storage`.
  [[nodiscard]] static Tensor view(Ref<Storage> storage, std::int64_t offset_bytes,
                                   const Shape& shape, DType dtype);

  // --- What it is. -----------------------------------------------------------------------------
  [[nodiscard]] bool defined() const { return static_cast<bool>(impl_); }
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] std::int64_t size(int axis) const { return shape()[axis]; }
  [[nodiscard]] int rank() const { return shape().rank(); }
  [[nodiscard]] std::int64_t numel() const;
  [[nodiscard]] DType dtype() const;

  // --- Its values. -----------------------------------------------------------------------------
  // Pointer to the first element. Throws Error if T is not the element type.
  template <class T>
  [[nodiscard]] const T* data() const {
    check_type(dtype_of<T>);
    return reinterpret_cast<const T*>(raw());
  }
  // The same for writing. Counts as an in-place change: see version().
  template <class T>
  [[nodiscard]] T* mutable_data() {
    check_type(dtype_of<T>);
    return reinterpret_cast<T*>(mutable_raw());
  }
  [[nodiscard]] const std::byte* raw() const;
  [[nodiscard]] std::byte* mutable_raw();
  // The value of a tensor of one element. Throws Error for more.
  [[nodiscard]] double item() const;
  // All values, row-major.
  [[nodiscard]] std::vector<double> to_vector() const;
  [[nodiscard]] std::vector<std::int64_t> to_ids() const;

  // In-place changes. They are not recorded; each throws Error on a tensor that takes part in a
  // graph while gradients are on (wrap parameter updates in NoGrad).
  void fill_(double value);
  void copy_(const Tensor& source);  // same shape; converts the dtype

  // --- Its place in the graph. -----------------------------------------------------------------
  // True iff a gradient flows to it: it is a leaf marked so, or was computed from one.
  [[nodiscard]] bool requires_grad() const;
  // Marks a leaf. Throws Error for a result of an op, or for a type that is not floating.
  Tensor& set_requires_grad(bool on = true);
  [[nodiscard]] bool is_leaf() const;
  // The gradient that backward() left here, undefined if there was none.
  [[nodiscard]] Tensor grad() const;
  void set_grad(Tensor grad);
  // After it grad() is undefined: "no gradient this step", which is not the same as zero.
  void clear_grad();
  // Memory for the gradient: backward() writes there instead of allocating (flat buffers). Of the
  // tensor's type, or f32 for a half type: then its gradient comes in f32, see Note [Precision].
  void set_grad_buffer(Tensor buffer);
  [[nodiscard]] Tensor grad_buffer() const;
  // The same values outside of the graph; shares memory.
  [[nodiscard]] Tensor detach() const;
  // A copy outside of the graph.
  [[nodiscard]] Tensor clone() const;
  // backward() of autograd.h with this as the only output.
  void backward() const;

  [[nodiscard]] const Ref<Storage>& storage() const;
  [[nodiscard]] std::int64_t offset_bytes() const;
  [[nodiscard]] std::uint64_t version() const;
  // True iff both handles name the same tensor.
  [[nodiscard]] bool same(const Tensor& other) const { return impl_ == other.impl_; }
  [[nodiscard]] TensorImpl* impl() const { return impl_.get(); }
  explicit Tensor(Ref<TensorImpl> impl);

 private:
  void check_type(DType expected) const {
    if (dtype() != expected) [[unlikely]]
      throw_type(expected);
  }
  const TensorImpl& self() const {
    if (!impl_) [[unlikely]]
      throw_empty();
    return *impl_;
  }
  [[noreturn]] static void throw_empty();
  [[noreturn]] void throw_type(DType expected) const;

  Ref<TensorImpl> impl_;
};

// Insides of a tensor: for autograd, the engine, flat buffers and casts.
struct TensorImpl : RefCounted<TensorImpl>, Recycled {
  Ref<Storage> storage;
  std::int64_t offset_bytes = 0;
  std::int64_t numel = 0;
  Shape shape;
  DType dtype = DType::f32;
  bool requires_grad = false;  // leaves alone; a result requires a gradient iff it has a node
  int output = 0;
  Ref<Node> node;
  Tensor grad;
  Tensor grad_buffer;
  // Of a tensor that to() widened: the half tensor, and the version that makes both equal. See
  // Note [Saved halves] in autograd.cpp.
  Tensor narrow;
  std::uint64_t narrow_version = 0;
  std::atomic_flag lock = ATOMIC_FLAG_INIT;  // guards grad while threads share a leaf
  std::unique_ptr<Hooks> hooks;

  TensorImpl();
  ~TensorImpl();
};

inline const Shape& Tensor::shape() const { return self().shape; }
inline std::int64_t Tensor::numel() const { return self().numel; }
inline DType Tensor::dtype() const { return self().dtype; }
inline const std::byte* Tensor::raw() const { return self().storage->data() + impl_->offset_bytes; }
inline std::byte* Tensor::mutable_raw() {
  self().storage->bump_version();
  return impl_->storage->data() + impl_->offset_bytes;
}
inline bool Tensor::is_leaf() const { return !self().node; }
inline bool Tensor::requires_grad() const { return self().requires_grad || impl_->node; }
inline const Ref<Storage>& Tensor::storage() const { return self().storage; }
inline std::int64_t Tensor::offset_bytes() const { return self().offset_bytes; }
inline std::uint64_t Tensor::version() const { return self().storage->version(); }

}  // namespace norma

// In messages: the shape, or "none" for an empty handle. Made only where the message is.
template <>
struct fmt::formatter<norma::Tensor> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const norma::Tensor& x, Context& context) const {
    return fmt::formatter<std::string>::format(x.defined() ? x.shape().to_string() : "none",
                                               context);
  }
};
