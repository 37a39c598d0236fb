#include "apps/study/plan.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "apps/training/run_config.h"
#include "core/config/problems.h"

namespace norma::study {
namespace {

constexpr std::size_t kLongestSlug = 48;
constexpr std::size_t kMostRuns = 100'000;  // a factor too many; catches slips

std::vector<Arm> make_arms(const StudyConfig& study) {
  std::vector<Arm> arms;
  for (const auto& [name, settings] : study.arms.value.items())
    arms.push_back({name, name, settings});
  if (arms.empty()) arms.push_back({"", "", Json::object()});
  for (const auto& [key, values] : study.factors.value.items()) {
    std::vector<Arm> crossed;
    for (const Arm& arm : arms) {
      for (const Json& value : values) {
        Arm next = arm;
        const std::string level = level_name(key, value);
        next.name += (arm.name.empty() ? "" : ", ") + level;
        next.levels += (arm.levels.empty() ? "" : ", ") + level;
        next.settings[key] = value;
        crossed.push_back(std::move(next));
      }
    }
    arms = std::move(crossed);
    if (arms.size() > kMostRuns) break;
  }
  if (arms.size() == 1 && arms[0].name.empty()) arms[0].name = "base";
  return arms;
}

// Finds what each arm is compared with: the arm of the reference's name, or, where that is one of
// the file's `arms`, its run with the same factors.
void set_references(Plan& plan, std::vector<config::Problem>& problems) {
  const StudyConfig& study = plan.config;
  const auto index_of = [&](const std::string& name) {
    const auto found = std::find_if(plan.arms.begin(), plan.arms.end(),
                                    [&](const Arm& arm) { return arm.name == name; });
    return static_cast<std::size_t>(found - plan.arms.begin());
  };
  plan.reference = study.reference;
  if (plan.reference.empty()) {
    plan.reference = study.arms.value.empty() ? plan.arms[0].name : study.arms.value.begin().key();
  }
  for (Arm& arm : plan.arms) {
    arm.reference = index_of(plan.reference);
    if (arm.reference == plan.arms.size())
      arm.reference = index_of(fmt::format("{}, {}", plan.reference, arm.levels));
    if (arm.reference < plan.arms.size()) continue;
    std::vector<std::string_view> known;
    for (const Arm& a : plan.arms) known.push_back(a.name);
    problems.push_back({"reference", unknown_arm(plan.reference, known)});
    return;
  }
}

void collect_numbers(const Json& json, const std::string& path,
                     std::map<std::string, double, std::less<>>& numbers) {
  if (json.is_number()) numbers[path] = json.get<double>();
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items())
    collect_numbers(value, config::join(path, key), numbers);
}

// True iff setting `key` may change what stands at `path`.
bool touches(std::string_view key, std::string_view path) {
  const auto inside = [](std::string_view a, std::string_view b) {
    return a == b || (b.starts_with(a) && b[a.size()] == '.');
  };
  return inside(key, path) || inside(path, key);
}

// One table of published values by arm. An arm's own name goes before a glob, and the first glob
// before others.
PublishedTable published_table(const Json& entries, const std::vector<std::string>& arms,
                               const std::string& path, std::vector<config::Problem>& problems) {
  PublishedTable table(arms.size());
  for (const bool globs : {false, true}) {
    for (const auto& [pattern, value] : entries.items()) {
      const std::vector<std::size_t> found = arms_of(pattern, arms);
      const bool by_name = found.size() == 1 && arms[found[0]] == pattern;
      if (by_name == globs) continue;
      for (const std::size_t arm : found) {
        if (table[arm]) continue;
        table[arm] = value.is_number() ? value.get<double>() : INFINITY;
      }
      if (found.empty()) {
        problems.push_back({path, unknown_arm(pattern, {arms.begin(), arms.end()})});
      }
    }
  }
  return table;
}

Scope scope_of(const Plan& plan) {
  Scope scope;
  scope.published = plan.published;
  for (const Arm& arm : plan.arms) scope.arms.push_back(arm.name);
  scope.seeds = plan.seeds.size();
  if (!plan.runs.empty()) collect_numbers(plan.runs[0].config, {}, scope.numbers);
  scope.numbers.erase("seed");
  // What differs between the arms is no number of the study.
  for (const Arm& arm : plan.arms) {
    for (const auto& [key, value] : arm.settings.items()) {
      std::erase_if(scope.numbers, [&, k = key](const auto& n) { return touches(k, n.first); });
    }
  }
  return scope;
}

// The base, with the sections that it leaves to their defaults but that an arm changes a part of:
// "optimizer.lr" says nothing of the optimizer's type.
Json base_of(const StudyConfig& study, const std::vector<Arm>& arms) {
  Json base = study.base.value;
  Json standard = config::to_json(RunConfig{});
  for (const char* given : {"data", "model"}) standard.erase(given);  // without a default
  for (const Arm& arm : arms) {
    for (const auto& [key, value] : arm.settings.items()) {
      const std::size_t dot = key.find('.');
      const std::string section = key.substr(0, dot);
      if (dot != std::string::npos && !base.contains(section) && standard.contains(section)) {
        base[section] = standard[section];
      }
    }
  }
  return base;
}

// Sets train.stop_above, unless the run has its own.
void stop_failed(RunConfig& config, const StopFailedConfig& stop,
                 std::vector<config::Problem>& problems) {
  if (config.train.stop_above) return;
  Scope scope;
  collect_numbers(config::to_json(config), {}, scope.numbers);
  try {
    config.train.stop_above = {constant_of(stop.above, scope), stop.after, stop.steps};
  } catch (const Error& e) {
    problems.push_back({"stop_failed.above", e.what()});
  }
}

// The whole configuration of a run. Problems go to `problems`, below `path`.
PlannedRun plan_run(const StudyConfig& study, const Json& base, const Arm& arm, std::int64_t seed,
                    const std::string& path, std::vector<config::Problem>& problems) {
  PlannedRun run;
  try {
    Json json = base;
    for (const auto& [key, value] : arm.settings.items()) config::set_path(json, key, value);
    json["seed"] = seed;
    json["name"] = slug(arm.name);  // it names a folder
    auto config = config::parse<RunConfig>(json);
    if (study.stop_failed) stop_failed(config, *study.stop_failed, problems);
    run.config = config::to_json(config);
    run.hash = config::hash(run.config);
    run.steps = config.train.steps.value_or(0);
    run.id = fmt::format("{}-seed-{}-{}", slug(arm.name), seed, run.hash.substr(0, 8));
  } catch (const config::ConfigError& e) {
    for (const config::Problem& p : e.problems()) {
      problems.push_back({path, fmt::format("{}{}{}", p.path, p.path.empty() ? "" : ": ", p.text)});
    }
  }
  return run;
}

// What is wrong with every arm is one slip, of the base or of a factor's key: said once.
std::vector<config::Problem> merged(const std::vector<config::Problem>& problems,
                                    std::size_t arms) {
  std::map<std::string, std::size_t> count;
  for (const config::Problem& p : problems) ++count[p.text];
  std::vector<config::Problem> out;
  std::set<std::string> said;
  for (const config::Problem& p : problems) {
    if (arms < 2 || count[p.text] < arms) {
      out.push_back(p);
    } else if (said.insert(p.text).second) {
      out.push_back({p.path.starts_with("arm ") ? "every arm" : p.path, p.text});
    }
  }
  return out;
}

}  // namespace

