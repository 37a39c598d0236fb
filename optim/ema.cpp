#include "optim/ema.h"

#include <algorithm>
#include <cstring>

#include "core/autograd.h"
#include "core/error.h"
#include "core/kernels/optimizer.h"

namespace norma {

Ema::Ema(double decay, FlatParametersPtr parameters)
    : decay_(decay), parameters_(std::move(parameters)), average_(parameters_->make_buffer()) {
  require(decay >= 0 && decay < 1, "ema: the decay must lie in [0, 1); got {}", decay);
  std::memcpy(average_.mutable_raw(), parameters_->weights().raw(),
              static_cast<std::size_t>(average_.numel() * size_of(average_.dtype())));
}

void Ema::update() {
  const kernels::Segment all{0, parameters_->flat_size(), 0};
  dispatch_compute(parameters_->dtype(), "ema", [&]<class T>() {
    kernels::average_update<T>({&all, 1}, decay_, parameters_->weights().data<T>(),
                               average_.mutable_data<T>());
  });
}

void Ema::swap() {
  dispatch_compute(parameters_->dtype(), "ema", [&]<class T>() {
    T* a = average_.mutable_data<T>();
    std::swap_ranges(a, a + average_.numel(), parameters_->weights().mutable_data<T>());
  });
  for (std::int64_t i = 0; i < parameters_->count(); ++i) parameters_->touch(i);
  parameters_->publish();
}

std::vector<NamedTensor> Ema::state() const {
  std::vector<NamedTensor> result;
  for (std::int64_t i = 0; i < parameters_->count(); ++i) {
    result.push_back({parameters_->name(i), parameters_->slice(average_, i)});
  }
  return result;
}

void Ema::load_state(const std::vector<NamedTensor>& state) {
  std::vector<NamedTensor> mine = this->state();
  require(state.size() == mine.size(), "ema: expected {} averages; got {}", mine.size(),
          state.size());
  for (const NamedTensor& t : mine) {
    const NamedTensor* found = find_tensor(state, t.name);
    require(found && found->tensor.shape() == t.tensor.shape(),
            "ema: expected '{}' of shape {} in the state", t.name, t.tensor.shape());
  }
  const NoGrad no_grad;
  for (NamedTensor& t : mine) t.tensor.copy_(find_tensor(state, t.name)->tensor);
}

}  // namespace norma
