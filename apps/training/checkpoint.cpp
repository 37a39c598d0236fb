#include "apps/training/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/safetensors.h"

namespace norma {
namespace fs = std::filesystem;
namespace {

Json to_json(const TrainState& s) {
  Json j;
  j["step"] = s.step;
  j["samples"] = s.samples;
  j["skipped"] = s.skipped;
  j["seconds"] = s.seconds;
  j["best"] = s.best ? json_number(*s.best) : Json();
  j["best_step"] = s.best_step;
  j["evaluated_step"] = s.evaluated_step;
  j["without_better"] = s.without_better;
  j["skipped_in_a_row"] = s.skipped_in_a_row;
  j["recent"] = Json::array();
  for (double loss : s.recent) j["recent"].push_back(json_number(loss));
  return j;
}

TrainState state_from(const std::string& path) {
  const Json j = config::parse_json(read_file(path), path);
  TrainState s;
  s.step = j.at("step");
  s.samples = j.at("samples");
  s.skipped = j.at("skipped");
  s.seconds = j.at("seconds");
  if (!j.at("best").is_null()) s.best = number_of(j.at("best"));
  s.best_step = j.at("best_step");
  s.evaluated_step = j.at("evaluated_step");
  s.without_better = j.at("without_better");
  s.skipped_in_a_row = j.at("skipped_in_a_row");
  for (const Json& loss : j.at("recent")) s.recent.push_back(number_of(loss));
  return s;
}

std::vector<NamedTensor> read_all(const std::string& path) {
  const SafetensorsFile file(path);
  std::vector<NamedTensor> tensors;
  for (const auto& entry : file.entries()) tensors.push_back({entry.name, file.read(entry.name)});
  return tensors;
}

// True iff state and tensors can be read (sizes and headers; not every byte).
bool is_whole(const std::string& path) {
  try {
    (void)state_from(path + "/state.json");
    (void)SafetensorsFile(path + "/model.safetensors");
    (void)SafetensorsFile(path + "/optimizer.safetensors");
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string free_name(const std::string& path) {
  std::string name = path;
  for (int i = 2; fs::exists(name); ++i) name = fmt::format("{}-{}", path, i);
  return name;
}

}  // namespace

void save_checkpoint(const RunFolder& run, const TrainState& state, const Module& model,
                     const Optimizer& optimizer) {
  const std::string final_path = run.checkpoint_path(state.step);
  if (fs::exists(final_path)) {
    if (is_whole(final_path)) return;  // the same step holds the same state
    // What a resume has passed over makes way, but is not thrown away.
    fs::rename(final_path, free_name(final_path + ".damaged"));
  }
  fs::create_directories(run.checkpoints_path());
  // Whatever a kill left behind.
  for (const auto& entry : fs::directory_iterator(run.checkpoints_path())) {
    if (is_temporary(entry.path().string())) fs::remove_all(entry.path());
  }
  const std::string beside = temporary_beside(final_path);
  try {
    fs::create_directory(beside);
    write_safetensors(beside + "/model.safetensors", model.state_dict(), {{"format", "pt"}});
    write_safetensors(beside + "/optimizer.safetensors", optimizer.state());
    write_file(beside + "/state.json", to_json(state).dump(2) + "\n");
    sync_folder(beside);
    fs::rename(beside, final_path);
    sync_folder(run.checkpoints_path());
  } catch (const std::exception& e) {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
    throw Error::format("{}: the checkpoint was not written, the older ones are whole: {}",
                        final_path, e.what());
  }
}

std::optional<TrainState> load_newest_checkpoint(const RunFolder& run, Module& model,
                                                 Optimizer& optimizer,
                                                 std::vector<std::string>& warnings) {
  std::vector<std::int64_t> steps = run.checkpoint_steps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = run.checkpoint_path(*step);
    try {
      const TrainState state = state_from(path + "/state.json");
      require(state.step == *step, "state.json is of step {}", state.step);
      const auto weights = read_all(path + "/model.safetensors");
      const auto moments = read_all(path + "/optimizer.safetensors");
      model.load_state_dict(weights);
      optimizer.load_state(moments);
      return state;
    } catch (const std::exception& e) {
      warnings.push_back(fmt::format("{} is damaged and passed over: {}", path, e.what()));
    }
  }
  require(steps.empty(), "{}: none of its {} checkpoints can be read, so it cannot go on:\n  {}",
          run.path(), steps.size(), fmt::join(warnings, "\n  "));
  return std::nullopt;
}

std::int64_t load_weights(const RunFolder& run, std::int64_t step, Module& model) {
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  require(!steps.empty(), "{}: has no checkpoint yet", run.path());
  if (step == 0) {
    step = steps.back();
    const std::int64_t best = state_from(run.checkpoint_path(step) + "/state.json").best_step;
    if (std::find(steps.begin(), steps.end(), best) != steps.end()) step = best;
  }
  require(std::find(steps.begin(), steps.end(), step) != steps.end(),
          "{}: has no checkpoint of step {}; there are {}", run.path(), step,
          fmt::join(steps, ", "));
  model.load_state_dict(read_all(run.checkpoint_path(step) + "/model.safetensors"));
  return step;
}

void prune_checkpoints(const RunFolder& run, std::int64_t keep, std::int64_t best_step) {
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  const auto count = static_cast<std::int64_t>(steps.size());
  for (std::int64_t i = 0; i < count - keep; ++i) {
    const std::int64_t step = steps[static_cast<std::size_t>(i)];
    if (step == best_step) continue;
    // Renamed first, so that a kill in the middle leaves nothing that looks like a checkpoint.
    const std::string dying = temporary_beside(run.checkpoint_path(step));
    std::error_code ignored;
    fs::rename(run.checkpoint_path(step), dying, ignored);
    fs::remove_all(dying, ignored);
  }
}

}  // namespace norma
