// What ships in configs/models, and every placement in training.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/explain.h"
#include "apps/training/trainer.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace norma::test {
namespace {
namespace fs = std::filesystem;
using config::Json;

std::vector<std::string> model_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(source_dir() + "/configs/models")) {
    files.push_back(entry.path().string());
  }
  return files;
}

// The small model: 6 blocks, the shift task.
Json small(const std::string& placement, int seed) {
  Json json = Json::parse(R"({
    "name": "small",
    "data": {"type": "shift", "vocab": 16, "length": 8},
    "model": {"type": "transformer", "layers": 6, "width": 32, "heads": 2, "hidden": 64,
              "norm": "rms_norm", "activation": "swiglu", "position": "rope", "bias": false},
    "optimizer": {"type": "adamw", "lr": 3e-3},
    "train": {"steps": 200, "batch": 16, "log_every": 1}})");
  json["model"]["placement"] = placement;
  json["seed"] = seed;
  return json;
}

struct Losses {
  double first = 0;  // of the first step
  double last = 0;   // mean of the last 10 steps
};

Losses train(const RunConfig& config) {
  const TemporaryFolder folder;
  Trainer trainer(config, {.out = folder / "run", .quiet = true});
  REQUIRE(trainer.run().status == RunStatus::completed);
  std::vector<double> losses;
  for (const Json& record : read_metrics(folder / "run/metrics.jsonl")) {
    if (record.at("kind") == "train") losses.push_back(record.at("loss"));
  }
  REQUIRE(losses.size() > 10);
  Losses result{.first = losses.front()};
  for (auto loss = losses.end() - 10; loss != losses.end(); ++loss) result.last += *loss / 10;
  return result;
}

TEST_CASE("norma explain prints the formulas of every file in configs/models", "[models]") {
  const std::vector<std::string> files = model_files();
  CHECK(files.size() >= 9);
  for (const std::string& file : files) {
    INFO(file);
    const RunConfig config = load_run_config(file);
    CHECK(config.name + ".json" == fs::path(file).filename().string());
    const std::string text = explain(config);
    CHECK(contains(text, "ffn("));
    CHECK(contains(text, "attention("));
    CHECK_FALSE(contains(text, "dead "));
  }
}

TEST_CASE("norma explain tells windows, caps and norms of queries", "[models]") {
  const auto text = [](const std::string& name) {
    for (const std::string& file : model_files()) {
      if (fs::path(file).stem() == name) return explain(load_run_config(file));
    }
    return std::string();
  };
  CHECK(contains(text("gemma2"), "keys seen, at most: 8, all, 8, all"));
  CHECK(contains(text("gemma2"), "logits z become 50 tanh(z / 50)"));
  CHECK(contains(text("gemma2"), "logits z become 30 tanh(z / 30)"));
  CHECK(contains(text("olmo2"), "rms_norm on queries and keys"));
}

TEST_CASE("a run of admin profiles its first batch, once", "[models]") {
  const TemporaryFolder folder;
  Json json = small("admin", 0);
  json["train"] = Json::parse(R"({"steps": 4, "batch": 4, "checkpoint_every": 2})");
  const auto run = [&](const std::string& name, const TrainOptions& options) {
    TrainOptions all = options;
    all.out = folder / name;
    all.quiet = true;
    Trainer trainer(parse_run_config(json), all);
    REQUIRE(trainer.run().status == RunStatus::completed);
    return read_file(folder / (name + "/checkpoints/step-4/model.safetensors"));
  };
  const std::string whole = run("whole", {});
  run("part", {});
  fs::remove_all(folder / "part/checkpoints/step-4");
  CHECK(run("part", {.resume = true}) == whole);
  const auto omega = [&](const std::string& checkpoint) {
    const SafetensorsFile file(folder / (checkpoint + "/model.safetensors"));
    return file.read("blocks.5.ffn_omega").to_vector()[0];
  };
  CHECK(omega("whole/checkpoints/step-2") > 1.05);
  // Weights from a file bring their omega.
  json["optimizer"]["lr"] = 1e-12;
  const std::string weights = folder / "ones.safetensors";
  {
    std::vector<NamedTensor> state;
    const SafetensorsFile file(folder / "whole/checkpoints/step-4/model.safetensors");
    for (const auto& entry : file.entries()) {
      Tensor t = file.read(entry.name);
      if (entry.name.ends_with("_omega")) t.fill_(1);
      state.push_back({entry.name, t});
    }
    write_safetensors(weights, state);
  }
  const std::string given = run("given", {.init = weights});
  CHECK(omega("given/checkpoints/step-4") == Approx(1));
  // So they do after a resume or a fork at step 0.
  fs::remove_all(folder / "given/checkpoints/step-2");
  fs::remove_all(folder / "given/checkpoints/step-4");
  CHECK(run("given", {.resume = true}) == given);
  CHECK(run("fork", {.fork = ForkPoint{folder / "given", 0}}) == given);
}

TEST_CASE("every placement trains the small model on three seeds", "[models][slow]") {
  for (const auto* family : config::families(config::type_of<RunConfig>())) {
    if (family->name() != "placement") continue;
    for (const std::string_view placement : family->names()) {
      for (const int seed : {0, 1, 2}) {
        const Losses losses = train(parse_run_config(small(std::string(placement), seed)));
        fmt::print("{:<10} seed {}: {:.3f}\n", placement, seed, losses.last);
        CHECK(losses.last < 0.45);
      }
    }
  }
}

TEST_CASE("each model in configs/models trains: the loss falls by half", "[models][slow]") {
  for (const std::string& file : model_files()) {
    const std::vector<std::string> sets{"train.log_every=1"};
    const Losses losses = train(load_run_config(file, sets));
    fmt::print("{}: {:.3f} to {:.3f}\n", fs::path(file).stem().string(), losses.first, losses.last);
    CHECK(losses.last < losses.first / 2);
  }
}

}  // namespace
}  // namespace norma::test
