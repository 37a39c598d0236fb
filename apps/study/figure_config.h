// The pictures of a study, as its file asks for them.
//
//   "figures": [
//     {"type": "curves", "value": "loss", "arms": "post*"},
//     {"type": "heat", "x": "optimizer.lr", "y": "model.layers", "value": "final"},
//     {"type": "line", "x": "model.layers", "value": "probe(arm, \"grad.blocks.last\", 0)"},
//     {"type": "profile", "value": "stream.rms.blocks.*"}
//   ]
//
// `value` of heat and line is a measure's name, or an expression as claims have it in which `arm`
// stands for the arm of the cell or point. `arms` is a glob over the arms' names; `a*|b*` takes
// what fits one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/config/config.h"

namespace norma::study {

// What a band or an error bar shows of the seeds.
enum class BandKind { range, deviation };
constexpr auto config_names(BandKind) {
  return std::to_array<std::string_view>({"range", "deviation"});
}

struct FigureOptions {
  std::string title;
  std::string caption;
  std::string arms = "*";
  std::string panels;

  [[nodiscard]] static config::Fields figure_fields();
};

struct CurvesConfig : FigureOptions {
  static constexpr const char* type = "curves";
  static constexpr const char* doc = "A value along the run, a curve an arm.";
  static constexpr const char* source = "";

  std::string value = "loss";
  bool log_x = false;
  std::optional<bool> log_y;
  std::optional<std::int64_t> smooth;
  BandKind band = BandKind::range;

  static config::Fields fields();
};

struct HeatConfig : FigureOptions {
  static constexpr const char* type = "heat";
  static constexpr const char* doc = "A value over two factors, a number and a colour a cell.";
  static constexpr const char* source = "";

  std::string x, y;
  std::string value = "final";
  std::string fails_above;
  std::optional<bool> log_color;

  static config::Fields fields();
};

struct ProfileConfig : FigureOptions {
  static constexpr const char* type = "profile";
  static constexpr const char* doc = "What a probe found at each depth, a line an arm.";
  static constexpr const char* source = "";

  std::string value;
  std::int64_t step = 0;
  bool relative = false;
  std::optional<bool> log_y;
  BandKind band = BandKind::range;

  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
};

struct LineConfig : FigureOptions {
  static constexpr const char* type = "line";
  static constexpr const char* doc = "A measure over a factor, a line an arm of the others.";
  static constexpr const char* source = "";

  std::string x;
  std::string value = "final";
  std::optional<bool> log_x, log_y;
  BandKind band = BandKind::range;

  static config::Fields fields();
};

struct FigureConfig : config::OneOf<CurvesConfig, HeatConfig, ProfileConfig, LineConfig> {
  static constexpr const char* family = "figure";
  static constexpr const char* family_doc = "A picture of a study.";
  using OneOf::OneOf;
};

}  // namespace norma::study
