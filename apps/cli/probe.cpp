// norma probe CONFIG_OR_STUDY [--arm NAME] [--set KEY=VALUE]... [--batches N] [--no-curvature]
// [--json]
#include "apps/training/probe.h"

#include <nlohmann/json.hpp>

#include "apps/cli/verb.h"
#include "apps/study/plan.h"
#include "apps/training/build.h"
#include "apps/training/run_folder.h"
#include "core/config/problems.h"

namespace norma::cli {
namespace {

struct ProbeArguments {
  std::string config, arm;
  std::vector<std::string> sets;
  std::int64_t batches = 4;
  bool no_curvature = false, json = false;
};

// What stands at each place of a sequential model.
ProbeLabels labels_of(const ModelConfig& model) {
  ProbeLabels labels;
  if (const auto* sequential = model.get_if<SequentialConfig>()) {
    for (std::size_t i = 0; i < sequential->layers.size(); ++i) {
      labels[fmt::format("layers.{}", i)] = sequential->layers[i].type();
    }
  }
  return labels;
}

// The configuration of an arm, with the study's first seed.
RunConfig config_of_arm(const ProbeArguments& arguments) {
  const study::Plan plan = study::make_plan(study::load_study(arguments.config));
  std::vector<std::string_view> names;
  for (const study::Arm& arm : plan.arms) names.push_back(arm.name);
  const auto found =
      arguments.arm.empty() ? names.begin() : std::find(names.begin(), names.end(), arguments.arm);
  if (found == names.end()) {
    throw UsageError("--arm: " + study::unknown_arm(arguments.arm, names));
  }
  fmt::print(stderr, "the arm \"{}\" of {}{}\n", *found, names.size(),
             arguments.arm.empty() && names.size() > 1 ? "; --arm NAME takes another" : "");
  const config::Json& json = plan.run(static_cast<std::size_t>(found - names.begin()), 0).config;
  return parse_run_config(json, arguments.sets, arguments.config);
}

RunConfig config_of(const ProbeArguments& arguments) {
  if (!study_key(config::load_json(configuration_file(arguments.config))).empty())
    return config_of_arm(arguments);
  if (!arguments.arm.empty()) {
    throw UsageError("--arm: " + arguments.config + " is the configuration of one run, no study");
  }
  return load_run_config(arguments.config, arguments.sets);
}

ProbeValues values_of(const RunConfig& config, const ProbeArguments& arguments) {
  const auto seed = static_cast<std::uint64_t>(config.seed);
  const auto data = build_data(config);
  const ModelPtr model = build_model(config, data->spec());
  check_outputs(config.loss, model->output().shape, data->spec());
  const Batch first = data->train_batch(0, config.train.batch);
  model->profile(first.inputs, forward_of(first));  // as a run does before its first step
  const auto half = half_type(config.train.precision);
  const FlatParametersPtr parameters = flatten(model->named_parameters(), half);
  const ModelPtr exact = build_exact_model(config, data->spec());
  return probe(*model, *data, config.loss,
               {.batch = config.train.batch,
                .batches = arguments.batches,
                .curvature = !arguments.no_curvature && !half,
                .seed = seed,
                .exact = exact.get()});
}

Status probe_model(const ProbeArguments& arguments) {
  const RunConfig config = config_of(arguments);
  const ProbeValues values = of_configuration([&] { return values_of(config, arguments); });
  if (!arguments.json) {
    fmt::print("{}", probe_text(values, labels_of(config.model)));
    return kDone;
  }
  Json json;
  for (const auto& [name, value] : values) json[name] = json_number(value);
  fmt::print("{}\n", json.dump(1));
  return kDone;
}

}  // namespace

Action probe_verb(Options& options) {
  const auto arguments = std::make_shared<ProbeArguments>();
  options.add("CONFIG", arguments->config,
              "The configuration, or a study: a JSON file, or the folder of a run or study",
              {.required = true});
  options.add("--arm", arguments->arm, "The arm of a study (default: its first)",
              {.value = "NAME"});
  options.add_sets(arguments->sets);
  options.add("--batches", arguments->batches, "Batches that gradients are averaged over",
              {.show_default = true, .low = 1, .high = 10'000});
  options.add_flag("--no-curvature", arguments->no_curvature, "Leave the sharpness out: faster");
  options.add_flag("--json", arguments->json, "All values, by name");
  return [arguments] { return probe_model(*arguments); };
}

}  // namespace norma::cli
