// The training loop: the same bits at any number of threads, after a resume, and with evaluations.
#include "apps/training/trainer.h"

#include <cmath>
#include <filesystem>

#include "core/instructions.h"
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
  CHECK(summary.at("host").at("instructions") == instruction_set());
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
  NORMA_CHECK_ERROR(train(config, folder / "run"),
                    "its output has shape (8, 7) a sample; the data have 16 "
                    "classes, so that cross_entropy needs (8, 16); give its last layer out: 16");
  config["data"] = {{"type", "fashion_mnist"}, {"limit", 100}};
  config["model"]["layers"] = Json::parse(R"([{"type": "linear", "out": 10}])");
  NORMA_CHECK_ERROR(train(config, folder / "run"), "needs (10); a \"flatten\" or");
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

// 11 points in 3 batches, the last of one alone.
Json points_config(const std::string& layers, const std::string& train) {
  return Json::parse(fmt::format(R"({{"name": "p", "optimizer": "sgd",
    "data": {{"type": "gaussians", "samples": 12, "validation": 0.09}},
    "model": {{"type": "sequential", "layers": [{} {{"type": "linear", "out": 3}}]}},
    "train": {}}})",
                                 layers, train));
}

TEST_CASE("a last batch of one sample is refused under batch_norm before the run", "[training]") {
  const TemporaryFolder folder;
  const auto config = [](const std::string& train) {
    return points_config("\"batch_norm\",", train);
  };
  NORMA_CHECK_ERROR(train(config(R"({"epochs": 1, "batch": 5})"), folder / "run"),
                    "batch_norm: expected more than one value a channel");
  NORMA_CHECK_ERROR(train(config(R"({"epochs": 1, "batch": 5})"), folder / "run"),
                    "; the last batch of an epoch has 1 of the 5 samples of train.batch: "
                    "data.drop_last leaves it out");
  CHECK_FALSE(fs::exists(folder / "run"));
  Json dropped = config(R"({"epochs": 1, "batch": 5})");
  dropped["data"]["drop_last"] = true;
  CHECK(train(dropped, folder / "dropped").steps == 2);
  // Where it is the only one, nothing would be left.
  Json alone = config(R"({"epochs": 1, "batch": 5})");
  alone["data"]["limit"] = 1;
  alone["data"]["validation"] = 0;
  CHECK(error_of([&] { (void)train(alone, folder / "run"); }).ends_with("drop the last one"));
  // Runs that do not come so far, and those without such a batch.
  CHECK(train(config(R"({"steps": 2, "batch": 5})"), folder / "a").steps == 2);
  CHECK(train(config(R"({"epochs": 1, "batch": 6})"), folder / "b").steps == 2);
  // Trying it leaves no trace.
  const SafetensorsFile file(step_folder(folder / "b", 2) + "/model.safetensors");
  CHECK(file.read("0.num_batches_tracked").item() == 2);
}

TEST_CASE("epochs whose batches are no whole number of steps: all batches count, over all epochs",
          "[training]") {
  const TemporaryFolder folder;
  const RunResult result =
      train(points_config("", R"({"epochs": 2, "batch": 5, "accumulate": 2, "log_every": 1})"),
            folder / "run");
  CHECK(result.steps == 3);  // of 6 batches
  std::vector<std::int64_t> evaluated, samples;
  for (const Json& record : read_metrics(folder / "run/metrics.jsonl")) {
    if (record.at("kind") == "eval") evaluated.push_back(record.at("step"));
    if (record.at("kind") == "train") samples.push_back(record.at("samples"));
  }
  CHECK(samples == std::vector<std::int64_t>{10, 16, 22});  // 5 + 5, 1 + 5, 5 + 1
  CHECK(evaluated == std::vector<std::int64_t>{2, 3});      // where an epoch ends
}

TEST_CASE("nothing to train, and nothing to evaluate on", "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(2);
  config["data"] = Json::parse(R"({"type": "gaussians", "features": 3})");
  config["model"] = Json::parse(R"({"type": "sequential", "layers": ["relu"]})");
  NORMA_CHECK_ERROR(train(config, folder / "run"), "model: it has no parameters");
  config = points_config("", R"({"steps": 2, "batch": 5})");
  const auto data = build_data(parse_run_config(config));
  config["loss"] = Json::parse(R"({"type": "cross_entropy"})");
  config["loss"]["ignore"] = data->batch(Part::validation, 0, 1).targets.to_ids()[0];
  const RunResult result = train(config, folder / "run");
  REQUIRE(result.final);
  CHECK(std::isnan(result.final->loss));
}

TEST_CASE("a short run in f16 whose loss is no number has diverged", "[training]") {
  const TemporaryFolder folder;
  Json config = shift_config(3);
  config["model"]["embedding_scale"] = 1e9;  // beyond f16
  config["train"]["precision"] = "f16";
  const RunResult result = train(config, folder / "run");
  CHECK(std::isnan(result.final_loss));
  CHECK(result.status == RunStatus::diverged);
}

TEST_CASE("--init refuses weights that are no finite numbers, and integers", "[training]") {
  const TemporaryFolder folder;
  const Json config = points_config("", R"({"steps": 1, "batch": 5})");
  const auto start_from = [&](const Tensor& weight) {
    write_safetensors(
        folder / "w.safetensors",
        std::vector<NamedTensor>{{"0.weight", weight}, {"0.bias", Tensor::zeros({3})}});
    Trainer trainer(parse_run_config(config),
                    {.out = folder / "run", .init = folder / "w.safetensors", .quiet = true});
  };
  NORMA_CHECK_ERROR(start_from(Tensor::full({3, 2}, 1e300, DType::f64)),
                    "0.weight holds numbers that are not finite, or beyond the range of f32");
  NORMA_CHECK_ERROR(start_from(Tensor::ones({3, 2}, DType::i64)),
                    "0.weight: expected F32; got I64");
  start_from(Tensor::ones({3, 2}, DType::f64));
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
