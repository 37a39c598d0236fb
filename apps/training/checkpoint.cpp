#include "apps/training/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/safetensors.h"

namespace norma {
namespace fs = std::filesystem;
namespace {

constexpr const char* kModel = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kAverages = "ema.safetensors";
constexpr const char* kState = "state.json";

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
  j["loss_scale"] = s.scaler.scale;
  j["loss_scale_good_steps"] = s.scaler.good_steps;
  return j;
}

TrainState state_from(const Json& j) {
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
  s.scaler.scale = j.at("loss_scale");
  s.scaler.good_steps = j.at("loss_scale_good_steps");
  return s;
}

// What a checkpoint's folder holds.
struct Contents {
  TrainState state;
  Json config;
  std::map<std::string, std::vector<NamedTensor>> files;
  [[nodiscard]] const std::vector<NamedTensor>& file(const std::string& name) const {
    const auto at = files.find(name);
    require(at != files.end(), "has no {}", name);
    return at->second;
  }
};

// Reads state.json. Throws Error if it is not as it was written.
Json read_state(const std::string& folder) {
  const std::string path = folder + "/" + kState;
  Json j = config::parse_json(read_file(path), path);
  require(j.is_object() && j.contains("checksum") && j.at("checksum").is_string(),
          "{}: has no checksum", path);
  const std::string expected = j.at("checksum");
  j.erase("checksum");
  const std::string found = checksum(j.dump());
  require(found == expected, "{}: its checksum is {}; {} was written", path, found, expected);
  return j;
}

// Throws Error if anything is not as it was written.
Contents read_contents(const std::string& folder) {
  const Json j = read_state(folder);
  Contents contents{state_from(j), j.at("config"), {}};
  for (const auto& [name, expected] : j.at("files").items()) {
    const std::string path = folder + "/" + name;
    const std::string found = checksum_of_file(path);
    require(found == expected.get<std::string>(), "{}: its checksum is {}; {} was written", path,
            found, expected.get<std::string>());
    const SafetensorsFile file(path);
    std::vector<NamedTensor>& tensors = contents.files[name];
    for (const auto& entry : file.entries()) tensors.push_back({entry.name, file.read(entry.name)});
  }
  return contents;
}

bool is_whole(const std::string& folder) {
  try {
    (void)read_contents(folder);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void write_contents(const std::string& folder, const TrainState& state, const Learner& learner,
                    const Json& config) {
  const Metadata torch{{"format", "pt"}};
  write_safetensors(folder + "/" + kModel, learner.state(), torch);
  write_safetensors(folder + "/" + kOptimizer, learner.optimizer.state());
  if (learner.ema) write_safetensors(folder + "/" + kAverages, learner.ema->state(), torch);
  Json j = to_json(state);
  for (const char* name : {kModel, kOptimizer, kAverages}) {
    const std::string path = folder + "/" + name;
    if (fs::exists(path)) j["files"][name] = checksum_of_file(path);
  }
  j["config"] = config;
  j["checksum"] = checksum(j.dump());
  write_file(folder + "/" + kState, j.dump(2) + "\n");
}

std::string free_name(const std::string& path) {
  std::string name = path;
  for (int i = 2; fs::exists(name); ++i) name = fmt::format("{}-{}", path, i);
  return name;
}

void remove_temporaries_in(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_temporary(entry.path().string())) fs::remove_all(entry.path());
  }
}

}  // namespace

std::vector<NamedTensor> Learner::state() const {
  std::vector<NamedTensor> result = optimizer.parameters().masters();
  for (NamedTensor& buffer : model.named_buffers()) result.push_back(std::move(buffer));
  return result;
}

void save_checkpoint(const RunFolder& run, const TrainState& state, const Learner& learner,
                     const Json& config) {
  const std::string final_path = run.checkpoint_path(state.step);
  if (fs::exists(final_path)) {
    if (is_whole(final_path)) return;  // the same step holds the same state
    // What a resume has passed over makes way, but is not thrown away.
    fs::rename(final_path, free_name(final_path + ".damaged"));
  }
  const std::string beside = temporary_beside(final_path);
  try {
    fs::create_directories(run.checkpoints_path());
    remove_temporaries_in(run.checkpoints_path());  // whatever a kill left behind
    fs::create_directory(beside);
    write_contents(beside, state, learner, config);
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

std::optional<TrainState> load_newest_checkpoint(const RunFolder& run, const Learner& learner,
                                                 const Json& config,
                                                 std::vector<std::string>& warnings) {
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = run.checkpoint_path(*step);
    std::optional<Contents> contents;
    try {
      contents = read_contents(path);
      require(contents->state.step == *step, "state.json is of step {}", contents->state.step);
    } catch (const std::exception& e) {
      warnings.push_back(fmt::format("{} is damaged and passed over: {}", path, e.what()));
      continue;
    }
    const auto differences = config::difference(contents->config, config);
    require(differences.empty(), "{}: belongs to another configuration:\n{}", path,
            config::to_text(differences));
    copy_state(learner.state(), contents->file(kModel));
    learner.optimizer.parameters().publish();
    learner.optimizer.load_state(contents->file(kOptimizer));
    if (learner.ema) learner.ema->load_state(contents->file(kAverages));
    return contents->state;
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
    const std::int64_t best = read_state(run.checkpoint_path(step)).at("best_step");
    if (std::find(steps.begin(), steps.end(), best) != steps.end()) step = best;
  }
  require(std::find(steps.begin(), steps.end(), step) != steps.end(),
          "{}: has no checkpoint of step {}; there are {}", run.path(), step,
          fmt::join(steps, ", "));
  const Contents contents = read_contents(run.checkpoint_path(step));
  std::vector<NamedTensor> weights = contents.file(kModel);
  if (contents.files.contains(kAverages)) {
    for (const NamedTensor& average : contents.file(kAverages)) {
      for (NamedTensor& w : weights) {
        if (w.name == average.name) w.tensor = average.tensor;
      }
    }
  }
  model.load_state_dict(weights);
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
