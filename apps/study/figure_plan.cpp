#include "apps/study/figure_plan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "apps/study/column.h"
#include "apps/study/plan.h"

namespace norma::study {
namespace {

constexpr std::size_t kCrowded = 12;     // curves in one field
constexpr std::size_t kFewestCells = 3;  // values of a factor that a heat map or a line shows
constexpr const char* kNamedArms = "arms";

// The arms that one of the globs means, which stand between |, in the order of the plan.
std::vector<std::size_t> arms_of_globs(const std::string& globs, const Scope& scope) {
  std::vector<std::size_t> arms;
  for (std::size_t begin = 0; begin <= globs.size();) {
    const std::size_t end = std::min(globs.find('|', begin), globs.size());
    const std::vector<std::size_t> found =
        arms_of(std::string_view(globs).substr(begin, end - begin), scope.arms);
    arms.insert(arms.end(), found.begin(), found.end());
    begin = end + 1;
  }
  std::sort(arms.begin(), arms.end());
  arms.erase(std::unique(arms.begin(), arms.end()), arms.end());
  return arms;
}

// What an arm has at a key: as it was set, else as it runs.
const Json* setting(const Plan& plan, std::size_t arm, const std::string& key) {
  const Json& set = plan.arms[arm].settings;
  return set.contains(key) ? &set.at(key) : at_path(plan.run(arm, 0).config, key);
}

bool is_factor(const Plan& plan, const std::string& key) {
  return plan.config.factors.value.contains(key);
}

// The index of `label` in the list, to which it is added.
std::size_t place_in(std::vector<std::string>& list, const std::string& label) {
  const auto found = std::find(list.begin(), list.end(), label);
  if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
  list.push_back(label);
  return list.size() - 1;
}

// The name of an arm without the parts that stand elsewhere: a factor's, or kNamedArms.
std::string rest_of_name(const Plan& plan, std::size_t arm, const std::vector<std::string>& gone) {
  const auto stays = [&](const std::string& key) {
    return std::find(gone.begin(), gone.end(), key) == gone.end();
  };
  const Arm& a = plan.arms[arm];
  std::string name = stays(kNamedArms) ? a.named : "";
  for (const auto& [key, values] : plan.config.factors.value.items()) {
    if (stays(key)) name += (name.empty() ? "" : ", ") + level_name(key, a.settings.at(key));
  }
  return name;
}

std::string panel_name(const Plan& plan, std::size_t arm, const std::string& key) {
  if (key.empty()) return "";
  return key == kNamedArms ? plan.arms[arm].named : level_name(key, *setting(plan, arm, key));
}

std::string level_label(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("type")) return value["type"].get<std::string>();
  return value.dump();
}

class Planner {
 public:
  Planner(const Plan& plan, const Scope& scope, std::string path,
          std::vector<config::Problem>& problems)
      : plan_(plan), scope_(scope), path_(std::move(path)), problems_(problems) {}

  PlannedFigure lay_out(const FigureConfig& config) {
    figure_.config = config;
    config.visit([&](const auto& figure) {
      if (choose_arms(figure)) lay_out_as(figure);
    });
    return std::move(figure_);
  }

 private:
  template <class... Args>
  void problem(const char* key, fmt::format_string<Args...> what, Args&&... args) {
    problems_.push_back({config::join(path_, key), fmt::format(what, std::forward<Args>(args)...)});
  }

  bool choose_arms(const FigureOptions& options) {
    arms_ = arms_of_globs(options.arms, scope_);
    if (arms_.empty()) {
      problem("arms", "{}", unknown_arm(options.arms, {scope_.arms.begin(), scope_.arms.end()}));
      return false;
    }
    return options.panels.empty() || options.panels == kNamedArms ||
           known("panels", options.panels);
  }

  // Reports a key that no run has.
  bool known(const char* field, const std::string& key) {
    const auto has = [&](std::size_t arm) { return setting(plan_, arm, key) != nullptr; };
    if (std::all_of(arms_.begin(), arms_.end(), has)) return true;
    std::vector<std::string_view> factors;
    for (const auto& item : plan_.config.factors.value.items()) factors.push_back(item.key());
    problem(field, "no factor or setting of the arms is called \"{}\"{}", key,
            config::name_hint(key, factors));
    return false;
  }

