// Runs that diverge: what they say, what they keep, and what a replay makes of it.
#include <cmath>
#include <filesystem>

#include "apps/training/replay.h"
#include "tests/apps/training/support.h"
#include "tests/support/process.h"

namespace norma::test {
namespace {
namespace fs = std::filesystem;

// Diverges after some steps.
Json wild_config() {
  Json config = shift_config(60);
  config["model"] = Json::parse(R"({"type": "sequential", "layers": [
    {"type": "embedding", "out": 16}, "batch_norm", {"type": "linear", "out": 32}, "relu",
    {"type": "linear", "out": 16}]})");
  config["optimizer"] = Json::parse(R"({"type": "sgd", "lr": 1e4, "momentum": 0.9})");
  config["train"].erase("clip_norm");
  config["train"]["max_skipped"] = 2;
  return config;
}

// Copies a run as it was when it had saved `last`, but for its records.
void copy_until(const std::string& run, const std::string& to, std::int64_t last) {
  fs::copy(run, to, fs::copy_options::recursive);
  for (const std::int64_t step : RunFolder(to).checkpoint_steps())
    if (step > last) fs::remove_all(step_folder(to, step));
}

TEST_CASE("the shipped examples: a replay tells dynamics from rounding", "[training]") {
  const TemporaryFolder folder;
  const auto verdict = [&](const std::string& name) {
    const std::string run = folder / name;
    const ProcessResult trained =
        run_norma("train " + source_dir() + "/configs/" + name + ".json --out " + run + " --quiet");
    CHECK(trained.status == 3);
    CHECK(contains(trained.err, "norma replay " + run));
    const ProcessResult replayed = run_norma("replay " + run);
    INFO(trained.err << replayed.out << replayed.err);
    CHECK(replayed.status == 0);
    CHECK(contains(replayed.out, "gradient, f64"));
    return replayed.out;
  };
  CHECK(contains(verdict("replay_dynamics"), "it fails as well"));
  const std::string rounding = verdict("replay_rounding");
  CHECK(contains(rounding, "it does not fail"));
  CHECK(contains(rounding, "It is rounding"));
}

TEST_CASE("a replay repeats the run's own steps to the bit", "[training]") {
  const TemporaryFolder folder;
  const RunResult result = train(wild_config(), folder / "run");
  REQUIRE(result.status == RunStatus::diverged);
  const auto written = read_metrics(folder / "run/metrics.jsonl");
  int compared = 0;
  const ReplayResult replayed = replay(RunFolder(folder / "run"), [&](const ReplayedStep& s) {
    for (const Json& record : written) {
      if (record.at("kind") != "train" || record.at("step") != s.step) continue;
      ++compared;
      CHECK(record.at("loss") == json_number(s.loss));
      CHECK(record.at("grad_norm") == json_number(s.grad_norm));
    }
  });
  CHECK(compared > 0);
  CHECK(replayed.fails_again);
  CHECK(replayed.failure.step == result.steps);
}

TEST_CASE("a run that diverged names the first op, and keeps its state", "[training]") {
  const TemporaryFolder folder;
  const RunResult result = train(wild_config(), folder / "run");
  INFO(result.reason);
  CHECK(contains(result.reason, "; first in "));
  CHECK(contains(result.reason, "the op "));
  const Json summary = Json::parse(bytes(folder / "run/summary.json"));
  CHECK(summary.at("reason") == result.reason);
  CHECK(summary.at("skipped") == 3);
  CHECK(summary.at("spike_score").contains("grad_norm"));
  CHECK(fs::exists(folder / "run/failure/model.safetensors"));
  NORMA_CHECK_ERROR(replay(RunFolder(folder / "none"), {}), "only a run that diverged");
}

TEST_CASE("a step that is left out changes nothing, running statistics included", "[training]") {
  const TemporaryFolder folder;
  Json config = wild_config();
  config["train"]["steps"] = 4;
  config["train"]["precision"] = "f16";
  config["train"]["loss_scale"] = 1e30;  // forward is well, and every gradient overflows
  config["train"]["on_divergence"] = "continue";
  config["train"]["checkpoint_every"] = 1;
  config["train"]["keep"] = 10;
  CHECK(train(config, folder / "run").status == RunStatus::diverged);
  CHECK(weights(folder / "run", 4) == weights(folder / "run", 1));
  const Checkpoint end = read_checkpoint(RunFolder(folder / "run"), 4);
  int statistics = 0;
  for (const auto& [name, tensor] : end.files.at("model.safetensors")) {
    if (!contains(name, "running_")) continue;
    ++statistics;
    for (double x : tensor.to_vector()) CHECK(x == (contains(name, "running_var") ? 1 : 0));
  }
  CHECK(statistics == 2);
}