// "optimizer.lr" = 0.01 gives "lr=0.01"; a text stands without its quotes, and a whole path without
// its folders.
std::string level_name(const std::string& key, const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.starts_with('/')) text.erase(0, text.rfind('/') + 1);
  return key.substr(key.rfind('.') + 1) + "=" + text;
}

const Json* at_path(const Json& json, const std::string& path) {
  const Json* value = &json;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!value->is_object() || !value->contains(part)) return nullptr;
    value = &(*value)[part];
    begin = end + 1;
  }
  return value;
}

std::string slug(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) || c == '.') {
      text += static_cast<char>(std::tolower(letter));
    } else if (!text.empty() && text.back() != '-') {
      text += '-';
    }
  }
  if (text.size() > kLongestSlug) text.resize(kLongestSlug);
  while (!text.empty() && text.back() == '-') text.pop_back();
  return text.empty() ? "arm" : text;
}

Plan make_plan(const StudyConfig& study) {
  Plan plan;
  plan.config = study;
  plan.seeds = study.seeds;
  plan.arms = make_arms(study);
  const Json base = base_of(study, plan.arms);
  std::vector<config::Problem> problems, of_arms;
  set_references(plan, problems);
  std::set<std::string> names, ids;
  for (const Arm& arm : plan.arms) {
    if (!names.insert(arm.name).second)
      problems.push_back(
          {"arms", fmt::format("two arms are called \"{}\", or nearly so", arm.name)});
  }
  if (plan.arms.size() * plan.seeds.size() > kMostRuns) {
    throw config::ConfigError("", {{"factors", fmt::format("more than {} runs", kMostRuns)}});
  }
  for (std::size_t seed = 0; seed < plan.seeds.size(); ++seed) {
    for (std::size_t arm = 0; arm < plan.arms.size(); ++arm) {
      // What is wrong with an arm is wrong at every seed: said once.
      std::vector<config::Problem> found;
      plan.runs.push_back(plan_run(study, base, plan.arms[arm], plan.seeds[seed],
                                   fmt::format("arm \"{}\"", plan.arms[arm].name), found));
      plan.runs.back().arm = arm;
      plan.runs.back().seed = seed;
      if (seed == 0) of_arms.insert(of_arms.end(), found.begin(), found.end());
      if (found.empty() && !ids.insert(plan.runs.back().id).second) {
        problems.push_back(
            {"arms", fmt::format("\"{}\" is another arm once more, under nearly the same name",
                                 plan.arms[arm].name)});
      }
    }
  }
  for (config::Problem& p : merged(of_arms, plan.arms.size())) problems.push_back(std::move(p));
  if (!problems.empty()) throw config::ConfigError(study.name, problems);

  std::vector<std::string> arms;
  for (const Arm& arm : plan.arms) arms.push_back(arm.name);
  for (const auto& [name, entries] : study.published.value.items()) {
    plan.published[name] =
        published_table(entries, arms, config::join("published", name), problems);
  }
  const Scope scope = scope_of(plan);
  for (std::size_t i = 0; i < study.claims.size(); ++i) {
    const ClaimConfig& claim = study.claims[i];
    const std::string path = config::join(config::join("claims", i), "expr");
    try {
      CompiledClaim compiled{claim, Expression::parse(claim.expr, scope)};
      if (!compiled.expression.is_truth()) {
        problems.push_back(
            {path,
             fmt::format("a claim must be a yes or no, as a comparison gives it; got a number: {}",
                         claim.expr)});
      }
      plan.claims.push_back(std::move(compiled));
    } catch (const Error& e) {
      problems.push_back({path, e.what()});
    }
  }
  for (std::size_t i = 0; i < study.floors.size(); ++i) {
    const std::string path = config::join(config::join("floors", i), "expr");
    try {
      plan.floors.push_back({study.floors[i].label, constant_of(study.floors[i].expr, scope)});
    } catch (const Error& e) {
      problems.push_back({path, e.what()});
    }
  }
  plan.figures = plan_figures(plan, scope, problems);
  if (!problems.empty()) throw config::ConfigError(study.name, problems);
  return plan;
}

}  // namespace norma::study
