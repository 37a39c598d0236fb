// Parameters and their gradients in two flat buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/parameters.h"

namespace norma {

// Note [Flat buffers]. All parameters of a model lie behind one another in one block of memory, and
// their gradients, moments and averages in blocks of the same layout. So clipping, an optimizer's
// step, an average of the weights and a sum over machines are one pass over contiguous memory.
// Every part begins at a multiple of 64 bytes, and the gap before the next one holds zeros, so that
// a kernel runs over whole vectors and over several parameters in one go: a zero weight with a zero
// gradient stays zero, and adds nothing to a norm.
//
// Note [Precision]. With a half type the flat buffer holds the masters, in f32, and every
// parameter's tensor becomes a copy in the half type, which the model computes with; publish()
// rounds the masters into the copies, once an optimizer's step. Gradients arrive in f32: those of
// the micro-batches of a step are summed there, and small ones are not lost beside large ones.
class FlatParameters {
 public:
  // Moves the parameters: every tensor keeps its values and its handles, but from now on lies in
  // the flat buffer, and backward() writes its gradient into the other one. A tensor that is listed
  // twice (tied) is taken once, under its first name. Views made before (detach, slices) go on
  // showing the old memory, so flatten before the first forward.
  // With `half`, bf16 or f16, parameters of f32 change their type to it; see Note [Precision].
  // Throws Error for an undefined tensor, a result of an op, a doubled name, or types that are not
  // all f32 or all f64.
  explicit FlatParameters(const std::vector<NamedParameter>& parameters,
                          std::optional<DType> half = {});

  FlatParameters(const FlatParameters&) = delete;
  FlatParameters& operator=(const FlatParameters&) = delete;

  // Of weights() and gradients(): f32 or f64.
  [[nodiscard]] DType dtype() const { return dtype_; }
  // Parameters, tied ones once.
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(parts_.size()); }
  // Elements of all parameters, without the gaps.
  [[nodiscard]] std::int64_t numel() const { return numel_; }
  // Elements of a flat buffer, with the gaps.
  [[nodiscard]] std::int64_t flat_size() const { return flat_size_; }

  [[nodiscard]] const std::string& name(std::int64_t i) const { return part(i).name; }
  [[nodiscard]] const Tensor& tensor(std::int64_t i) const { return part(i).tensor; }
  // Where parameter i begins, in elements; it ends with its gap where i + 1 begins.
  [[nodiscard]] std::int64_t begin(std::int64_t i) const { return part(i).begin; }
  [[nodiscard]] std::int64_t end(std::int64_t i) const {
    return i + 1 < count() ? part(i + 1).begin : flat_size_;
  }

  // The flat buffers, of flat_size() elements. A write to the weights through them must be told to
  // the graph with touch(i) for every parameter that changed, and be followed by publish().
  [[nodiscard]] Tensor& weights() { return weights_; }
  [[nodiscard]] Tensor& gradients() { return gradients_; }
  [[nodiscard]] const Tensor& gradients() const { return gradients_; }
  void touch(std::int64_t i);
  // Brings the weights into the half copies, if there are any.
  void publish();
  // The other way, where a half copy is not its rounded master: somebody has written to the
  // parameter. Such masters become what stands in the copy.
  void collect();
  // The weights by name, in the type of the flat buffer; shares memory.
  [[nodiscard]] std::vector<NamedTensor> masters() const;

  // True iff parameter i has a gradient this step; no gradient is not a gradient of zeros.
  [[nodiscard]] bool has_gradient(std::int64_t i) const;
  // Brings gradients that lie elsewhere (set_grad) into the flat buffer. Call before reading it.
  void gather_gradients();
  // No parameter has a gradient afterwards.
  void clear_gradients();

  // A zero buffer with the layout of the weights: moments, averages.
  [[nodiscard]] Tensor make_buffer(double value = 0) const;
  // The part of such a buffer that belongs to parameter i, in its shape. Shares memory.
  [[nodiscard]] Tensor slice(const Tensor& buffer, std::int64_t i) const;

 private:
  struct Part {
    std::string name;
    Tensor tensor;
    std::int64_t begin = 0;
  };
  [[nodiscard]] const Part& part(std::int64_t i) const {
    return parts_[static_cast<std::size_t>(i)];
  }

  DType dtype_ = DType::f32;
  std::vector<Part> parts_;
  std::int64_t numel_ = 0;
  std::int64_t flat_size_ = 0;
  Tensor weights_;
  Tensor gradients_;
  Tensor copies_;  // of a half type, or undefined
};

// Shared by the optimizer, clipping, averages and checkpoints of one model.
using FlatParametersPtr = std::shared_ptr<FlatParameters>;
[[nodiscard]] FlatParametersPtr flatten(const std::vector<NamedParameter>& parameters,
                                        std::optional<DType> half = {});

}  // namespace norma