  // The values of a key over the arms, numbers ascending; where each arm stands goes to `places`.
  bool lay_axis(const char* field, const std::string& key, std::vector<FigureLevel>& levels,
                bool& numeric, std::vector<std::size_t>& places) {
    if (!known(field, key)) return false;
    numeric = true;
    for (const std::size_t arm : arms_) {
      const Json& value = *setting(plan_, arm, key);
      numeric = numeric && value.is_number();
      const std::string label = level_label(value);
      if (std::none_of(levels.begin(), levels.end(),
                       [&](const FigureLevel& l) { return l.label == label; }))
        levels.push_back({label, value.is_number() ? value.get<double>() : 0});
    }
    if (numeric) {
      std::stable_sort(
          levels.begin(), levels.end(),
          [](const FigureLevel& a, const FigureLevel& b) { return a.value < b.value; });
    }
    for (const std::size_t arm : arms_) {
      const std::string label = level_label(*setting(plan_, arm, key));
      const auto found = std::find_if(levels.begin(), levels.end(),
                                      [&](const FigureLevel& l) { return l.label == label; });
      places.push_back(static_cast<std::size_t>(found - levels.begin()));
    }
    return true;
  }

  // A curve an arm.
  void lay_curves(const std::string& panels) {
    for (const std::size_t arm : arms_) {
      std::string label =
          panels.empty() ? plan_.arms[arm].name : rest_of_name(plan_, arm, {panels});
      if (label.empty()) label = plan_.arms[arm].name;
      figure_.entries.push_back({arm,
                                 place_in(figure_.panels, panel_name(plan_, arm, panels)),
                                 place_in(figure_.series, label),
                                 0,
                                 0,
                                 {}});
    }
  }

  std::optional<Expression> value_of(const std::string& value, std::size_t arm) {
    try {
      Scope scope = scope_;
      scope.arm = arm;
      Expression expression = Expression::parse(value, scope);
      if (!expression.is_truth()) return expression;
      problem("value", "expected a number; got a yes or no: {}", value);
    } catch (const Error& e) {
      problem("value",
              "{}; write a measure's name, or an expression of `arm`, for instance final(arm) / "
              "log(vocab)",
              e.what());
    }
    return std::nullopt;
  }

  // How to tell two arms apart that come to one place. `gone`: the keys that axes and panels show,
  // which their names do without.
  std::string way_apart(const std::string& panels, const std::vector<std::string>& gone,
                        std::size_t a, std::size_t b) const {
    std::string way = "choose between them with a glob in \"arms\"";
    if (!panels.empty() && rest_of_name(plan_, a, gone) != rest_of_name(plan_, b, gone)) {
      way += ", or leave \"panels\" out";
    } else if (plan_.arms[a].named != plan_.arms[b].named) {
      way += fmt::format(", or give \"panels\": \"{}\"", kNamedArms);
    }
    return way;
  }

  // Values for all entries; two at one place are a problem, which is said once.
  void fill(const std::string& value, const std::string& panels,
            const std::vector<std::string>& gone) {
    for (std::size_t i = 0; i < figure_.entries.size(); ++i) {
      FigureEntry& entry = figure_.entries[i];
      for (std::size_t k = 0; k < i; ++k) {
        const FigureEntry& other = figure_.entries[k];
        if (other.panel != entry.panel || other.series != entry.series || other.x != entry.x ||
            other.y != entry.y)
          continue;
        problem("arms", "\"{}\" and \"{}\" come to the same place; {}", plan_.arms[other.arm].name,
                plan_.arms[entry.arm].name, way_apart(panels, gone, other.arm, entry.arm));
        return;
      }
      entry.value = value_of(value, entry.arm);
      if (!entry.value) return;
    }
  }

  void lay_out_as(const CurvesConfig& figure) {
    for (const char* known : {"loss", "lr", "grad_norm", "eval", "accuracy"}) {
      if (figure.value == known) return lay_curves(figure.panels);
    }
    if (probed("value", figure.value)) lay_curves(figure.panels);
  }
  void lay_out_as(const ProfileConfig& figure) {
    if (probed("value", figure.value)) lay_curves(figure.panels);
  }
  bool probed(const char* field, const std::string& value) {
    for (const std::size_t arm : arms_) {
      const Json* every = at_path(plan_.run(arm, 0).config, "train.probe_every");
      if (every && every->is_number()) continue;
      problem(field,
              "\"{}\" is no value of the training records (loss, lr, grad_norm, eval, accuracy), "
              "and probes have none where train.probe_every is not set",
              value);
      return false;
    }
    return true;
  }

