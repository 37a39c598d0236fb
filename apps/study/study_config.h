// The file of a study.
//
//   {"name": "warmup", "title": "Post-LN needs warm-up", "doc": "...", "source": "...",
//    "base": {"model": {...}, "train": {"steps": 150, "log_every": 1, ...}, ...},
//    "arms": {"pre": {"model.placement": "pre"}, "post": {"model.placement": "post"}},
//    "factors": {"optimizer.lr": [1e-3, 2e-3]},
//    "seeds": [0, 1, 2],
//    "claims": [{"text": "Pre-LN trains.", "expr": "all(final(\"pre\", \"lr=0.001\") < 0.5)"}]}
//
// An arm sets dotted keys over the base. With factors, every arm is run with every combination of
// the factors' values, and is named "pre, lr=0.001"; without arms, "lr=0.001".
//
// "published": {"final": {"pre, lr=0.001": 0.4, "post, *": "nan"}} are tables of published values,
// by arm or glob; one that is called as a measure stands beside it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/study/figure_config.h"
#include "core/config/config.h"

namespace norma::study {

using config::Json;

// Any JSON object, read later by somebody who knows what it is.
struct AnyObject {
  Json value = Json::object();
};
// An object, or the path of a file that holds one.
struct ObjectOrPath {
  Json value = Json::object();
};

enum class Verdict { holds, fails };
constexpr auto config_names(Verdict) { return std::to_array<std::string_view>({"holds", "fails"}); }

// A sentence that the program checks.
struct ClaimConfig {
  std::string name;
  std::string text;
  std::string expr;
  std::string source;
  std::string published;
  Verdict expect = Verdict::holds;
  std::string why;

  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
};

// A level that the curves are to be compared with.
struct FloorConfig {
  std::string label;
  std::string expr;

  static config::Fields fields();
};

// When a run has surely failed; `above` is an expression over the run's own configuration.
struct StopFailedConfig {
  std::string above;
  std::int64_t after = 0;
  std::int64_t steps = 50;

  static config::Fields fields();
};

struct StudyConfig {
  std::string name;
  std::string title;
  std::string doc;
  std::string source;
  ObjectOrPath base;
  AnyObject arms;
  AnyObject factors;
  std::vector<std::int64_t> seeds = {0};
  std::optional<std::int64_t> jobs;
  std::vector<std::string> measures = {"final"};
  std::vector<ClaimConfig> claims;
  std::vector<FloorConfig> floors;
  AnyObject published;
  std::string reference;
  std::optional<StopFailedConfig> stop_failed;
  std::optional<std::vector<FigureConfig>> figures;
  bool is_long = false;

  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
};

// Reads a study's file, or that in a study's folder; a `base` that is a path (relative to the file)
// is replaced by that file's object. Paths of data files, in the base, arms and factors, become
// whole: they are relative to the file that they stand in. `sets`: KEY=VALUE, for a key of the
// study or, where the study has none of that name, of its base. Throws ConfigError.
[[nodiscard]] StudyConfig load_study(const std::string& given,
                                     std::span<const std::string> sets = {});

}  // namespace norma::study

namespace norma::config {

template <>
const Type& type_of<study::AnyObject>();
template <>
const Type& type_of<study::ObjectOrPath>();

}  // namespace norma::config
