#include "apps/training/run_config.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace norma {

using namespace config;

namespace {

// True iff samples are ids, and not arrays of numbers.
bool has_ids(const DataConfig& data) {
  return data.visit([](const auto& d) {
    return !std::is_base_of_v<ArrayOptions, std::remove_cvref_t<decltype(d)>>;
  });
}

// True iff new samples are generated as long as one asks, so that there are no epochs.
bool is_endless(const DataConfig& data) {
  return data.visit([](const auto& d) {
    return std::is_base_of_v<TaskOptions, std::remove_cvref_t<decltype(d)>> && !d.limit;
  });
}

}  // namespace

Fields RunConfig::fields() {
  return {field("name", &RunConfig::name, "Name of the run, and of its folder.", not_empty()),
          field("seed", &RunConfig::seed,
                "What all random numbers of the run follow from: weights, order, "
                "dropout.",
                at_least(0)),
          field("data", &RunConfig::data, "Where the samples come from.", required()),
          field("model", &RunConfig::model, "What is trained.", required()),
          field("loss", &RunConfig::loss, "What is made small."),
          field("optimizer", &RunConfig::optimizer, "How gradients become a step."),
          field("schedule", &RunConfig::schedule, "How the rate changes over the run."),
          field("train", &RunConfig::train, "How long, and what is written down.", required())};
}

void RunConfig::check(Problems& problems, const std::string& path) const {
  const bool tokens = has_ids(data);
  if (name.find_first_of("/\\") != std::string::npos || name == "." || name == "..") {
    problems.add(join(path, "name"), "names a folder, so it must have no slash; got \"{}\"", name);
  }
  if (!model.get_if<SequentialConfig>() && !tokens) {
    problems.add(join(path, "model.type"), "a {} reads ids; data of type {} are numbers",
                 model.type(), data.type());
  }
  if (train.epochs && is_endless(data)) {
    problems.add(join(path, "train.epochs"),
                 "data of type {} have no end without data.limit; give train.steps", data.type());
  }
  const auto* cross_entropy = loss.get_if<CrossEntropyConfig>();
  if (tokens && cross_entropy && cross_entropy->ignore != kIgnored) {
    problems.add(join(path, "loss.ignore"),
                 "data of type {} mark what is not predicted with {}; leave it out", data.type(),
                 kIgnored);
  }
  schedule.visit([&](const auto& s) {
    if constexpr (requires { s.warmup_tokens; }) {
      if (s.warmup_tokens && !tokens) {
        problems.add(join(path, "schedule.warmup_tokens"),
                     "data of type {} have no tokens; give warmup_steps or "
                     "warmup_fraction",
                     data.type());
      }
    }
  });
}

void resolve_paths(Json& run, const std::string& folder) {
  const auto data = run.find("data");
  if (data == run.end() || !data->is_object()) return;
  for (const char* key : {"path", "images", "labels", "test_images", "test_labels"}) {
    const auto value = data->find(key);
    if (value == data->end() || !value->is_string()) continue;
    const auto file = value->get<std::string>();
    if (file.empty()) continue;
    *value =
        std::filesystem::absolute(std::filesystem::path(folder) / file).lexically_normal().string();
  }
}

RunConfig parse_run_config(const Json& json, const std::string& source) {
  return parse<RunConfig>(json, "", source);
}

RunConfig load_run_config(const std::string& path, std::span<const std::string> sets) {
  Json json = load_json(path, resolve_paths);
  apply_sets(json, sets);
  resolve_paths(json, ".");
  return parse_run_config(json, path);
}

std::string run_config_schema() {
  const Json schema = config::schema<RunConfig>("A run of norma");
  return schema.dump(2) + "\n";
}

std::string run_config_markdown() {
  return config::markdown<RunConfig>("Configuration of a run") +
         "\nThis page is written by `norma schema --markdown`.\n";
}

}  // namespace norma
