#include "layers/module.h"

#include <set>

#include "core/autograd.h"

namespace norma {

RandomKey Forward::key(const std::string& path) const {
  const int draw = draws_[path]++;
  return random_key(seed, draw == 0 ? fmt::format("dropout/{}/{}", stream, path)
                                    : fmt::format("dropout/{}/{}/{}", stream, path, draw));
}

template <class Visit>
void Module::visit(const std::string& prefix, const Visit& f) const {
  f(prefix, *this);
  for (const Child& c : children_) {
    c.module->visit(c.name.empty() ? prefix : prefix + c.name + ".", f);
  }
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> out;
  std::set<const TensorImpl*> seen;
  visit("", [&](const std::string& prefix, const Module& m) {
    for (const NamedTensor& p : m.parameters_) {
      if (seen.insert(p.tensor.impl()).second) out.push_back({prefix + p.name, p.tensor});
    }
  });
  return out;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  for (NamedParameter& p : named_parameters()) out.push_back(std::move(p.tensor));
  return out;
}

std::vector<NamedTensor> Module::named_buffers() const {
  std::vector<NamedTensor> out;
  visit("", [&](const std::string& prefix, const Module& m) {
    for (const NamedTensor& b : m.buffers_) out.push_back({prefix + b.name, b.tensor});
  });
  return out;
}

std::vector<NamedTensor> Module::state_dict() const {
  std::vector<NamedTensor> out = named_parameters();
  for (NamedTensor& b : named_buffers()) out.push_back(std::move(b));
  return out;
}

void copy_state(std::vector<NamedTensor> own, const std::vector<NamedTensor>& state) {
  std::string problems;
  for (const NamedTensor& t : own) {
    const NamedTensor* given = find_tensor(state, t.name);
    if (!given) {
      problems += fmt::format("\n  missing: {} {}", t.name, t.tensor.shape());
    } else if (!(given->tensor.shape() == t.tensor.shape())) {
      problems += fmt::format("\n  {}: expected shape {}; got {}", t.name, t.tensor.shape(),
                              given->tensor.shape());
    }
  }
  for (const NamedTensor& t : state) {
    if (!find_tensor(own, t.name)) problems += fmt::format("\n  unknown: {}", t.name);
  }
  require(problems.empty(),
          "load_state_dict: the state does not fit this model, which stays as it was:{}", problems);
  const NoGrad off;
  for (NamedTensor& t : own) t.tensor.copy_(find_tensor(state, t.name)->tensor);
}

void Module::load_state_dict(const std::vector<NamedTensor>& state) {
  copy_state(state_dict(), state);
}

std::int64_t Module::num_parameters() const {
  std::int64_t n = 0;
  for (const Tensor& p : parameters()) n += p.numel();
  return n;
}

void Module::train(bool on) {
  training_ = on;
  for (const Child& c : children_) c.module->train(on);
}

void Module::clear_gradients() {
  for (Tensor& p : parameters()) p.clear_grad();
}

Tensor Module::parameter(const Scope& scope, std::string_view name, const Shape& shape,
                         const ParameterKind& kind) {
  Tensor p = scope.make(name, shape, kind);
  p.set_requires_grad();
  parameters_.push_back({std::string(name), p});
  return p;
}

Tensor Module::buffer(std::string_view name, Tensor tensor) {
  buffers_.push_back({std::string(name), tensor});
  return tensor;
}

}  // namespace norma
