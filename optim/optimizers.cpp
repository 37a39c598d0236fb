#include "optim/optimizers.h"

namespace norma {

const OptimizerOptions& OptimizerConfig::options() const {
  return visit([](const auto& member) -> const OptimizerOptions& { return member; });
}

OptimizerPtr make_optimizer(const OptimizerConfig& config, FlatParametersPtr parameters) {
  return config.visit(
      [&](const auto& member) { return make_optimizer(member, std::move(parameters)); });
}

OptimizerPtr make_optimizer(const OptimizerConfig& config,
                            const std::vector<NamedParameter>& parameters) {
  return make_optimizer(config, flatten(parameters));
}

}  // namespace norma
