// The base of all optimizers: parameter groups, step counts, and state by name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/flat.h"
#include "core/kernels/optimizer.h"
#include "optim/groups.h"

namespace norma {

// Changes the parameters by their gradients.
//
// A parameter without a gradient this step stays as it is, to the bit: no momentum, no decay, no
// step counted. A gradient of zeros is something else, and moves it.
class Optimizer {
 public:
  // Switches the gradients of frozen parameters off. Throws Error as assign_groups does.
  Optimizer(const OptimizerOptions& config, FlatParametersPtr parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One update at rate `lr` (the schedule's) with gradients that count `grad_scale` times: the
  // factor of clipping, of accumulation or of a loss scale, folded into the pass.
  void step(double lr, double grad_scale = 1);

  // The gradients are gone afterwards; see FlatParameters::clear_gradients.
  void clear_gradients() { parameters_->clear_gradients(); }

  // Everything that the next step depends on besides parameters and gradients: moments by
  // "<kind>.<parameter>" and the steps that each parameter has taken, "step.<parameter>". The
  // tensors share memory with the optimizer, so save or clone them before the next step.
  [[nodiscard]] std::vector<NamedTensor> state() const;
  // Puts a saved state back; the next step then gives the same bits as without the break.
  // Throws Error for a missing or unknown name, or another shape or type; nothing is changed then.
  void load_state(const std::vector<NamedTensor>& state);

  [[nodiscard]] FlatParameters& parameters() { return *parameters_; }
  [[nodiscard]] const FlatParameters& parameters() const { return *parameters_; }
  [[nodiscard]] const ParameterSetting& setting(std::int64_t i) const {
    return settings_[static_cast<std::size_t>(i)];
  }
  // Updates that parameter i has seen.
  [[nodiscard]] std::int64_t steps(std::int64_t i) const {
    return steps_[static_cast<std::size_t>(i)];
  }

 protected:
  // Numbers of one update that a run of parameters shares.
  struct StepSetting {
    double lr = 0;
    double weight_decay = 0;
    std::int64_t step = 0;  // this one included: 1 in the first update
    bool operator==(const StepSetting&) const = default;
  };
  // A parameter that takes part in an update.
  struct Member {
    std::int64_t index = 0;
    std::int32_t setting = 0;
  };
  struct Update {
    std::vector<StepSetting> settings;
    std::vector<kernels::Segment> segments;  // maximal runs of parameters with one setting
    std::vector<Member> members;
    double grad_scale = 1;
  };

  virtual void update(const Update& update) = 0;

  // A flat buffer of state with an entry a parameter, "<kind>.<parameter>".
  [[nodiscard]] Tensor add_buffer(const std::string& kind, double value = 0);
  // Any other tensor of state.
  void add_state(std::string name, Tensor tensor);

  // Calls f(setting) for every setting of the update and collects what it gives: the numbers that
  // a kernel takes.
  template <class F>
  [[nodiscard]] static auto per_setting(const Update& update, F&& f) {
    std::vector<decltype(f(update.settings.front()))> result;
    result.reserve(update.settings.size());
    for (const StepSetting& s : update.settings) result.push_back(f(s));
    return result;
  }
  // A flat buffer's elements, null for a buffer that does not exist.
  template <class T>
  [[nodiscard]] static T* pointer(Tensor& buffer) {
    return buffer.defined() ? buffer.mutable_data<T>() : nullptr;
  }

 private:
  FlatParametersPtr parameters_;
  std::vector<ParameterSetting> settings_;
  std::vector<std::int64_t> steps_;
  std::vector<NamedTensor> state_;
};

using OptimizerPtr = std::unique_ptr<Optimizer>;

}  // namespace norma
