// The observer of a training step that QK-Clip needs.
#pragma once

#include "layers/observer.h"
#include "optim/qk_clip.h"

namespace norma {

// Hands the largest attention logits of a pass to QK-Clip.
class LogitWatch final : public Observer {
 public:
  LogitWatch(const QkClipConfig& config, FlatParametersPtr parameters)
      : clip(config, std::move(parameters)) {}

  void stream(std::string_view, const Tensor&) override {}
  void branch(std::string_view, const Tensor&) override {}
  void largest_logit(std::string_view path, const Tensor& largest) override {
    clip.see(path, largest);
  }
  [[nodiscard]] bool wants_logits() const override { return true; }

  QkClip clip;
};

}  // namespace norma
