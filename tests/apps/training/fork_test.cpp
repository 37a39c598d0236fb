// A new run from a step of an old one.
#include <filesystem>

#include "tests/apps/training/support.h"
#include "tests/support/process.h"

namespace norma::test {
namespace {
namespace fs = std::filesystem;

RunResult fork(const Json& config, const std::string& parent, std::int64_t step,
               const std::string& out) {
  Trainer trainer(parse_run_config(config),
                  {.out = out, .quiet = true, .fork = ForkPoint{parent, step}});
  return trainer.run();
}

Json parent_config() {
  Json config = shift_config(12);
  config["train"]["checkpoint_every"] = 4;
  config["train"]["eval_every"] = 3;
  return config;
}

TEST_CASE("a fork without changes ends in the bits of its parent", "[training]") {
  const TemporaryFolder folder;
  Json config = parent_config();
  config["train"]["ema"] = 0.9;
  train(config, folder / "parent");
  for (const std::int64_t step : {4, 8}) {
    const std::string out = folder / std::to_string(step);
    CHECK(fork(config, folder / "parent", step, out).status == RunStatus::completed);
    CHECK(records(out) == records(folder / "parent"));
    for (const char* file : {"model", "optimizer", "ema"}) {
      const std::string name = std::string("/checkpoints/step-12/") + file + ".safetensors";
      CHECK(bytes(out + name) == bytes(folder / "parent" + name));
    }
  }
}

TEST_CASE("a fork with changes tells where it comes from, and can be resumed and forked",
          "[training]") {
  const TemporaryFolder folder;
  train(parent_config(), folder / "parent");
  const std::string before = bytes(folder / "parent/metrics.jsonl");
  Json config = parent_config();
  config["optimizer"]["lr"] = 1e-4;
  config["model"]["dropout"] = 0.2;
  config["train"]["steps"] = 20;
  fork(config, folder / "parent", 8, folder / "fork");
  CHECK(bytes(folder / "parent/metrics.jsonl") == before);
  const Json lineage = Json::parse(bytes(folder / "fork/summary.json")).at("lineage");
  CHECK(lineage.at("parent") == folder / "parent");
  CHECK(lineage.at("step") == 8);
  CHECK(lineage.at("differences").at("optimizer.lr") == "0.001 -> 0.0001");
  CHECK(lineage.at("differences").size() == 3);
  CHECK_FALSE(lineage.contains("anew"));

  const std::string end = weights(folder / "fork", 20);
  fs::remove_all(step_folder(folder / "fork", 20));
  fs::remove_all(step_folder(folder / "fork", 16));
  train(config, folder / "fork", true);
  CHECK(weights(folder / "fork", 20) == end);

  config["seed"] = 1;
  config["train"]["steps"] = 24;
  fork(config, folder / "fork", 20, folder / "second");
  const Json second = Json::parse(bytes(folder / "second/lineage.json"));
  CHECK(second.at("lineage") == lineage);
}

TEST_CASE("another optimizer starts anew in a fork, and is told", "[training]") {
  const TemporaryFolder folder;
  train(parent_config(), folder / "parent");
  Json config = parent_config();
  config["optimizer"] = Json::parse(R"({"type": "sgd", "lr": 0.01, "momentum": 0.9})");
  config["train"]["ema"] = 0.9;
  fork(config, folder / "parent", 8, folder / "fork");
  const Json lineage = Json::parse(bytes(folder / "fork/lineage.json"));
  CHECK(lineage.at("anew").size() == 2);
}

TEST_CASE("what cannot be forked is told, and leaves nothing", "[training]") {
  const TemporaryFolder folder;
  train(parent_config(), folder / "parent");
  const Json config = parent_config();
  NORMA_CHECK_ERROR(fork(config, folder / "parent", 7, folder / "fork"),
                    "has no checkpoint of step 7; there are 4, 8, 12");
  NORMA_CHECK_ERROR(
      fork(config, folder / "parent", 12, folder / "fork"),
      "step 12 is not before the end of the new run, 12 steps; --set train.steps to more");
  Json wide = config;
  wide["model"]["hidden"] = 48;
  const std::string message =
      error_of([&] { (void)fork(wide, folder / "parent", 8, folder / "fork"); });
  CHECK(contains(message, "do not fit the new configuration; data and model must keep"));
  CHECK(contains(message, "48"));
  NORMA_CHECK_ERROR(fork(config, folder / "none", 8, folder / "fork"),
                    "is not the folder of a run");
  CHECK_FALSE(fs::exists(folder / "fork"));
}

TEST_CASE("norma fork, on the command line", "[cli]") {
  const TemporaryFolder folder;
  train(parent_config(), folder / "parent");
  const std::string in_folder = "cd " + folder.path() + " && " + norma_program() + " ";
  const ProcessResult forked =
      run_shell(in_folder + "fork parent --at 8 --set optimizer.lr=0.01 --quiet");
  INFO(forked.err);
  CHECK(forked.status == 0);
  CHECK(contains(forked.out, "runs/t-at-8: completed after 12 steps"));
  CHECK(run_shell(in_folder + "fork parent --at 5 --quiet").status == 2);
}

}  // namespace
}  // namespace norma::test
