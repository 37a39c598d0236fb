// The naive reference of attention.
#pragma once

#include <cmath>
#include <vector>

#include "core/ops/attention.h"
#include "tests/support/op_case.h"

namespace norma::test {

// Where a mask of keys or of pairs speaks of (sample, query, key).
inline std::int64_t mask_index(const Tensor& mask, std::int64_t b, std::int64_t i, std::int64_t j) {
  const std::int64_t keys = mask.size(-1);
  if (mask.rank() == 2) return b * keys + j;
  return ((mask.size(0) == 1 ? 0 : b) * mask.size(1) + i) * keys + j;
}

// Row by row, from the definition: y (B, T, H, D). in: q, k, v and, if there are four, the bias.
inline std::vector<double> naive_attention(const std::vector<Tensor>& in,
                                           const AttentionOptions& o) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::int64_t batch = in[0].shape()[0], queries = in[0].shape()[1], heads = in[0].shape()[2];
  const std::int64_t width = in[0].shape()[3], keys = in[1].shape()[1], kv = in[1].shape()[2];
  const auto q = in[0].to_vector(), k = in[1].to_vector(), v = in[2].to_vector();
  const auto bias = in.size() > 3 ? in[3].to_vector() : std::vector<double>();
  const auto mask = o.mask.defined() ? o.mask.to_vector() : std::vector<double>();
  const double scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(width)));
  std::vector<double> y(q.size());
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t from = ((b * queries + i) * heads + h) * width;
        const std::int64_t position = i + keys - queries;
        double sum = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          if (o.causal && j > position) continue;
          if (o.window > 0 && std::abs(position - j) >= o.window) continue;
          if (!mask.empty() && mask[at(mask_index(o.mask, b, i, j))] == 0) continue;
          const std::int64_t to = ((b * keys + j) * kv + h / (heads / kv)) * width;
          double logit = 0;
          for (std::int64_t e = 0; e < width; ++e) logit += scale * q[at(from + e)] * k[at(to + e)];
          if (o.softcap > 0) logit = o.softcap * std::tanh(logit / o.softcap);
          if (!bias.empty()) logit += bias[at((h * queries + i) * keys + j)];
          sum += std::exp(logit);
          for (std::int64_t e = 0; e < width; ++e) {
            y[at(from + e)] += std::exp(logit) * v[at(to + e)];
          }
        }
        for (std::int64_t e = 0; e < width && sum > 0; ++e) y[at(from + e)] /= sum;
      }
    }
  }
  return y;
}

}  // namespace norma::test
