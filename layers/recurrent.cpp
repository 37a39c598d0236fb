#include "layers/recurrent.h"

#include <algorithm>

#include "core/config/sizes.h"
#include "core/ops/arithmetic.h"
#include "core/ops/linear.h"
#include "core/ops/movement.h"
#include "core/ops/recurrent.h"

namespace norma {

config::Fields RecurrentOptions::fields() {
  using namespace config;
  return {
      field("hidden", &RecurrentOptions::hidden, "Features of the state.", a_size(), required()),
      field("norm", &RecurrentOptions::norm, "A norm inside the cell; null: none.")};
}

RecurrentLayer::RecurrentLayer(const char* name, std::int64_t gates,
                               const RecurrentOptions& options, const Scope& scope,
                               const Signature& in)
    : Layer(scope, {.shape = Shape{in.shape.rank() == 2 ? in.shape[0] : 0, options.hidden},
                    .vocab = 0,
                    .source = in.source,
                    .features_last = true}),
      name_(name),
      hidden_(options.hidden) {
  require_numbers(name, in);
  require(in.shape.rank() == 2, "{}: expected sequences (T, C); got samples of shape {}", name,
          in.shape);
  const std::int64_t all = gates * hidden_;
  const ParameterKind matrix{.role = ParameterKind::matrix, .fan_in = hidden_, .fan_out = all};
  const ParameterKind bias{.role = ParameterKind::bias, .fan_in = hidden_, .fan_out = all};
  weight_ih_ = parameter(scope, "weight_ih", Shape{all, in.shape[1]}, matrix);
  weight_hh_ = parameter(scope, "weight_hh", Shape{all, hidden_}, matrix);
  bias_ih_ = parameter(scope, "bias_ih", Shape{all}, bias);
  bias_hh_ = parameter(scope, "bias_hh", Shape{all}, bias);
  ih_norm_ = make_norm("ih_norm", Shape{in.shape[0], all}, options, scope);
  hh_norm_ = make_norm("hh_norm", Shape{1, all}, options, scope);
}

LayerPtr RecurrentLayer::make_norm(const char* name, const Shape& shape,
                                   const RecurrentOptions& options, const Scope& scope) {
  if (!options.norm) return nullptr;
  const Signature in{.shape = shape, .vocab = 0, .source = {}, .features_last = true};
  LayerPtr norm = options.norm->build(scope.child(name), in);
  child(name, *norm);
  return norm;
}

Tensor RecurrentLayer::normed(Layer* norm, const Tensor& x, const Forward& pass) {
  if (!norm) return x;
  return reshape(norm->forward(reshape(x, {x.size(0), 1, x.size(1)}), pass), x.shape());
}

RecurrentLayer::State RecurrentLayer::start(const Tensor& x, const Forward& pass) const {
  if (pass.cache) {
    const auto kept = pass.cache->kept.find(path());
    if (kept != pass.cache->kept.end()) return {.h = kept->second[0], .c = kept->second[1]};
  }
  const Tensor zero = Tensor::zeros({x.size(0), hidden_}, x.dtype());
  return {.h = zero, .c = zero};
}

Tensor RecurrentLayer::forward(const Tensor& x, const Forward& pass) {
  require(x.rank() == 3 && x.size(1) > 0,
          "{}: expected sequences (B, T, C) of at least one step; got {}", name_, x.shape());
  const std::int64_t batch = x.size(0), length = x.size(1);
  const auto product = [&](const Tensor& from, const Tensor& w, const Tensor& b, Layer* norm,
                           auto&& apply) {
    return norm ? apply(linear(from, w)) + b : linear(from, w, b);
  };
  // (T, B, gates): a step is a part of it, and no copy.
  const Tensor from_x =
      permute(product(x, weight_ih_, bias_ih_, ih_norm_.get(),
                      [&](const Tensor& y) { return ih_norm_->forward(y, pass); }),
              {1, 0, 2});
  const Tensor mask = pass.mask.defined() ? permute(pass.mask, {1, 0}) : Tensor();
  Forward at_step = pass;
  State state = start(x, pass);
  std::vector<Tensor> outputs;
  for (std::int64_t t = 0; t < length; ++t) {
    if (mask.defined()) at_step.mask = reshape(slice(mask, 0, t, t + 1), {batch, 1});
    const Tensor from_h =
        product(state.h, weight_hh_, bias_hh_, hh_norm_.get(),
                [&](const Tensor& y) { return normed(hh_norm_.get(), y, at_step); });
    const State next =
        step(reshape(slice(from_x, 0, t, t + 1), from_h.shape()), from_h, state, at_step);
    state = mask.defined() ? held(next, state, at_step.mask) : next;
    outputs.push_back(state.h);
  }
  if (pass.cache) pass.cache->kept[path()] = {state.h, state.c};
  return permute(reshape(concatenate(outputs, 0), {length, batch, hidden_}), {1, 0, 2});
}

RecurrentLayer::State RecurrentLayer::held(const State& next, const State& before,
                                           const Tensor& mask) {
  const auto* counts = mask.data<std::uint8_t>();
  if (std::all_of(counts, counts + mask.numel(), [](std::uint8_t c) { return c != 0; })) {
    return next;
  }
  return {.h = where(mask, next.h, before.h),
          .c = next.c.defined() ? where(mask, next.c, before.c) : next.c};
}

namespace {

class Lstm final : public RecurrentLayer {
 public:
  Lstm(const LstmConfig& config, const Scope& scope, const Signature& in)
      : RecurrentLayer(LstmConfig::type, 4, config, scope, in),
        cell_norm_(make_norm("cell_norm", Shape{1, config.hidden}, config, scope)) {}

 private:
  State step(const Tensor& from_x, const Tensor& from_h, const State& before,
             const Forward& pass) const override {
    const Tensor gates = from_x + from_h, c = lstm_cell(gates, before.c);
    return {.h = lstm_output(gates, normed(cell_norm_.get(), c, pass)), .c = c};
  }

  LayerPtr cell_norm_;
};

class Gru final : public RecurrentLayer {
 public:
  Gru(const GruConfig& config, const Scope& scope, const Signature& in)
      : RecurrentLayer(GruConfig::type, 3, config, scope, in) {}

 private:
  State step(const Tensor& from_x, const Tensor& from_h, const State& before,
             const Forward&) const override {
    return {.h = gru_cell(from_x, from_h, before.h), .c = {}};
  }
};

}  // namespace

LayerPtr LstmConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<Lstm>(*this, scope, in);
}

LayerPtr GruConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<Gru>(*this, scope, in);
}

}  // namespace norma
