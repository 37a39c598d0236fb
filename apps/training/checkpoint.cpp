#include "apps/training/checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/progress.h"
#include "core/autograd.h"
#include "core/error.h"
#include "core/file.h"
#include "core/ops/cast.h"
#include "core/safetensors.h"

namespace norma {
namespace fs = std::filesystem;
namespace {

constexpr const char* kModel = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kSeries = "series.safetensors";
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
  j["above_in_a_row"] = s.above_in_a_row;
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
  s.above_in_a_row = j.value("above_in_a_row", std::int64_t{0});
  s.scaler.scale = j.at("loss_scale");
  s.scaler.good_steps = j.at("loss_scale_good_steps");
  return s;
}

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

const std::vector<NamedTensor>& file_of(const Checkpoint& checkpoint, const std::string& name) {
  const auto at = checkpoint.files.find(name);
  require(at != checkpoint.files.end(), "the checkpoint has no {}", name);
  return at->second;
}

// The checkpoint whose state.json holds `j`. Throws Error if anything is not as it was written.
Checkpoint checkpoint_of(const std::string& folder, const Json& j) {
  Checkpoint checkpoint{state_from(j), j.at("config").dump(), {}};
  for (const auto& [name, expected] : j.at("files").items()) {
    const std::string path = folder + "/" + name;
    const std::string found = checksum_of_file(path);
    require(found == expected.get<std::string>(), "{}: its checksum is {}; {} was written", path,
            found, expected.get<std::string>());
    const SafetensorsFile file(path);
    std::vector<NamedTensor>& tensors = checkpoint.files[name];
    for (const auto& entry : file.entries()) tensors.push_back({entry.name, file.read(entry.name)});
  }
  checkpoint.state.loss_spikes.load_state(file_of(checkpoint, kSeries), "loss");
  checkpoint.state.norm_spikes.load_state(file_of(checkpoint, kSeries), "grad_norm");
  return checkpoint;
}

bool is_whole(const std::string& folder) {
  try {
    (void)read_checkpoint(folder);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string passed_over(const std::string& path, const std::exception& e) {
  return fmt::format("{} is damaged and passed over: {}", path, e.what());
}

// The best checkpoint by the newest state that can be read, else the newest; whole in any case.
Checkpoint read_best_or_newest(const RunFolder& run) {
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  std::vector<std::int64_t> order(steps.rbegin(), steps.rend());  // as they are tried
  std::vector<std::string> damaged;
  bool asked = false;  // which one is the best
  for (std::size_t i = 0; i < order.size();) {
    const std::string path = run.checkpoint_path(order[i]);
    try {
      const Json json = read_state(path);
      if (!asked) {
        const TrainState state = state_from(json);
        asked = true;
        const auto best = std::find(order.begin(), order.end(), state.best_step);
        const auto here = order.begin() + static_cast<std::ptrdiff_t>(i);
        // The best step need not have been saved; and what is newer than this one is damaged, and
        // tried already.
        if (state.best && best != order.end() && best > here) {
          std::rotate(here, best, best + 1);
          continue;
        }
      }
      Checkpoint checkpoint = checkpoint_of(path, json);
      require(checkpoint.state.step == order[i], "state.json is of step {}", checkpoint.state.step);
      for (const std::string& line : damaged) print_warning(line);
      return checkpoint;
    } catch (const std::exception& e) {
      damaged.push_back(passed_over(path, e));
      ++i;
    }
  }
  throw Error::format("{}: none of its {} checkpoints can be read:\n  {}", run.path(), steps.size(),
                      fmt::join(damaged, "\n  "));
}

// The tensors in the types of those of the same names in `like`.
std::vector<NamedTensor> in_types_of(const std::vector<NamedTensor>& like,
                                     std::vector<NamedTensor> tensors) {
  const NoGrad off;
  for (NamedTensor& t : tensors) {
    const auto at = std::find_if(like.begin(), like.end(),
                                 [&](const NamedTensor& l) { return l.name == t.name; });
    if (at != like.end()) t.tensor = to(t.tensor, at->tensor.dtype());
  }
  return tensors;
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

TensorFiles tensors_of(const Learner& learner) {
  TensorFiles files;
  files[kModel] = learner.state();
  files[kOptimizer] = learner.optimizer.state();
  if (learner.ema) files[kAveragesFile] = learner.ema->state();
  return files;
}

Checkpoint read_checkpoint(const std::string& folder) {
  return checkpoint_of(folder, read_state(folder));
}

void write_checkpoint(const std::string& folder, const TrainState& state, TensorFiles files,
                      const Json& config) {
  std::vector<NamedTensor>& series = files[kSeries];
  series = state.loss_spikes.state("loss");
  for (NamedTensor& t : state.norm_spikes.state("grad_norm")) series.push_back(std::move(t));
  const std::string beside = temporary_beside(folder);
  try {
    fs::create_directory(beside);
    Json j = to_json(state);
    for (const auto& [name, tensors] : files) {
      const std::string path = beside + "/" + name;
      write_safetensors(path, tensors, {{"format", "pt"}});
      j["files"][name] = checksum_of_file(path);
    }
    j["config"] = config;
    j["checksum"] = checksum(j.dump());
    write_file(beside + "/" + kState, j.dump(2) + "\n");
    sync_folder(beside);
    fs::rename(beside, folder);
    sync_folder(fs::path(folder).parent_path().string());
  } catch (const std::exception&) {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
    throw;
  }
}

std::vector<std::string> restore(const Checkpoint& checkpoint, const Learner& learner,
                                 Restore what) {
  std::vector<std::string> left;
  const auto load = [&](const char* file, auto& part) {
    try {
      part.load_state(in_types_of(part.state(), file_of(checkpoint, file)));
    } catch (const Error& e) {
      if (what == Restore::all) throw;
      left.push_back(e.what());
    }
  };
  const std::vector<NamedTensor> weights = learner.state();
  copy_state(weights, in_types_of(weights, file_of(checkpoint, kModel)));
  learner.optimizer.parameters().publish();
  load(kOptimizer, learner.optimizer);
  if (learner.ema) load(kAveragesFile, *learner.ema);
  return left;
}

void save_checkpoint(const RunFolder& run, const TrainState& state, const Learner& learner,
                     const Json& config) {
  const std::string path = run.checkpoint_path(state.step);
  if (fs::exists(path)) {
    if (is_whole(path)) return;  // the same step holds the same state
    // What a resume has passed over makes way, but is not thrown away.
    fs::rename(path, free_name(path + ".damaged"));
  }
  try {
    fs::create_directories(run.checkpoints_path());
    remove_temporaries_in(run.checkpoints_path());  // whatever a kill left behind
    write_checkpoint(path, state, tensors_of(learner), config);
  } catch (const std::exception& e) {
    throw Error::format("{}: the checkpoint was not written, the older ones are whole: {}", path,
                        e.what());
  }
}

std::optional<TrainState> load_newest_checkpoint(const RunFolder& run, const Learner& learner,
                                                 const Json& config,
                                                 std::vector<std::string>& warnings) {
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = run.checkpoint_path(*step);
    std::optional<Checkpoint> checkpoint;
    try {
      checkpoint = read_checkpoint(path);
      require(checkpoint->state.step == *step, "state.json is of step {}", checkpoint->state.step);
    } catch (const std::exception& e) {
      warnings.push_back(passed_over(path, e));
      continue;
    }
    const auto differences = config::difference(config::parse_json(checkpoint->config), config);
    require(differences.empty(), "{}: belongs to another configuration:\n{}", path,
            config::to_text(differences));
    restore(*checkpoint, learner);
    return checkpoint->state;
  }
  require(steps.empty(), "{}: none of its {} checkpoints can be read, so it cannot go on:\n  {}",
          run.path(), steps.size(), fmt::join(warnings, "\n  "));
  return std::nullopt;
}

Checkpoint read_checkpoint(const RunFolder& run, std::int64_t step) {
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  require(!steps.empty(), "{}: has no checkpoint yet", run.path());
  require(std::find(steps.begin(), steps.end(), step) != steps.end(),
          "{}: has no checkpoint of step {}; there are {}", run.path(), step,
          fmt::join(steps, ", "));
  return read_checkpoint(run.checkpoint_path(step));
}

std::int64_t load_weights(const RunFolder& run, std::int64_t step, Module& model) {
  const bool any = step == 0 && !run.checkpoint_steps().empty();
  const Checkpoint checkpoint = any ? read_best_or_newest(run) : read_checkpoint(run, step);
  std::vector<NamedTensor> weights = file_of(checkpoint, kModel);
  if (checkpoint.files.contains(kAveragesFile)) {
    for (const NamedTensor& average : file_of(checkpoint, kAveragesFile)) {
      for (NamedTensor& w : weights) {
        if (w.name == average.name) w.tensor = average.tensor;
      }
    }
  }
  model.load_state_dict(weights);
  return checkpoint.state.step;
}

void refuse_folder(const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return;
  const RunFolder run(path);
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  const fs::path checkpoint = steps.empty() ? path : run.checkpoint_path(steps.back());
  const std::string file = (checkpoint / kModel).string();
  throw Error::format("{}: cannot be read: it is a folder; give a safetensors file{}", path,
                      fs::exists(file, none) ? fmt::format(", for instance {}", file) : "");
}

void prune_checkpoints(const RunFolder& run, std::int64_t keep, const TrainState& state) {
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  const auto count = static_cast<std::int64_t>(steps.size());
  for (std::int64_t i = 0; i < count - keep; ++i) {
    const std::int64_t step = steps[static_cast<std::size_t>(i)];
    if (state.best && step == state.best_step) continue;
    // Renamed first, so that a kill in the middle leaves nothing that looks like a checkpoint.
    const std::string dying = temporary_beside(run.checkpoint_path(step));
    std::error_code ignored;
    fs::rename(run.checkpoint_path(step), dying, ignored);
    fs::remove_all(dying, ignored);
  }
}

}  // namespace norma
