// The two mistakes of train.modes: what they do to running statistics, and that a resumed run makes
// the same one.
#include <nlohmann/json.hpp>

#include "core/safetensors.h"
#include "tests/apps/training/support.h"

namespace norma::test {
namespace {

Json config(const char* modes, std::int64_t steps) {
  Json json = Json::parse(R"({"name": "t",
      "data": {"type": "gaussians", "features": 4, "samples": 400, "validation": 0.5},
      "model": {"type": "sequential", "layers": [
          {"type": "linear", "out": 6}, "batch_norm", "relu", {"type": "linear", "out": 3}]},
      "optimizer": {"type": "sgd", "lr": 0.05},
      "train": {"batch": 20, "log_every": 1, "eval_every": 3, "checkpoint_every": 1, "keep": 99}})");
  json["train"]["modes"] = modes;
  json["train"]["steps"] = steps;
  return json;
}

std::vector<double> value(const std::string& run, std::int64_t step, const char* name) {
  const SafetensorsFile file(step_folder(run, step) + "/model.safetensors");
  return file.read(name).to_vector();
}

TEST_CASE("forget_eval moves running statistics, forget_train stops them") {
  const TemporaryFolder folder;
  const auto run = [&](const char* modes) {
    (void)train(config(modes, 5), folder / modes);
    return folder / modes;
  };
  const std::string right = run("right"), no_eval = run("forget_eval"),
                    no_train = run("forget_train");
  const char* counter = "1.num_batches_tracked";
  CHECK(value(right, 5, counter)[0] == 5);
  // Two evaluations, after step 3 and at the end, of ten batches each.
  CHECK(value(no_eval, 3, counter)[0] == 13);
  CHECK(value(no_eval, 5, counter)[0] == 25);
  CHECK(value(no_train, 5, counter)[0] == 3);
  CHECK(value(no_train, 5, "1.running_var") == value(right, 3, "1.running_var"));
  // Training goes on in the wrong mode, and says so by its loss.
  CHECK(value(no_train, 5, "0.weight") != value(right, 5, "0.weight"));
  CHECK(value(no_eval, 5, "0.weight") == value(right, 5, "0.weight"));
}

TEST_CASE("a resumed run forgets train() as the whole one did") {
  const TemporaryFolder folder;
  (void)train(config("forget_train", 6), folder / "whole");
  (void)train(config("forget_train", 6), folder / "parts");
  // As if it had been killed after step 4: the later checkpoints and the end are not there.
  for (const char* step : {"5", "6"}) {
    std::filesystem::remove_all(step_folder(folder / "parts", std::stoll(step)));
  }
  (void)train(config("forget_train", 6), folder / "parts", true);
  CHECK(records(folder / "whole") == records(folder / "parts"));
  CHECK(weights(folder / "whole", 6) == weights(folder / "parts", 6));
}

}  // namespace
}  // namespace norma::test
