#include "apps/training/run_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
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

// What QK-Clip finds in a model.
struct AttentionUse {
  bool any = false;
  bool normed = false;  // a norm on queries and keys
};

void look_for_attention(const std::vector<LayerConfig>& layers, AttentionUse& use) {
  for (const LayerConfig& layer : layers) {
    if (const auto* attention = layer.get_if<AttentionConfig>()) {
      use.any = true;
      use.normed = use.normed || attention->qk_norm;
    } else if (const auto* residual = layer.get_if<ResidualConfig>()) {
      look_for_attention(residual->body, use);
      look_for_attention(residual->shortcut, use);
    }
  }
}

AttentionUse attention_use(const ModelConfig& model) {
  AttentionUse use;
  if (const auto* transformer = model.get_if<TransformerConfig>()) {
    use = {true, transformer->qk_norm.has_value()};
    for (const Side side : transformer->sides()) {
      for (std::int64_t i = 0; i < transformer->blocks(side); ++i) {
        use.normed = use.normed || transformer->placement_of(side, i).get_if<HybridPlacement>();
      }
    }
  } else if (const auto* sequential = model.get_if<SequentialConfig>()) {
    look_for_attention(sequential->layers, use);
  }
  return use;
}

// True iff there is something that train.recompute can leave out.
bool has_blocks(const ModelConfig& model) {
  if (const auto* sequential = model.get_if<SequentialConfig>()) {
    return std::any_of(sequential->layers.begin(), sequential->layers.end(),
                       [](const LayerConfig& l) { return l.get_if<ResidualConfig>() != nullptr; });
  }
  return model.get_if<TransformerConfig>() != nullptr;
}

// The problems of a file by itself.
std::vector<Problem> problems_of(const Json& file) {
  try {
    (void)parse_run_config(file);
    return {};
  } catch (const ConfigError& e) {
    return e.problems();
  }
}

// Where --set gives one of train.steps and train.epochs, and the file the other one: the file's
// key, if the run is fine in this without it. Else empty. `json` is the file with --set.
std::string length_of_file(const Json& file, std::span<const std::string> sets, const Json& json) {
  const auto is_set = [&](const std::string& key) {
    return std::any_of(sets.begin(), sets.end(),
                       [&](const std::string& set) { return set.starts_with(key + "="); });
  };
  const auto train = file.find("train");
  if (train == file.end() || is_set("train")) return "";
  for (const auto& [one, other] : {std::pair{"steps", "epochs"}, std::pair{"epochs", "steps"}}) {
    const std::string key = join("train", other);
    if (!is_set(join("train", one)) || is_set(key) || !train->contains(other)) continue;
    Json without = json;
    apply_set(without, key + "=null");
    const std::vector<Problem> left = problems_of(without);  // data without an end have no epochs
    const bool helps = std::none_of(left.begin(), left.end(), [](const Problem& p) {
      return p.path == "train.steps" || p.path == "train.epochs";
    });
    if (helps) return key;
  }
  return "";
}

// Throws the problems of a file with --set, and says of each that the file does not have by itself
// that --set brought it: nobody would find it in the file. `json` is the file with --set.
[[noreturn]] void throw_set_error(const ConfigError& error, const Json& file,
                                  std::span<const std::string> sets, const Json& json,
                                  const std::string& source) {
  const std::vector<Problem> own = problems_of(file);
  const auto is_own = [&](const Problem& p) {
    return std::any_of(own.begin(), own.end(),
                       [&](const Problem& o) { return o.path == p.path && o.text == p.text; });
  };
  // At a key that was set, or inside of what was set there.
  const auto is_set = [&](const Problem& p) {
    return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
      const std::string key = set.substr(0, set.find('='));
      return p.path == key || p.path.starts_with(key + ".");
    });
  };
  std::vector<Problem> problems = error.problems();
  const std::string length = length_of_file(file, sets, json);
  for (Problem& p : problems) {
    if (p.path != "train.steps" || length.empty() || is_own(p)) continue;
    p.text += fmt::format("; --set {}=null takes out what the file gives", length);
  }
  const bool all_set = std::all_of(problems.begin(), problems.end(),
                                   [&](const Problem& p) { return is_set(p) && !is_own(p); });
  if (all_set) throw ConfigError("--set", std::move(problems));
  for (Problem& p : problems) {
    if (is_own(p)) continue;
    if (is_set(p)) {
      p.path = "--set " + p.path;
    } else {  // of keys that must agree, another one was set
      p.text += fmt::format(" (with --set {})", fmt::join(sets, " --set "));
    }
  }
  throw ConfigError(source, std::move(problems));
}

}  // namespace

