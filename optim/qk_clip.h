// QK-Clip: keeps attention logits from growing, by scaling the weights of queries and keys.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"
#include "core/flat.h"

namespace norma {

// The key `qk_clip` of an optimizer.
struct QkClipConfig {
  double tau = 100;
  static config::Fields fields();
};

// After a step in which the largest logit of head h, scale q.k before any cap, was S_h > tau, with
// gamma = tau / S_h:
//   as many key heads as query heads: the rows of head h of W_q and W_k, and of their biases, times
//   sqrt(gamma), so that all its logits shrink by gamma;
//   key heads shared by several query heads: the rows of W_q and its bias times gamma, since the
//   keys belong to other heads too.
// A head that had a logit which is not finite is left alone: nothing is known of its scale.
// Forward and backward stay as they are, and so do frozen parameters. With a norm on queries and
// keys it has no effect. Source: Kimi K2, arXiv 2507.20534; for shared keys by analogy with its
// rule for shared parts.
class QkClip {
 public:
  QkClip(const QkClipConfig& config, FlatParametersPtr parameters)
      : tau_(config.tau), parameters_(std::move(parameters)) {}

  // The largest logit of each query head in the attention at `path`, whose parameters are
  // "<path>.q.weight", "<path>.k.weight" and perhaps biases. Of several micro-batches in a step the
  // largest counts.
  void see(std::string_view path, const Tensor& largest);
  // Scales the weights; call after the optimizer's step. Throws Error if an attention has no such
  // parameters.
  void apply();
  // Forgets what was seen; call before a step.
  void reset() { seen_.clear(); }

 private:
  // The rows of one head of parameter `index` times `factor`.
  void scale_head(std::int64_t index, std::int64_t head, std::int64_t heads, double factor);
  // The parameter of that name, or -1.
  [[nodiscard]] std::int64_t find(const std::string& name) const;

  double tau_;
  FlatParametersPtr parameters_;
  std::map<std::string, std::vector<double>, std::less<>> seen_;
};

}  // namespace norma
