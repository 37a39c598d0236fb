// The observer of a training step that looks at the attention's logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "layers/observer.h"
#include "optim/qk_clip.h"

namespace norma {

// Keeps the largest attention logit of a step, and hands each head's to QK-Clip, where there is
// one.
class LogitWatch final : public Observer {
 public:
  explicit LogitWatch(std::unique_ptr<QkClip> clip) : clip_(std::move(clip)) {}

  void stream(std::string_view, const Tensor&) override {}
  void branch(std::string_view, const Tensor&) override {}
  void largest_logit(std::string_view path, const Tensor& largest) override {
    for (const double logit : largest.to_vector()) {
      largest_ = std::isnan(logit) ? logit : std::max(largest_, logit);
    }
    if (clip_) clip_->see(path, largest);
  }
  [[nodiscard]] bool wants_logits() const override { return true; }

  // Call before a step.
  void reset() {
    largest_ = -std::numeric_limits<double>::infinity();
    if (clip_) clip_->reset();
  }
  // Call after the optimizer's step.
  void clip() {
    if (clip_) clip_->apply();
  }
  // Of all heads, layers and micro-batches since the last reset.
  [[nodiscard]] double largest() const { return largest_; }

 private:
  std::unique_ptr<QkClip> clip_;
  double largest_ = -std::numeric_limits<double>::infinity();
};

}  // namespace norma
