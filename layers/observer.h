// Observer: sees what passes through a model, without changing it.
#pragma once

#include <string_view>

#include "core/tensor.h"

namespace norma {

// Given to Forward, it is told of the values named below while a pass runs. An observer must not
// change them. Layers call it only if it is there, so a pass without one costs nothing.
class Observer {
 public:
  Observer() = default;
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // The residual stream (B, T, C), or an activation (B, ...): at `path` = "blocks.3" what leaves
  // that block, at "embedding" what enters the first one; at "layers.2" what leaves that layer of
  // a sequential model, at "input" the numbers that enter the first one.
  virtual void stream(std::string_view path, const Tensor& x) = 0;
  // What a residual branch adds to the stream (after its norms, factors and dropout), at
  // "blocks.3.attention" or "blocks.3.ffn".
  virtual void branch(std::string_view path, const Tensor& update) = 0;
  // The largest attention logit that counted, a query head each (heads), at "blocks.3.attention":
  // scale q.k before the soft cap and before the bias.
  virtual void largest_logit(std::string_view path, const Tensor& largest) = 0;
  // True iff largest_logit is wanted.
  [[nodiscard]] virtual bool wants_logits() const { return false; }
};

}  // namespace norma
