// Scope: where a layer is built. It carries the path, the seed and the rule of initialisation, so
// that a layer names, creates and initialises a parameter in one call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor.h"
#include "layers/initialization.h"

namespace norma {

// What a parameter is for; the rule of initialisation depends on it.
struct ParameterKind {
  enum Role {
    matrix,           // a product inside the network
    residual_matrix,  // the last product of a residual branch (gpt2 scales it by 1/sqrt(2L))
    head,             // the product that makes the logits
    embedding,        // rows picked by an id
    bias,             // added; `fan_in` is that of the product beside it
    constant,         // gains, shifts: starts at `value`
  };
  Role role = matrix;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
  double value = 0;
};

class Scope {
 public:
  // The root of a model.
  Scope(std::uint64_t seed, InitConfig init, DType dtype = DType::f32)
      : seed_(seed), init_(std::move(init)), dtype_(dtype) {}

  // The scope of a child: its path has one more part.
  [[nodiscard]] Scope child(std::string_view name) const;
  // The same place with matrices and biases times `gain` (DeepNorm's beta).
  [[nodiscard]] Scope with_gain(double gain) const;
  // The same place with 2L, the number of residual branches that `gpt2` divides by the root of.
  [[nodiscard]] Scope with_branches(std::int64_t branches) const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

  // A new parameter with the values that the rule gives; they depend on (seed, path, name) alone.
  [[nodiscard]] Tensor make(std::string_view name, const Shape& shape,
                            const ParameterKind& kind) const;

 private:
  std::uint64_t seed_;
  InitConfig init_;
  DType dtype_;
  std::string path_;
  double gain_ = 1;
  std::int64_t branches_ = 0;
};

}  // namespace norma
