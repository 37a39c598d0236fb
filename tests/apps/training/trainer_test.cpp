// The training loop: the same bits at any number of threads, after a resume, and with evaluations.
#include "apps/training/trainer.h"

#include <cmath>
#include <filesystem>

#include "core/parallel.h"
#include "core/safetensors.h"
#include "core/storage.h"
#include "tests/apps/training/support.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {
namespace fs = std::filesystem;

TEST_CASE("a run gives the same bits at 1, 2, 3 and 8 threads (pytorch/pytorch#2201)",
          "[training]") {
  const TemporaryFolder folder;
  const int before = num_threads();
  std::string first;
  for (int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    const std::string run = folder / std::to_string(threads);
    CHECK(train(shift_config(20), run).status == RunStatus::completed);
    const std::string now = records(run) + weights(run, 20);
    if (first.empty()) first = now;
    INFO(threads << " threads");
    CHECK(now == first);
  }
  set_num_threads(before);
}

TEST_CASE("a resumed run ends in the same bits (huggingface/transformers#17032)", "[training]") {
  const TemporaryFolder folder;
  const Json config = shift_config(20);
  train(config, folder / "whole");
  // Stops at step 7 in the middle, as a kill would after its checkpoint.
  Json part = config;
  part["train"]["checkpoint_every"] = 7;
  train(part, folder / "part");
  for (int step : {14, 20})
    fs::remove_all(folder / ("part/checkpoints/step-" + std::to_string(step)));
  CHECK(train(part, folder / "part", true).status == RunStatus::completed);
  CHECK(records(folder / "part") == records(folder / "whole"));
  CHECK(weights(folder / "part", 20) == weights(folder / "whole", 20));
  // The control: without the optimizer's state the end is another one.
  fs::remove_all(folder / "part/checkpoints/step-20");
  fs::remove_all(folder / "part/checkpoints/step-14");
  CHECK(fs::exists(folder / "part/checkpoints/step-7"));
  {
    // Moments of zero, in a file of the same form.
    const std::string path = folder / "part/checkpoints/step-7/optimizer.safetensors";
    const SafetensorsFile file(path);
    std::vector<NamedTensor> zeros;
    for (const auto& e : file.entries()) {
      Tensor t = file.read(e.name);
      if (e.name.starts_with("step.") == false) t.fill_(0);
      zeros.push_back({e.name, t});
    }
    write_safetensors(path, zeros);
    reseal(folder / "part/checkpoints/step-7");
  }
  train(part, folder / "part", true);
  CHECK(weights(folder / "part", 20) != weights(folder / "whole", 20));
}

TEST_CASE("a run that is asked to stop after a step goes on from there", "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(20);
  config["train"]["keep"] = 0;
  const auto until = [&](std::int64_t step, bool resume) {
    Trainer trainer(parse_run_config(config),
                    {.out = folder / "part", .resume = resume, .quiet = true, .until = step});
    return trainer.run();
  };
  CHECK(until(7, false).status == RunStatus::interrupted);
  CHECK(RunFolder(folder / "part").checkpoint_steps() == std::vector<std::int64_t>{7});
  NORMA_CHECK_ERROR(until(7, true), "the run is at step 7; give a later one with --until");
  CHECK(until(12, true).steps == 12);
  CHECK(until(0, true).status == RunStatus::completed);
  train(config, folder / "whole");
  CHECK(records(folder / "part") == records(folder / "whole"));
}

TEST_CASE("a resumed run stops early where the whole one did, and is not written down twice",
          "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(20);
  config["optimizer"]["lr"] = 1e-30;  // no evaluation is better than the first one
  config["train"]["eval_every"] = 2;
  config["train"]["early_stop"] = 2;
  config["train"]["keep"] = 10;
  const RunResult whole = train(config, folder / "run");
  CHECK(whole.status == RunStatus::completed);
  CHECK(whole.steps == 6);
  const std::string written = records(folder / "run");

  const RunResult again = train(config, folder / "run", true);
  CHECK(again.steps == 6);
  CHECK(again.final_loss == whole.final_loss);
  REQUIRE(again.final);
  CHECK(again.final->loss == whole.final->loss);
  CHECK(records(folder / "run") == written);

  fs::remove_all(folder / "run/checkpoints/step-6");
  CHECK(train(config, folder / "run", true).steps == 6);
  CHECK(records(folder / "run") == written);
}

