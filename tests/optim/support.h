// Small models without layers: parameters that get their gradients by hand.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd.h"
#include "core/config/config.h"
#include "core/flat.h"
#include "optim/optimizers.h"

namespace norma::test {

inline Tensor parameter(const Shape& shape, const std::vector<double>& values,
                        DType dtype = DType::f32) {
  Tensor t = Tensor::from(shape, values, dtype);
  t.set_requires_grad();
  return t;
}

inline OptimizerConfig optimizer_config(const std::string& json) {
  return config::parse<OptimizerConfig>(config::parse_json(json), "optimizer");
}

inline void give_gradient(Tensor t, const std::vector<double>& values) {
  t.set_grad(Tensor::from(t.shape(), values, t.dtype()));
}

// True iff both hold the same bits.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) ==
             0;
}

}  // namespace norma::test
