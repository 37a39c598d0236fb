#include "apps/training/rounding.h"

#include <cmath>

#include "apps/training/build.h"
#include "core/autograd.h"

namespace norma {
namespace {

struct Computed {
  std::vector<double> output, gradient;
};

Computed compute(Model& model, const Batch& batch, const LossConfig& loss) {
  const EnableGrad on;
  model.train();
  std::vector<Tensor> parameters;
  for (const Tensor& p : model.parameters()) {
    if (p.requires_grad()) parameters.push_back(p);
  }
  Forward pass = forward_of(batch);
  pass.dropout = false;
  const Tensor output = model.forward(batch.inputs, pass);
  const Tensor value = loss.apply(output, batch.targets);
  Computed result{.output = output.to_vector(), .gradient = {}};
  const std::vector<Tensor> gradients =
      grad(std::span(&value, 1), parameters, {.allow_unused = true});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<double> g =
        gradients[i].defined()
            ? gradients[i].to_vector()
            : std::vector<double>(static_cast<std::size_t>(parameters[i].numel()));
    result.gradient.insert(result.gradient.end(), g.begin(), g.end());
  }
  return result;
}

double distance(const std::vector<double>& x, const std::vector<double>& exact) {
  double off = 0, size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    off += std::pow(x[i] - exact[i], 2);
    size += exact[i] * exact[i];
  }
  return off == 0 ? 0 : std::sqrt(off / size);
}

}  // namespace

std::vector<std::pair<std::string, double>> rounding(Model& model, Model& exact, const Batch& batch,
                                                     const LossConfig& loss) {
  {
    const NoGrad off;
    exact.load_state_dict(model.state_dict());
    std::vector<Tensor> parameters = exact.parameters();
    std::size_t i = 0;
    for (const Tensor& p : model.parameters()) {
      parameters[i++].set_requires_grad(p.requires_grad());  // some may be frozen
    }
  }
  const Computed here = compute(model, batch, loss), there = compute(exact, batch, loss);
  return {{"rounding.output", distance(here.output, there.output)},
          {"rounding.grad", distance(here.gradient, there.gradient)}};
}

}  // namespace norma