Fields RunConfig::fields() {
  return {
      field("name", &RunConfig::name, "Name of the run, and of its folder.", not_empty()),
      field("seed", &RunConfig::seed,
            "What all random numbers of the run follow from: weights, order, "
            "dropout.",
            at_least(0)),
      field("data", &RunConfig::data, "Where the samples come from.", required()),
      field("model", &RunConfig::model, "What is trained.", required()),
      field("loss", &RunConfig::loss, "What is made small.", also_called("criterion objective")),
      field("optimizer", &RunConfig::optimizer, "How gradients become a step."),
      field("schedule", &RunConfig::schedule, "How the rate changes over the run.",
            also_called("scheduler lr_scheduler")),
      field("train", &RunConfig::train, "How long, and what is written down.", required())};
}

void RunConfig::check(Problems& problems, const std::string& path) const {
  const bool tokens = has_ids(data);
  if (name.find_first_of("/\\") != std::string::npos || name == "." || name == "..") {
    problems.add(join(path, "name"), "names a folder, so it must have no slash; got \"{}\"", name);
  }
  constexpr std::size_t kLongestName = 200;  // with "-2" behind it, it must be a file's
  if (name.size() > kLongestName ||
      std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::iscntrl(c) != 0; })) {
    problems.add(join(path, "name"),
                 "names a folder: at most {} bytes, without line ends and the like; got {} bytes",
                 kLongestName, name.size());
  }
  if (!model.get_if<SequentialConfig>() && !tokens) {
    problems.add(join(path, "model.type"), "a {} model reads ids; data of type {} are numbers",
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
  if (train.best == BestBy::accuracy && !cross_entropy) {
    problems.add(join(path, "train.best"),
                 "only cross_entropy has an accuracy; with {} leave it out, for the loss",
                 loss.type());
  }
  if (train.recompute && !has_blocks(model)) {
    problems.add(join(path, "train.recompute"),
                 "the model has no blocks and no residual layers; leave it out");
  }
  if (train.log_logits && !attention_use(model).any) {
    problems.add(join(path, "train.log_logits"), "the model has no attention; leave it out");
  }
  if (optimizer.options().qk_clip) {
    const AttentionUse use = attention_use(model);
    if (!use.any) {
      problems.add(join(path, "optimizer.qk_clip"), "the model has no attention; leave it out");
    } else if (use.normed) {
      problems.add(join(path, "optimizer.qk_clip"),
                   "has no effect on queries and keys that are normed after their product "
                   "(qk_norm); use one of the two");
    }
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

RunConfig parse_run_config(const Json& file, std::span<const std::string> sets,
                           const std::string& source) {
  Json json = file;
  apply_sets(json, sets);
  resolve_paths(json, ".");
  try {
    return parse_run_config(json, source);
  } catch (const ConfigError& e) {
    if (sets.empty()) throw;
    throw_set_error(e, file, sets, json, source);
  }
}

bool is_schema(const Json& file) { return file.contains("$defs") && file.contains("properties"); }

std::string configuration_file(const std::string& path) {
  const std::filesystem::path folder = path;
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) return path;
  for (const char* name : {"config.json", "study.json"}) {
    if (std::filesystem::exists(folder / name, none)) return (folder / name).string();
  }
  throw ConfigError(path, {{"",
                            "is a folder, and neither that of a run (config.json) nor of a study "
                            "(study.json); give a JSON file"}});
}

std::string study_key(const Json& file) {
  if (file.contains("model")) return "";
  for (const char* key : {"base", "arms", "claims"}) {
    if (file.contains(key)) return key;
  }
  return "";
}

RunConfig load_run_config(const std::string& given, std::span<const std::string> sets) {
  const std::string path = configuration_file(given);
  const Json json = load_json(path, resolve_paths);
  if (is_schema(json)) {
    throw config::ConfigError(path,
                              {{"",
                                "is the JSON Schema that editors check configurations with, and no "
                                "configuration"}});
  }
  if (const std::string key = study_key(json); !key.empty()) {
    throw config::ConfigError(
        path,
        {{key, fmt::format("belongs to a study, and this verb takes the configuration of a run; "
                           "`norma study {}` runs a study, and writes the configurations of its "
                           "runs to studies/NAME/runs",
                           path)}});
  }
  return parse_run_config(json, sets, path);
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
