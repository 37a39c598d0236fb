#include "layers/pooling.h"

#include "core/config/sizes.h"
#include "core/ops/movement.h"
#include "core/ops/pool.h"

namespace norma {
namespace {

std::int64_t pooled(const char* name, std::int64_t size, const PoolConfig& c) {
  require(2 * c.padding <= c.kernel, "{}: the padding of {} is more than half of the kernel of {}",
          name, c.padding, c.kernel);
  const std::int64_t stride = c.stride.value_or(c.kernel);
  const std::int64_t padded = size + 2 * c.padding;
  require(padded >= c.kernel, "{}: the kernel of {} is larger than the padded input of {}", name,
          c.kernel, padded);
  return (padded - c.kernel) / stride + 1;
}

Signature pooled(const char* name, const Signature& in, const PoolConfig& c) {
  require_numbers(name, in);
  require(in.shape.rank() == 3, "{}: expected images (C, H, W); got samples of shape {}", name,
          in.shape);
  return {.shape = Shape{in.shape[0], pooled(name, in.shape[1], c), pooled(name, in.shape[2], c)}};
}

template <Tensor (*pool)(const Tensor&, Extent, Pool2dOptions)>
class Pool2d final : public Layer {
 public:
  Pool2d(const char* name, const PoolConfig& config, const Scope& scope, const Signature& in)
      : Layer(scope, pooled(name, in, config)), config_(config) {}
  Tensor forward(const Tensor& x, const Forward&) override {
    return pool(x, config_.kernel,
                {.stride = config_.stride.value_or(config_.kernel), .padding = config_.padding});
  }

 private:
  PoolConfig config_;
};

class GlobalAvgPool final : public Layer {
 public:
  GlobalAvgPool(const Scope& scope, const Signature& in)
      : Layer(scope, {.shape = Shape{in.shape[0]}}) {}
  Tensor forward(const Tensor& x, const Forward&) override { return global_avg_pool(x); }
};

class Flatten final : public Layer {
 public:
  Flatten(const Scope& scope, const Signature& in)
      : Layer(scope, {.shape = Shape{in.shape.numel()}}) {}
  Tensor forward(const Tensor& x, const Forward&) override {
    return reshape(x, Shape{x.size(0), output().shape[0]});
  }
};

}  // namespace

config::Fields PoolConfig::fields() {
  using namespace config;
  return {field("kernel", &PoolConfig::kernel, "Height and width of the window.", a_size()),
          field("stride", &PoolConfig::stride, "Step of the window; null: the kernel.", a_size()),
          field("padding", &PoolConfig::padding, "Cells around the image, at most kernel / 2.",
                between(0, kLargestSize))};
}

LayerPtr MaxPool2dConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<Pool2d<max_pool2d>>(type, *this, scope, in);
}

LayerPtr AvgPool2dConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<Pool2d<avg_pool2d>>(type, *this, scope, in);
}

LayerPtr GlobalAvgPoolConfig::build(const Scope& scope, const Signature& in) const {
  require_numbers("global_avg_pool", in);
  require(in.shape.rank() == 3,
          "global_avg_pool: expected images (C, H, W); got samples of shape {}", in.shape);
  return std::make_unique<GlobalAvgPool>(scope, in);
}

LayerPtr FlattenConfig::build(const Scope& scope, const Signature& in) const {
  require_numbers("flatten", in);
  return std::make_unique<Flatten>(scope, in);
}

}  // namespace norma
