#include "apps/training/failure.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/guessing.h"
#include "core/autograd.h"
#include "core/error.h"
#include "core/file.h"

namespace norma {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kKinds[] = {"not_finite", "guessing"};

bool is_well(const TrainState& state) {
  if (state.skipped_in_a_row > 0) return false;
  if (state.recent.empty()) return true;
  const double mean = mean_of(state.recent);
  return std::isfinite(mean) && state.recent.back() <= 2 * std::fabs(mean);
}

// Copies without making new memory where the old fits.
void copy(const TensorFiles& from, TensorFiles& to) {
  const NoGrad off;
  for (const auto& [file, tensors] : from) {
    std::vector<NamedTensor>& copies = to[file];
    copies.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& t = tensors[i].tensor;
      copies[i].name = tensors[i].name;
      if (copies[i].tensor.defined() && copies[i].tensor.shape() == t.shape()) {
        copies[i].tensor.copy_(t);
      } else {
        copies[i].tensor = t.clone();
      }
    }
  }
}

std::string folder_of(const RunFolder& run) { return run.path() + "/failure"; }

}  // namespace

bool KeptState::is_due(std::int64_t step, const TrainState& state) const {
  return empty_ || (step % kEvery == 0 && is_well(state));
}

void KeptState::keep(const TrainState& state, const Learner& learner) {
  empty_ = false;
  state_ = state;
  copy(tensors_of(learner), files_);
}

void write_failure(const RunFolder& run, const Failure& failure, const KeptState& kept,
                   const Json& config) {
  const std::string folder = folder_of(run);
  fs::remove_all(folder);
  write_checkpoint(folder, kept.state(), kept.files(), config);
  Json j;
  j["kind"] = kKinds[static_cast<int>(failure.kind)];
  j["step"] = failure.step;
  j["kept_step"] = kept.state().step;
  j["reason"] = failure.reason;
  j["guessing"] = failure.guessing;
  write_file(folder + "/failure.json", j.dump(2) + "\n");
}

KeptFailure read_failure(const RunFolder& run) {
  const std::string folder = folder_of(run), path = folder + "/failure.json";
  require(fs::exists(path),
          "{}: keeps no failure; only a run that diverged (exit status 3) can be replayed",
          run.path());
  const Json j = config::parse_json(read_file(path), path);
  KeptFailure kept;
  kept.failure.kind = j.at("kind") == kKinds[0] ? FailureKind::not_finite : FailureKind::guessing;
  kept.failure.step = j.at("step");
  kept.failure.reason = j.at("reason");
  kept.failure.guessing = j.at("guessing");
  kept.before = read_checkpoint(folder);
  return kept;
}

}  // namespace norma
