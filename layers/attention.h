// Attention: softmax(q k^T scale) v in several heads.
#pragma once

#include "core/config/config.h"
#include "core/ops/attention.h"
#include "layers/linear.h"
#include "layers/norms.h"
#include "layers/position.h"

namespace norma {

enum class QkNormOver : std::uint8_t { head, width };
constexpr auto config_names(QkNormOver) {
  return std::to_array<std::string_view>({"head", "width"});
}

struct QkNormConfig {
  NormConfig norm = RmsNormConfig{};
  QkNormOver over = QkNormOver::head;
  static config::Fields fields();
};

struct AttentionConfig {
  static constexpr const char* type = "attention";
  static constexpr const char* doc = "softmax(q k^T scale) v in several heads.";
  static constexpr const char* source = "Vaswani et al. 2017, arXiv 1706.03762";
  std::int64_t heads = 1;
  std::optional<std::int64_t> kv_heads;
  std::optional<std::int64_t> head_width;
  bool causal = false;
  bool bias = true;
  std::optional<QkNormConfig> qk_norm;
  PositionConfig position = NoPositionConfig{};
  std::optional<std::int64_t> window;
  std::optional<double> softcap;
  std::optional<double> scale;
  double dropout = 0;  // on the weights
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// q = x Wq, k = x Wk, v = x Wv; y = concat over heads of softmax(cap(q k^T scale) + mask) v; y
// Wout. Query head h uses key-value head h / (heads / kv_heads). RoPE turns q and k after their
// norm. Shapes: x (B, T, C); q.weight (heads D, C), k.weight, v.weight (kv_heads D, C), out.weight
// (C, heads D), D = C / heads unless given.
// Masks: a key counts where pass.mask is 1; a query that sees no key gives 0 (before Wout).
// Throws: if the heads do not divide the width, or kv_heads the heads.
class Attention final : public Layer {
 public:
  // `value_gain` scales the initial v and out (DeepNorm).
  Attention(const AttentionConfig& config, const Scope& scope, const Signature& in,
            double value_gain = 1);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  [[nodiscard]] Tensor alibi_for(std::int64_t length, DType dtype);
  [[nodiscard]] Tensor heads_of(const Tensor& x, std::int64_t heads, Layer* norm,
                                const Forward& pass) const;

  AttentionConfig config_;
  std::int64_t kv_heads_, head_width_;
  Linear q_, k_, v_, out_;
  LayerPtr q_norm_, k_norm_;
  std::vector<double> alibi_slopes_;  // a slope a head; empty without ALiBi
  Tensor alibi_;                      // the bias of the last length
};

}  // namespace norma
