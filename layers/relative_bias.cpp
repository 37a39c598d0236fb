#include "layers/relative_bias.h"

#include "core/ops/indexing.h"
#include "core/ops/movement.h"

namespace norma {

RelativeBias::RelativeBias(const RelativePositionConfig& config, std::int64_t heads,
                           Direction direction, const Scope& scope)
    : Module(scope), config_(config), direction_(direction) {
  weight_ =
      parameter(scope, "weight", Shape{config.buckets, heads},
                {.role = ParameterKind::embedding, .fan_in = config.buckets, .fan_out = heads});
}

Tensor RelativeBias::forward(std::int64_t queries, std::int64_t keys) {
  const Shape shape{queries, keys};
  if (!buckets_.defined() || !(buckets_.shape() == shape)) {
    std::vector<std::int64_t> ids;
    ids.reserve(static_cast<std::size_t>(shape.numel()));
    for (std::int64_t i = keys - queries; i < keys; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        ids.push_back(relative_bucket(j - i, direction_, config_));
      }
    }
    buckets_ = Tensor::from_ids(shape, ids);
  }
  return permute(embedding(weight_, buckets_), {2, 0, 1});
}

}  // namespace norma
