// Affine map with an activation, fused.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace norma {

// The activations that run inside of linear().
enum class FusedActivation : std::uint8_t { none, relu, gelu, gelu_tanh, silu };

struct LinearOptions {
  FusedActivation activation = FusedActivation::none;
};

// y = activation(x weight^T + bias).
//
// Shapes: x (..., in), weight (out, in), bias (out) or undefined, y (..., out). Zero rows are
// allowed: y is empty, the gradients of weight and bias are 0.
// Saves: x, weight, bias; and y for relu, x weight^T + bias for the other activations.
// Numerics: bias and activation run on a tile of the product while it is in cache; half types are
// computed in f32 and rounded once.
// Throws: if a shape does not fit or the types differ.
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            LinearOptions options = {});

}  // namespace norma