TEST_CASE("evaluating in the middle changes nothing of the training (karpathy/nanoGPT#240)",
          "[training]") {
  Json attention = shift_config(10);
  Json statistics = shift_config(10);
  statistics["model"] = Json::parse(R"({"type": "sequential", "layers": [
    {"type": "embedding", "out": 16}, "batch_norm", {"type": "dropout", "p": 0.3},
    {"type": "linear", "out": 16}]})");
  Json averaged = attention;
  averaged["train"]["ema"] = 0.9;
  for (Json config : {attention, statistics, averaged}) {
    const TemporaryFolder folder;
    train(config, folder / "without");
    config["train"]["eval_every"] = 2;
    train(config, folder / "with");
    CHECK(weights(folder / "with", 10) == weights(folder / "without", 10));
  }
}

TEST_CASE("a loss that is not finite stops the run before the update", "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(30);
  config["optimizer"] = Json::parse(R"({"type": "sgd", "lr": 1e30})");
  config["train"].erase("clip_norm");
  const RunResult result = train(config, folder / "run");
  CHECK(result.status == RunStatus::diverged);
  CHECK(result.steps < 30);
  CHECK(contains(result.reason, "step "));
  const Json summary = Json::parse(bytes(folder / "run/summary.json"));
  CHECK(summary.at("status") == "diverged");
  CHECK(summary.at("final").at("train_loss").is_string() == !std::isfinite(result.final_loss));
}

TEST_CASE("what does not fit is told before a folder is made", "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(5);
  config["model"]["vocab"] = 8;
  NORMA_CHECK_ERROR(train(config, folder / "run"),
                    "transformer: `vocab` is 8; the data has 16 ids");
  config = shift_config(5);
  config["model"] = Json::parse(
      R"({"type": "sequential", "layers": [{"type": "embedding", "out": 4}, {"type": "linear", "out": 7}]})");
  NORMA_CHECK_ERROR(train(config, folder / "run"), "its output has shape (8, 7) a sample");
  CHECK_FALSE(fs::exists(folder / "run"));
}

TEST_CASE("accumulated parts with unequal counts give the gradient of the whole batch",
          "[training]") {
  // By hand: 2 + 6 targets that count; the mean over 8, not the mean of two means.
  const LossConfig loss;
  Tensor logits = random_tensor(Shape{8, 5}, 3, DType::f64);
  Tensor whole = logits.clone().set_requires_grad();
  std::vector<std::int64_t> ids{1, 2, 0, 3, 4, 1, 2, 2};
  backward(loss.apply(whole, Tensor::from_ids(Shape{8}, ids)));
  Tensor parts = logits.clone().set_requires_grad();
  std::vector<std::int64_t> first{1, 2, -100, -100, -100, -100, -100, -100};
  std::vector<std::int64_t> second{-100, -100, 0, 3, 4, 1, 2, 2};
  for (const auto& target : {first, second}) {
    const Tensor t = Tensor::from_ids(Shape{8}, target);
    CHECK(loss.count(parts.shape(), t) == (target[0] == 1 ? 2 : 6));
    backward(loss.sum(parts, t), Tensor::full(Shape{}, 1.0 / 8, DType::f64));
  }
  CHECK(compare(parts.grad(), whole.grad(), 1e-12) == "");
}

TEST_CASE("a long run needs no more memory than a short one (BatsResearch/labelmodels#4)",
          "[training]") {
  const TemporaryFolder folder;
  const auto peak = [&](std::int64_t steps) {
    Json config = shift_config(steps);
    config["train"]["eval_every"] = 10;
    config["train"]["keep"] = 1;
    reset_peak_bytes();
    const std::int64_t before = memory_stats().live_bytes;
    train(config, folder / std::to_string(steps));
    CHECK(memory_stats().live_bytes == before);
    return memory_stats().peak_bytes - before;
  };
  CHECK(peak(200) == peak(20));
}

TEST_CASE("a run that ends with updates left out has diverged", "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(4);
  config["optimizer"] = Json::parse(R"({"type": "sgd", "lr": 1e30})");
  config["train"].erase("clip_norm");
  CHECK(train(config, folder / "run").status == RunStatus::diverged);
}

TEST_CASE("one folder holds one run at a time", "[training]") {
  const TemporaryFolder folder;
  const Json config = shift_config(3);
  Trainer first(parse_run_config(config), {.out = folder / "run", .quiet = true});
  NORMA_CHECK_ERROR(train(config, folder / "run", true), "another process is training into it");
  CHECK(first.run().status == RunStatus::completed);
}

TEST_CASE("a run that fails before its first step leaves its place free", "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(3);
  config["train"]["batch"] = 1;
  config["model"] =
      Json::parse(R"({"type": "sequential", "layers": [{"type": "embedding", "out": 4},
    {"type": "instance_norm"}, {"type": "linear", "out": 16}]})");
  config["data"]["length"] = 1;
  CHECK(contains(error_of([&] { (void)train(config, folder / "run"); }), "instance_norm"));
  CHECK_FALSE(fs::exists(folder / "run"));
}

}  // namespace
}  // namespace norma::test