TEST_CASE("with on_divergence: continue, a resumed run ends in the same bits", "[training]") {
  const TemporaryFolder folder;
  Json config = wild_config();
  config["train"]["on_divergence"] = "continue";
  config["train"]["checkpoint_every"] = 9;
  config["train"]["keep"] = 10;
  const RunResult whole = train(config, folder / "whole");
  CHECK(whole.steps == 60);
  for (const std::int64_t last : {9, 45, 60}) {
    const std::string part = folder / std::to_string(last);
    copy_until(folder / "whole", part, last);
    const RunResult result = train(config, part, true);
    CHECK(result.status == whole.status);
    CHECK(result.reason == whole.reason);
    CHECK(records(part) == records(folder / "whole"));
    CHECK(weights(part, 60) == weights(folder / "whole", 60));
    CHECK(read_failure(RunFolder(part)).before.files.contains("model.safetensors"));
  }
}

TEST_CASE("a run that sits at the level of guessing is told, where that is asked for",
          "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(40);
  config["optimizer"]["lr"] = 1e-9;
  CHECK(train(config, folder / "unasked").status == RunStatus::completed);
  config["train"]["guessing_after"] = 20;
  const RunResult result = train(config, folder / "asked");
  CHECK(result.status == RunStatus::diverged);
  CHECK(result.reason == "step 20: the loss sits at the level of guessing, ln 16 = 2.773");
  // Trained again in f64, it does not get away from there either.
  std::int64_t last = 0;
  const ReplayResult replayed = replay(RunFolder(folder / "asked"), [&](const ReplayedStep& s) {
    CHECK(s.step == ++last);
    CHECK(std::isfinite(s.loss_f64));
  });
  CHECK(last == 20);
  CHECK(replayed.fails_again);
  CHECK(contains(replayed.what, "guessing gives 2.7726"));

  config["train"]["on_divergence"] = "continue";
  const RunResult to_the_end = train(config, folder / "continued");
  CHECK(to_the_end.status == RunStatus::diverged);
  CHECK(to_the_end.steps == 40);
}

TEST_CASE("a run whose losses stay above a level stops, at the same step when it is resumed",
          "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(40);
  config["optimizer"]["lr"] = 1e-9;
  config["train"]["checkpoint_every"] = 4;
  config["train"]["keep"] = 10;
  config["train"]["stop_above"] = Json::parse(R"({"loss": 2, "after": 8, "for": 10})");
  const RunResult whole = train(config, folder / "whole");
  CHECK(whole.status == RunStatus::failed_to_learn);
  CHECK(whole.steps == 10);
  CHECK(whole.reason == "stopped early at step 10: the last 10 losses all lay above 2");
  CHECK(whole.final.has_value());
  CHECK(Json::parse(bytes(folder / "whole/summary.json"))["status"] == "failed_to_learn");
  for (const std::int64_t last : {4, 8, 10}) {
    const std::string part = folder / std::to_string(last);
    copy_until(folder / "whole", part, last);
    const RunResult result = train(config, part, true);
    CHECK(result.status == whole.status);
    CHECK(result.reason == whole.reason);
    CHECK(records(part) == records(folder / "whole"));
  }
  config["train"]["stop_above"]["after"] = 25;
  CHECK(train(config, folder / "later").steps == 25);
  // Around their mean, losses lie below it now and then.
  double mean = 0;
  for (const Json& record : read_metrics(folder / "later/metrics.jsonl"))
    if (record["kind"] == "train") mean += record["loss"].get<double>() / 25;
  config["train"]["stop_above"]["loss"] = mean;
  CHECK(train(config, folder / "never").status == RunStatus::completed);
}

TEST_CASE("the level of guessing is the entropy of the targets where they are not even",
          "[training]") {
  const TemporaryFolder folder;
  // Three a to one b: -(3/4 ln 3/4 + 1/4 ln 1/4) = 0.5623.
  std::string text;
  for (int i = 0; i < 400; ++i) text += "aaab";
  write_file(folder / "text.txt", text);
  Json config = shift_config(5);
  config["data"] = {{"type", "text"}, {"path", folder / "text.txt"}, {"context", 8}};
  const RunConfig parsed = parse_run_config(config);
  const auto data = build_data(parsed);
  const auto level = guessing_level(*data, parsed.loss, 8);
  REQUIRE(level);
  CHECK(level->loss == Approx(0.5623).epsilon(0.01));
  CHECK(contains(level->name, "the entropy of the targets, 0.5"));
  CHECK(contains(level->name, "(ln 2 = 0.693)"));
  config["loss"] = {{"type", "cross_entropy"}, {"label_smoothing", 1.0 / 2}};
  // Shares 5/8 and 3/8.
  CHECK(guessing_level(*data, parse_run_config(config).loss, 8)->loss ==
        Approx(0.6616).epsilon(0.01));
}

}  // namespace
}  // namespace norma::test
