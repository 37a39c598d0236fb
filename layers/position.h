// Position codes: how a transformer knows the order of its tokens. One list.
#pragma once

#include <array>

#include "core/config/config.h"
#include "core/ops/rope.h"

namespace norma {

constexpr auto config_names(RopeLayout) {
  return std::to_array<std::string_view>({"half", "interleaved"});
}

struct LearnedPositionConfig {
  static constexpr const char* type = "learned";
  static constexpr const char* doc = "A learned row for each position, added to the embeddings.";
  static constexpr const char* source = "Radford et al. 2019 (GPT-2)";
  static config::Fields fields() { return {}; }
};

struct SinusoidalPositionConfig {
  static constexpr const char* type = "sinusoidal";
  static constexpr const char* doc =
      "sin and cos of t / 10000^(2i/d) in turn, added to the embeddings.";
  static constexpr const char* source = "Vaswani et al. 2017, arXiv 1706.03762";
  static config::Fields fields() { return {}; }
};

struct RopePositionConfig {
  static constexpr const char* type = "rope";
  static constexpr const char* doc = "Rotates pairs of query and key features by an angle t w_i.";
  static constexpr const char* source = "Su et al. 2021, arXiv 2104.09864";
  double base = 10000;
  RopeLayout layout = RopeLayout::half;
  static config::Fields fields() {
    using namespace config;
    return {field("base", &RopePositionConfig::base, "w_i = base^(-2i/d).", above(0)),
            field("layout", &RopePositionConfig::layout,
                  "half pairs features i and i + d/2 (LLaMA), interleaved 2i and 2i + 1.")};
  }
};

struct AlibiPositionConfig {
  static constexpr const char* type = "alibi";
  static constexpr const char* doc = "Adds -slope |i - j| to the logits, a slope a head.";
  static constexpr const char* source = "Press et al. 2022, arXiv 2108.12409";
  static config::Fields fields() { return {}; }
};

struct NoPositionConfig {
  static constexpr const char* type = "none";
  static constexpr const char* doc = "No position code (a causal mask alone tells the order).";
  static constexpr const char* source = "Haviv et al. 2022, arXiv 2203.16634";
  static config::Fields fields() { return {}; }
};

struct PositionConfig : config::OneOf<LearnedPositionConfig, SinusoidalPositionConfig,
                                      RopePositionConfig, AlibiPositionConfig, NoPositionConfig> {
  static constexpr const char* family = "position";
  static constexpr const char* family_doc = "How the order of the tokens is told.";
  using OneOf::OneOf;
};

// The table of sinusoidal codes, (length, width).
[[nodiscard]] Tensor sinusoidal_table(std::int64_t length, std::int64_t width, DType dtype);
// ALiBi's slopes, one a head, as in the paper's code: 2^(-8 i / n) for the powers of two n, and for
// other numbers those of the power below, then every second one of the power above.
[[nodiscard]] std::vector<double> alibi_slopes(std::int64_t heads);
// -slope |i - j|: (heads, length, length).
[[nodiscard]] Tensor alibi_bias(const std::vector<double>& slopes, std::int64_t length,
                                DType dtype);

}  // namespace norma
