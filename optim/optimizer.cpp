#include "optim/optimizer.h"

#include <cmath>
#include <unordered_map>

#include "core/autograd.h"
#include "core/error.h"

namespace norma {

Optimizer::Optimizer(const OptimizerOptions& config, FlatParametersPtr parameters)
    : parameters_(std::move(parameters)),
      settings_(assign_groups(config, *parameters_)),
      steps_(settings_.size(), 0) {
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (!settings_[i].frozen) continue;
    Tensor tensor = parameters_->tensor(static_cast<std::int64_t>(i));
    tensor.set_requires_grad(false);
    tensor.clear_grad();
  }
}

void Optimizer::step(double lr, double grad_scale) {
  require(std::isfinite(lr) && lr >= 0, "optimizer: expected a rate of at least 0; got {}", lr);
  require(std::isfinite(grad_scale),
          "optimizer: expected a finite gradient scale; got {}; skip the step", grad_scale);
  parameters_->gather_gradients();
  Update update;
  update.grad_scale = grad_scale;
  for (std::int64_t i = 0; i < parameters_->count(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (settings_[k].frozen || !parameters_->has_gradient(i)) continue;
    const StepSetting setting{lr * settings_[k].lr_factor, settings_[k].weight_decay, ++steps_[k]};
    // Nearly always one of the last few: parameters with and without decay alternate.
    std::size_t s = update.settings.size();
    while (s > 0 && !(update.settings[s - 1] == setting)) --s;
    if (s == 0) {
      update.settings.push_back(setting);
      s = update.settings.size();
    }
    const auto number = static_cast<std::int32_t>(s - 1);
    update.members.push_back({i, number});
    const std::int64_t begin = parameters_->begin(i), end = parameters_->end(i);
    if (!update.segments.empty() && update.segments.back().end == begin &&
        update.segments.back().setting == number) {
      update.segments.back().end = end;
    } else {
      update.segments.push_back({begin, end, number});
    }
    parameters_->touch(i);
  }
  if (update.members.empty()) return;
  this->update(update);
  parameters_->publish();
}

Tensor Optimizer::add_buffer(const std::string& kind, double value) {
  Tensor buffer = parameters_->make_buffer(value);
  for (std::int64_t i = 0; i < parameters_->count(); ++i) {
    add_state(kind + "." + parameters_->name(i), parameters_->slice(buffer, i));
  }
  return buffer;
}

void Optimizer::add_state(std::string name, Tensor tensor) {
  state_.push_back({std::move(name), std::move(tensor)});
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> result = state_;
  for (std::int64_t i = 0; i < parameters_->count(); ++i) {
    const std::int64_t step = steps(i);
    result.push_back({"step." + parameters_->name(i),
                      Tensor::from_ids({}, std::span<const std::int64_t>(&step, 1))});
  }
  return result;
}

void Optimizer::load_state(const std::vector<NamedTensor>& state) {
  const std::vector<NamedTensor> mine = this->state();
  std::unordered_map<std::string_view, const Tensor*> given;
  for (const NamedTensor& t : state) {
    require(given.emplace(t.name, &t.tensor).second, "optimizer: the state names '{}' twice",
            t.name);
  }
  for (const NamedTensor& t : mine) {
    const auto found = given.find(t.name);
    require(found != given.end(),
            "optimizer: the state lacks '{}'; it was saved by another optimizer or model", t.name);
    const Tensor& tensor = *found->second;
    require(tensor.shape() == t.tensor.shape() && tensor.dtype() == t.tensor.dtype(),
            "optimizer: state '{}' must be {} {}; got {} {}", t.name, name_of(t.tensor.dtype()),
            t.tensor.shape(), name_of(tensor.dtype()), tensor.shape());
  }
  if (given.size() != mine.size()) {
    for (const NamedTensor& t : mine) given.erase(t.name);
    throw Error::format("optimizer: the state has '{}', which this optimizer does not know",
                        given.begin()->first);
  }
  const NoGrad no_grad;
  for (NamedTensor& t : state_) t.tensor.copy_(*given.at(t.name));
  for (std::int64_t i = 0; i < parameters_->count(); ++i) {
    steps_[static_cast<std::size_t>(i)] =
        given.at("step." + parameters_->name(i))->to_ids().front();
  }
}

}  // namespace norma
