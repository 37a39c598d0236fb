#include "apps/study/study_config.h"

#include <algorithm>
#include <filesystem>

#include "apps/study/column.h"
#include "apps/training/run_config.h"

namespace norma {

using namespace config;

namespace {

// T is AnyObject or ObjectOrPath.
template <class T>
class JsonType final : public Type {
 public:
  explicit JsonType(bool path) : path_(path) {}
  void read(const Json& value, void* target, const std::string& path, const Limits&,
            Problems& problems) const override {
    if (!takes(value)) {
      problems.add(path, "expected {}; got {}", expected(), shown(value));
      return;
    }
    static_cast<T*>(target)->value = value;
  }
  Json write(const void* source) const override { return static_cast<const T*>(source)->value; }
  Json schema(SchemaParts&, const Limits&) const override {
    Json kinds = "object";
    if (path_) kinds = Json::array({"object", "string"});
    return Json{{"type", kinds}};
  }
  std::string expected() const override {
    return path_ ? "an object, or the path of a file" : "an object";
  }
  bool takes(const Json& value) const override {
    return value.is_object() || (path_ && value.is_string());
  }

 private:
  bool path_;
};

}  // namespace

template <>
const Type& config::type_of<study::AnyObject>() {
  static const JsonType<study::AnyObject> type(false);
  return type;
}

template <>
const Type& config::type_of<study::ObjectOrPath>() {
  static const JsonType<study::ObjectOrPath> type(true);
  return type;
}

namespace study {

Fields ClaimConfig::fields() {
  return {
      field("name", &ClaimConfig::name, "Short name of the claim."),
      field("text", &ClaimConfig::text, "The claim as a sentence.", not_empty(), required()),
      field("expr", &ClaimConfig::expr, "The claim as an expression over the results.", not_empty(),
            required()),
      field("source", &ClaimConfig::source, "Who states it."),
      field("published", &ClaimConfig::published, "The published numbers, as text."),
      field("expect", &ClaimConfig::expect,
            "The verdict that is right here: a claim may fail at toy scale."),
      field("why", &ClaimConfig::why, "Why it is expected to fail."),
  };
}

void ClaimConfig::check(Problems& problems, const std::string& path) const {
  if (expect == Verdict::fails && why.empty()) {
    problems.add(join(path, "why"), "a claim that is expected to fail needs a sentence why");
  }
}

Fields FloorConfig::fields() {
  return {field("label", &FloorConfig::label, "What it says at the line.", not_empty(), required()),
          field("expr", &FloorConfig::expr, "Its value, an expression.", not_empty(), required())};
}

Fields StopFailedConfig::fields() {
  return {field("above", &StopFailedConfig::above, "The level of the loss, an expression.",
                not_empty(), required()),
          field("after", &StopFailedConfig::after, "Step from which a run may be stopped.",
                at_least(0)),
          field("for", &StopFailedConfig::steps,
                "Steps in a row whose losses must all have been above the level.", at_least(1))};
}

Fields StudyConfig::fields() {
  return {
      field("name", &StudyConfig::name, "Name of the study; its folder has it.", not_empty(),
            required()),
      field("title", &StudyConfig::title, "Headline of the report."),
      field("doc", &StudyConfig::doc, "What is done, and why."),
      field("source", &StudyConfig::source, "Who states what is examined."),
      field("base", &StudyConfig::base, "The configuration that the arms change, or its file.",
            required()),
      field("arms", &StudyConfig::arms, "By name, the dotted keys that an arm sets."),
      field("factors", &StudyConfig::factors,
            "By dotted key, a list of values; every combination is run."),
      field("seeds", &StudyConfig::seeds, "Each arm is run with each seed.", at_least(0),
            not_empty()),
      field("jobs", &StudyConfig::jobs, "Runs at a time, of a thread each; null: one a core.",
            at_least(1)),
      field("measures", &StudyConfig::measures,
            "What the tables show: measures, with what they are given behind the arm.",
            not_empty()),
      field("reference", &StudyConfig::reference,
            "The arm that others are compared with, seed by seed; the first one where absent."),
      field("stop_failed", &StudyConfig::stop_failed,
            "Stop runs whose losses stay above a level; null: none."),
      field("claims", &StudyConfig::claims, "What is checked."),
      field("published", &StudyConfig::published,
            "Tables of published values: by name an object, by arm or glob a number, \"nan\" or "
            "\"inf\"."),
      field("floors", &StudyConfig::floors, "Levels that are drawn beside the losses."),
      field("figures", &StudyConfig::figures, "The pictures; null: those that fit the factors."),
      field("long", &StudyConfig::is_long,
            "Whether it takes more than some minutes; left out by --all."),
  };
}

void StudyConfig::check(Problems& problems, const std::string& path) const {
  for (std::size_t i = 0; i < measures.size(); ++i) {
    try {
      (void)column_of(measures[i]);
    } catch (const Error& e) {
      problems.add(join(join(path, "measures"), i), "{}", e.what());
    }
  }
  for (const auto& [arm, settings] : arms.value.items()) {
    if (!settings.is_object()) {
      problems.add(join(join(path, "arms"), arm), "expected an object of dotted keys; got {}",
                   shown(settings));
    }
    if (arm.empty() || arm.find_first_of("\"'\n") != std::string::npos) {
      problems.add(join(path, "arms"), "an arm's name must have letters, and no quotes; got \"{}\"",
                   arm);
    }
  }
  for (const auto& [key, values] : factors.value.items()) {
    if (!values.is_array() || values.empty()) {
      problems.add(join(join(path, "factors"), key), "expected a list of values; got {}",
                   shown(values));
    }
  }
  for (const auto& [key, table] : published.value.items()) {
    const std::string at = join(join(path, "published"), key);
    if (!table.is_object()) problems.add(at, "expected an object; got {}", shown(table));
    for (const auto& [arm, value] : table.items()) {
      if (table.is_object() && !value.is_number() && value != "nan" && value != "inf") {
        problems.add(join(at, arm), "expected a number, \"nan\" or \"inf\"; got {}", shown(value));
      }
    }
  }
  std::vector<std::int64_t> sorted = seeds;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    problems.add(join(path, "seeds"), "a seed stands twice");
  }
}

namespace {

// The paths in what an arm or a factor sets, as resolve_paths() has them.
void resolve_setting(const std::string& key, Json& value, const std::string& folder) {
  constexpr std::string_view kData = "data";
  Json run;
  if (key == kData) {
    run[kData] = value;
    resolve_paths(run, folder);
    value = run[kData];
  } else if (key.starts_with("data.")) {
    const std::string rest = key.substr(kData.size() + 1);
    run[kData][rest] = value;
    resolve_paths(run, folder);
    value = run[kData][rest];
  }
}

// The assignments with the whole paths of their keys: those that are no key of a study are the
// base's.
std::vector<std::string> of_study(std::span<const std::string> sets) {
  const config::Fields keys = StudyConfig::fields();
  std::vector<std::string> whole;
  for (const std::string& set : sets) {
    const std::string_view first = std::string_view(set).substr(0, set.find_first_of(".="));
    const bool own = std::any_of(keys.begin(), keys.end(),
                                 [&](const config::Field& f) { return f.key == first; });
    whole.push_back(own ? set : "base." + set);
  }
  return whole;
}

}  // namespace

StudyConfig load_study(const std::string& given, std::span<const std::string> sets) {
  const std::string path = configuration_file(given);
  Json json = load_json(path);
  if (json.contains("model") && !json.contains("base")) {
    throw config::ConfigError(
        path, {{"base", fmt::format("missing; this is the configuration of one run: `norma train "
                                    "{0}`, or name it as the \"base\" of a study",
                                    path)}});
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (const auto base = json.find("base"); base != json.end()) {
    if (base->is_string()) {
      *base = load_json((folder / base->get<std::string>()).string(), resolve_paths);
    }
    if (base->is_object()) resolve_paths(*base, folder.string());
  }
  apply_sets(json, of_study(sets));
  StudyConfig study = parse<StudyConfig>(json, {}, path);
  resolve_paths(study.base.value, ".");
  for (auto& [name, settings] : study.arms.value.items()) {
    for (auto& [key, value] : settings.items()) resolve_setting(key, value, folder.string());
  }
  for (auto& [key, values] : study.factors.value.items()) {
    for (Json& value : values) resolve_setting(key, value, folder.string());
  }
  return study;
}

}  // namespace study
}  // namespace norma
