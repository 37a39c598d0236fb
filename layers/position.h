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

struct RelativePositionConfig {
  static constexpr const char* type = "relative";
  static constexpr const char* doc =
      "Adds a learned number to the logits, one a bucket of distances and a head (T5).";
  static constexpr const char* source = "Raffel et al. 2020, arXiv 1910.10683";
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;
  static config::Fields fields() {
    using namespace config;
    return {
        field(
            "buckets", &RelativePositionConfig::buckets,
            "Half of them hold one distance each, the others ranges that grow with it; an "
            "encoder has one half of all for keys on the right. Halves are rounded down, as in T5.",
            between(4, 65536)),
        field("max_distance", &RelativePositionConfig::max_distance,
              "From here on all distances share the last bucket.", at_least(2))};
  }
  void check(config::Problems& problems, const std::string& path) const;
};

struct NoPositionConfig {
  static constexpr const char* type = "none";
  static constexpr const char* doc = "No position code (a causal mask alone tells the order).";
  static constexpr const char* source = "Haviv et al. 2022, arXiv 2203.16634";
  static config::Fields fields() { return {}; }
};

struct PositionConfig
    : config::OneOf<LearnedPositionConfig, SinusoidalPositionConfig, RopePositionConfig,
                    AlibiPositionConfig, RelativePositionConfig, NoPositionConfig> {
  static constexpr const char* family = "position";
  static constexpr const char* family_doc = "How the order of the tokens is told.";
  using OneOf::OneOf;
};

// The table of sinusoidal codes, (length, width).
[[nodiscard]] Tensor sinusoidal_table(std::int64_t length, std::int64_t width, DType dtype);
// ALiBi's slopes, one a head, as in the paper's code: 2^(-8 i / n) for the powers of two n, and for
// other numbers those of the power below, then every second one of the power above.
[[nodiscard]] std::vector<double> alibi_slopes(std::int64_t heads);
// -slope |i - j| for the last `queries` of `keys` positions: (heads, queries, keys).
[[nodiscard]] Tensor alibi_bias(const std::vector<double>& slopes, std::int64_t queries,
                                std::int64_t keys, DType dtype);

enum class Direction : std::uint8_t { causal, both };
// T5's bucket of a key that stands `distance` = j - i behind (negative: before) its query. With n
// buckets a direction, distances below n/2 have one each, the others lie evenly over the logarithm
// up to max_distance, and the last bucket holds all that are farther. Direction::both splits the
// buckets: the upper half is for keys behind the query; Direction::causal puts those into bucket 0.
// Halves are rounded down: of an odd number, Direction::both leaves the last one unused.
// Numerics: the logarithm in f32, as T5's code has it.
[[nodiscard]] std::int64_t relative_bucket(std::int64_t distance, Direction direction,
                                           const RelativePositionConfig& config);

}  // namespace norma
