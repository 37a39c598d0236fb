#include "layers/scope.h"

#include <cmath>
#include <type_traits>

#include "core/autograd.h"

namespace norma {

Scope Scope::child(std::string_view name) const {
  Scope s = *this;
  s.path_ = path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  return s;
}

Scope Scope::with_gain(double gain) const {
  Scope s = *this;
  s.gain_ = gain;
  return s;
}

Scope Scope::with_branches(std::int64_t branches) const {
  Scope s = *this;
  s.branches_ = branches;
  return s;
}

Tensor Scope::make(std::string_view name, const Shape& shape, const ParameterKind& kind) const {
  const NoGrad off;
  Tensor w = Tensor::empty(shape, dtype_);
  const RandomKey key = random_key(seed_, "init/" + child(name).path_);
  const Fan fan{kind.fan_in, kind.fan_out};
  double scale = 1;
  init_.visit([&](const auto& rule) {
    using Rule = std::decay_t<decltype(rule)>;
    constexpr bool torch = std::is_same_v<Rule, TorchInit>;
    constexpr bool everywhere = std::is_same_v<Rule, Gpt2Init> || std::is_same_v<Rule, NormalInit>;
    switch (kind.role) {
      case ParameterKind::constant:
        w.fill_(kind.value);
        break;
      case ParameterKind::bias:
        w.fill_(0);
        if (torch) TorchInit::fill(w, fan, key);
        scale = gain_;
        break;
      case ParameterKind::embedding:
        if (everywhere) {
          rule.fill(w, fan, key);
        } else {
          fill_normal(w, 0, 1, key);
        }
        break;
      case ParameterKind::head:
        if (everywhere) {
          rule.fill(w, fan, key);
        } else {
          TorchInit::fill(w, fan, key);
        }
        break;
      case ParameterKind::residual_matrix:
      case ParameterKind::matrix:
        rule.fill(w, fan, key);
        scale = gain_;
        if (std::is_same_v<Rule, Gpt2Init> && kind.role == ParameterKind::residual_matrix &&
            branches_ > 0) {
          scale /= std::sqrt(static_cast<double>(branches_));
        }
        break;
    }
  });
  if (scale != 1) {
    std::vector<double> values = w.to_vector();
    for (double& v : values) v *= scale;
    w.copy_(Tensor::from(shape, values, DType::f64));
  }
  return w;
}

}  // namespace norma
