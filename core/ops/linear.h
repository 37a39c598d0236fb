// Affine map with an activation, fused.
#pragma once

#include <cstdint>
#include <span>

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

// y = residual + x weight^T + bias: the end of a residual branch, added to the stream.
//
// Shapes: as linear(); residual as y.
// Saves: as linear() without an activation.
// Numerics: the bits of residual + linear(x, weight, bias), and its graph: two ops. The sum is made
// in the tiles of the product, so that what is added is nowhere in memory by itself.
// Throws: as linear(); if the residual's shape or type differs from the result's.
[[nodiscard]] Tensor linear_onto(const Tensor& residual, const Tensor& x, const Tensor& weight,
                                 const Tensor& bias = {});

// y[i] = x weights[i]^T + biases[i]: several maps of one x, such as those to the queries, keys and
// values of attention, in one op and one parallel loop each way.
//
// Shapes: x (..., in), each weight (out, in), each bias (out), or no biases; y (n, ..., out).
// Saves: x, weights, biases.
// Numerics: each y[i] and the gradients of weights and biases have the bits of linear(). That of x
// is the sum of what the maps give, from the last to the first; half types are computed in f32 and
// rounded once, that sum too.
// Throws: for fewer than 1 or more than 3 weights; if they differ in shape, or there are biases
// but not as many; otherwise as linear().
[[nodiscard]] Tensor linear_stack(const Tensor& x, std::span<const Tensor> weights,
                                  std::span<const Tensor> biases = {});

}  // namespace norma
