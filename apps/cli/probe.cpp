// norma probe CONFIG [--set KEY=VALUE]... [--batches N] [--no-curvature] [--json]
#include "apps/training/probe.h"

#include <nlohmann/json.hpp>

#include "apps/cli/verb.h"
#include "apps/training/build.h"
#include "apps/training/run_folder.h"

namespace norma::cli {
namespace {

struct Arguments {
  std::string config;
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

Status probe_model(const Arguments& arguments) {
  const RunConfig config = load_run_config(arguments.config, arguments.sets);
  const auto seed = static_cast<std::uint64_t>(config.seed);
  const auto data = build_data(config);
  const ModelPtr model = build_model(config, data->spec());
  check_outputs(config.loss, model->output().shape, data->spec());
  const Batch first = data->train_batch(0, config.train.batch);
  model->profile(first.inputs, forward_of(first));  // as a run does before its first step
  const auto half = half_type(config.train.precision);
  const FlatParametersPtr parameters = flatten(model->named_parameters(), half);
  const ModelPtr exact = build_exact_model(config, data->spec());
  const ProbeValues values = probe(*model, *data, config.loss,
                                   {.batch = config.train.batch,
                                    .batches = arguments.batches,
                                    .curvature = !arguments.no_curvature && !half,
                                    .seed = seed,
                                    .exact = exact.get()});
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
  const auto arguments = std::make_shared<Arguments>();
  options.add("CONFIG", arguments->config, "The configuration, a JSON file", {.required = true});
  options.add_sets(arguments->sets);
  options.add("--batches", arguments->batches, "Batches that gradients are averaged over",
              {.show_default = true, .low = 1, .high = 10'000});
  options.add_flag("--no-curvature", arguments->no_curvature, "Leave the sharpness out: faster");
  options.add_flag("--json", arguments->json, "All values, by name");
  return [arguments] { return probe_model(*arguments); };
}

}  // namespace norma::cli