  void lay_out_as(const HeatConfig& figure) {
    std::vector<std::size_t> x, y;
    bool numeric_y = false;
    if (!lay_axis("x", figure.x, figure_.x, figure_.numeric_x, x) ||
        !lay_axis("y", figure.y, figure_.y, numeric_y, y))
      return;
    std::vector<std::string> gone = {figure.x, figure.y};
    // Arms that set the axes' keys themselves are not told apart by their names too.
    if (!is_factor(plan_, figure.x) || !is_factor(plan_, figure.y)) gone.emplace_back(kNamedArms);
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      const std::string panel = figure.panels.empty() ? rest_of_name(plan_, arms_[i], gone)
                                                      : panel_name(plan_, arms_[i], figure.panels);
      figure_.entries.push_back({arms_[i], place_in(figure_.panels, panel), 0, x[i], y[i], {}});
    }
    fill(figure.value, figure.panels, gone);
    if (!figure.fails_above.empty())
      figure_.fails_above = number("fails_above", figure.fails_above);
  }

  void lay_out_as(const LineConfig& figure) {
    std::vector<std::size_t> x;
    if (!lay_axis("x", figure.x, figure_.x, figure_.numeric_x, x)) return;
    std::vector<std::string> gone = {figure.x};
    if (!is_factor(plan_, figure.x)) gone.emplace_back(kNamedArms);
    if (!figure.panels.empty()) gone.push_back(figure.panels);
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      figure_.entries.push_back(
          {arms_[i],
           place_in(figure_.panels, panel_name(plan_, arms_[i], figure.panels)),
           place_in(figure_.series, rest_of_name(plan_, arms_[i], gone)),
           x[i],
           0,
           {}});
    }
    fill(figure.value, figure.panels, gone);
  }

  std::optional<double> number(const char* field, const std::string& text) {
    try {
      return constant_of(text, scope_);
    } catch (const Error& e) {
      problem(field, "{}", e.what());
    }
    return std::nullopt;
  }

  const Plan& plan_;
  const Scope& scope_;
  std::string path_;
  std::vector<config::Problem>& problems_;
  PlannedFigure figure_;
  std::vector<std::size_t> arms_;  // that the figure shows
};

// Factors whose values are numbers, and enough of them.
std::vector<std::string> numeric_factors(const Plan& plan) {
  std::vector<std::string> keys;
  for (const auto& [key, values] : plan.config.factors.value.items()) {
    if (values.size() >= kFewestCells &&
        std::all_of(values.begin(), values.end(), [](const Json& v) { return v.is_number(); }))
      keys.push_back(key);
  }
  return keys;
}

std::vector<FigureConfig> usual_figures(const Plan& plan) {
  CurvesConfig losses;
  if (plan.arms.size() > kCrowded) {
    // Panels of what has the fewest curves in one.
    const Json& factors = plan.config.factors.value;
    if (plan.config.arms.value.size() > 1 && !factors.empty()) losses.panels = kNamedArms;
    if (losses.panels.empty() && factors.size() > 1) losses.panels = factors.begin().key();
  }
  std::vector<FigureConfig> figures = {losses};
  const std::vector<std::string> numeric = numeric_factors(plan);
  if (numeric.size() >= 2) {
    HeatConfig heat;
    heat.y = numeric[0];
    heat.x = numeric[1];
    heat.value = column_of(plan.config.measures[0]).expression;
    figures.insert(figures.begin(), heat);
  } else if (numeric.size() == 1) {
    LineConfig line;
    line.x = numeric[0];
    line.value = column_of(plan.config.measures[0]).expression;
    figures.push_back(line);
  }
  return figures;
}

}  // namespace

std::vector<PlannedFigure> plan_figures(const Plan& plan, const Scope& scope,
                                        std::vector<config::Problem>& problems) {
  const std::vector<FigureConfig> figures =
      plan.config.figures ? *plan.config.figures : usual_figures(plan);
  std::vector<PlannedFigure> planned;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    planned.push_back(
        Planner(plan, scope, config::join("figures", i), problems).lay_out(figures[i]));
  }
  return planned;
}

}  // namespace norma::study
