// Attention: softmax(q k^T scale) v in several heads.
#pragma once

#include "core/config/config.h"
#include "core/ops/attention.h"
#include "layers/linear.h"
#include "layers/norms.h"
#include "layers/relative_bias.h"

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

// What a block says of an attention beside the configuration.
struct AttentionParts {
  double value_gain = 1;             // scales the initial v and out (DeepNorm)
  std::optional<Shape> memory = {};  // (S, C) of what cross-attention reads; absent: self-attention
  bool value_norm = false;           // the norm of qk_norm on the values too (HybridNorm): v_norm
};

// q = x Wq, k = m Wk, v = m Wv; y = concat over heads of softmax(cap(q k^T scale) + bias) v; y
// Wout. Self-attention has m = x; cross-attention m = pass.memory. Query head h uses key-value head
// h / (heads / kv_heads). RoPE turns q and k after their norm; the bias is ALiBi's, this layer's
// own `relative` one, or pass.attention_bias.
// Shapes: x (B, T, C), m (B, S, C'); q.weight (heads D, C), k.weight, v.weight (kv_heads D, C'),
// out.weight (C, heads D), D = C / heads unless given.
// Masks: a key counts where pass.mask (cross-attention: pass.source_mask) is 1, and pass.visible
// for the query; a query that sees no key gives 0 (before Wout). Cache: causal self-attention keeps
// the keys and values of all tokens so far, cross-attention those of the source. Throws: if the
// heads do not divide the width, or kv_heads the heads; for cross-attention that is causal or has
// positions.
class Attention final : public Layer {
 public:
  Attention(const AttentionConfig& config, const Scope& scope, const Signature& in,
            const AttentionParts& parts = {});
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;
  [[nodiscard]] Tensor forward_onto(const Tensor& residual, const Tensor& x,
                                    const Forward& pass) override;

 private:
  // True where nothing stands between the products of x and the attention: then q, k and v are made
  // in one op. The bits are the same, but that half types round the gradient of x once.
  [[nodiscard]] bool in_one_op(const Forward& pass) const;
  [[nodiscard]] Tensor attend(const Tensor& x, const Forward& pass);  // y above: all but Wout
  [[nodiscard]] Tensor queries_keys_values(const Tensor& x) const;    // (3, B, T, heads * D)
  // Of all keys that the queries may look at; RoPE has turned k already.
  struct KeysAndValues {
    Tensor k, v;  // (B, S, kv_heads, D)
  };
  [[nodiscard]] KeysAndValues read(const Tensor& x, std::int64_t start, const Forward& pass);
  [[nodiscard]] KeysAndValues read_on(const Tensor& x, const Forward& pass);
  [[nodiscard]] KeysAndValues read_memory(const Forward& pass);
  // By RoPE, x[:, 0] standing at position `start`.
  [[nodiscard]] Tensor turned(const Tensor& x, std::int64_t start) const;
  [[nodiscard]] Tensor bias_for(std::int64_t queries, std::int64_t keys, const Forward& pass);
  [[nodiscard]] Tensor heads_of(const Tensor& x, std::int64_t heads, Layer* norm,
                                const Forward& pass) const;

  AttentionConfig config_;
  bool cross_;
  std::int64_t kv_heads_, head_width_;
  Linear q_, k_, v_, out_;
  LayerPtr q_norm_, k_norm_, v_norm_;
  std::vector<double> alibi_slopes_;  // a slope a head; empty without ALiBi
  Tensor alibi_;                      // the bias of the last lengths
  std::unique_ptr<RelativeBias> relative_;
};

}  // namespace norma
