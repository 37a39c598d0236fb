// What a run keeps besides f32 weights: their average, half copies with a loss scale, values that
// are computed again, clipped logits. Each resumes in the same bits, at any number of threads.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "apps/training/finished_run.h"
#include "core/parallel.h"
#include "core/safetensors.h"
#include "core/storage.h"
#include "tests/apps/training/support.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {
namespace fs = std::filesystem;

Json averaged_config() {
  return Json::parse(R"({"name": "t", "data": {"type": "shift", "vocab": 16, "length": 8},
    "model": {"type": "transformer", "layers": 1, "width": 16, "heads": 2, "hidden": 32,
              "dropout": 0.1, "position": "rope"},
    "optimizer": {"type": "adamw", "lr": 1e-2}, "schedule": {"type": "constant"},
    "train": {"steps": 9, "batch": 8, "ema": 0.5, "eval_every": 3, "eval_batches": 2,
              "checkpoint_every": 3, "log_every": 1}})");
}

std::vector<double> saved(const std::string& run, int step, const std::string& file,
                          const std::string& name) {
  return SafetensorsFile(step_folder(run, step) + "/" + file).read(name).to_vector();
}

TEST_CASE("a run averages its weights, and evaluates on the average", "[training]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  Json config = averaged_config();
  config["train"]["checkpoint_every"] = 1;
  config["train"]["keep"] = 20;
  const RunResult result = train(config, run);
  const std::string name = "blocks.0.attention.q.weight";
  // average <- 0.5 average + 0.5 weights, from the averages and the weights that were saved.
  const auto before = saved(run, 8, "ema.safetensors", name);
  const auto w = saved(run, 9, "model.safetensors", name);
  const auto after = saved(run, 9, "ema.safetensors", name);
  for (std::size_t i = 0; i < w.size(); ++i) {
    CHECK(after[i] == Approx(0.5 * before[i] + 0.5 * w[i]).margin(1e-7));
  }
  CHECK(after != w);
  FinishedRun finished(run, 9);
  CHECK(find_tensor(finished.model().state_dict(), name)->tensor.to_vector() == after);
  const Evaluation e =
      evaluate(finished.model(), finished.data(), Part::validation, finished.config().loss, 8, 2);
  CHECK(e.loss == result.final->loss);
}

TEST_CASE("a resumed run goes on with the same average, to the bit", "[training]") {
  const TemporaryFolder folder;
  const std::string whole = folder / "whole", part = folder / "part";
  train(averaged_config(), whole);
  train(averaged_config(), part);
  for (const char* step : {"6", "9"}) fs::remove_all(part + "/checkpoints/step-" + step);
  CHECK(train(averaged_config(), part, true).status == RunStatus::completed);
  for (const char* file : {"ema.safetensors", "model.safetensors"}) {
    const std::string name = "blocks.0.ffn.up.weight";
    CHECK(saved(part, 9, file, name) == saved(whole, 9, file, name));
  }
  // The control: with another average in the checkpoint the end is another one.
  for (const char* step : {"6", "9"}) fs::remove_all(part + "/checkpoints/step-" + step);
  const std::string at = part + "/checkpoints/step-3";
  fs::copy_file(at + "/model.safetensors", at + "/ema.safetensors",
                fs::copy_options::overwrite_existing);
  reseal(at);
  train(averaged_config(), part, true);
  const std::string name = "head.weight";
  CHECK(saved(part, 9, "ema.safetensors", name) != saved(whole, 9, "ema.safetensors", name));
  // A checkpoint without its average is not whole.
  for (const char* step : {"6", "9"}) fs::remove_all(part + "/checkpoints/step-" + step);
  fs::remove(at + "/ema.safetensors");
  NORMA_CHECK_ERROR(train(averaged_config(), part, true), "none of its");
}

// The weights at the end, and the records without their times.
std::string outcome(const std::string& run, int step) {
  std::string text = records(run);
  const SafetensorsFile file(step_folder(run, step) + "/model.safetensors");
  for (const auto& entry : file.entries()) {
    const Tensor t = file.read(entry.name);
    CHECK(!is_half(t.dtype()));
    text.append(reinterpret_cast<const char*>(t.raw()),
                static_cast<std::size_t>(t.numel() * size_of(t.dtype())));
  }
  return text;
}

// The run in one piece, at 1 and 3 threads, and resumed from step 3: the same outcome.
std::string same_in_every_way(const Json& config) {
  const TemporaryFolder folder;
  const std::string whole = folder / "whole", part = folder / "part";
  CHECK(train(config, whole).status == RunStatus::completed);
  const std::string expected = outcome(whole, 9);
  const int before = num_threads();
  set_num_threads(before == 3 ? 1 : 3);
  CHECK(train(config, part).status == RunStatus::completed);
  set_num_threads(before);
  CHECK(outcome(part, 9) == expected);
  for (const char* step : {"6", "9"}) fs::remove_all(part + "/checkpoints/step-" + step);
  CHECK(train(config, part, true).status == RunStatus::completed);
  CHECK(outcome(part, 9) == expected);
  return expected;
}

TEST_CASE("runs in bf16 and f16 resume in the same bits", "[training]") {
  Json config = averaged_config();
  config["train"]["accumulate"] = 2;
  config["train"]["clip_norm"] = 1;
  const std::string f32 = same_in_every_way(config);
  config["train"]["precision"] = "bf16";
  const std::string bf16 = same_in_every_way(config);
  config["train"]["precision"] = "f16";
  const std::string f16 = same_in_every_way(config);
  CHECK(f32 != bf16);
  CHECK(bf16 != f16);
  CHECK(f16.find("\"loss_scale\":65536.0") != std::string::npos);
}

TEST_CASE("a gradient that overflows in f16 halves the scale and leaves the step out",
          "[training]") {
  const TemporaryFolder folder;
  Json config = averaged_config();
  config["train"]["precision"] = "f16";
  config["train"]["max_skipped"] = 2;
  config["train"]["loss_scale"] = 1e30;  // fixed: every step overflows
  CHECK(train(config, folder / "fixed").status == RunStatus::diverged);
  config["train"]["precision"] = "bf16";  // has the range
  config["train"]["loss_scale"] = 1e20;
  CHECK(train(config, folder / "bf16").status == RunStatus::completed);
  config["train"]["precision"] = "f32";
  NORMA_CHECK_ERROR(parse_run_config(config), "loss_scale: has no use in f32 and f64");
  // Dynamic, from a checkpoint whose scale is far too large.
  config["train"].erase("loss_scale");
  config["train"]["precision"] = "f16";
  config["train"]["max_skipped"] = 20;
  const std::string run = folder / "dynamic";
  train(config, run);
  for (const char* step : {"6", "9"}) fs::remove_all(run + "/checkpoints/step-" + step);
  const std::string state = run + "/checkpoints/step-3/state.json";
  Json j = config::load_json(state);
  j["loss_scale"] = 0x1p40;
  std::ofstream(state) << j.dump();
  reseal(run + "/checkpoints/step-3");
  CHECK(train(config, run, true).status == RunStatus::completed);  // 6 steps, all left out
  CHECK(config::load_json(run + "/summary.json")["skipped"] == 6);
  const auto log = read_metrics(run + "/metrics.jsonl");
  REQUIRE(log[log.size() - 2]["kind"] == "train");
  CHECK(log[log.size() - 2]["loss_scale"] == 0x1p40 / 32);
}

TEST_CASE("f64 and half types take images", "[training]") {
  // 3 x 4 x 4 numbers a sample, in f32.
  const ModelConfig model = config::parse<ModelConfig>(
      config::parse_json(
          R"({"type": "sequential", "layers": ["flatten", {"type": "linear", "out": 2}]})"),
      "model");
  const ModelPtr f64 = model.build(0, {.shape = Shape{3, 4, 4}}, DType::f64);
  CHECK((*f64)(Tensor::ones(Shape{2, 3, 4, 4})).dtype() == DType::f64);
}

TEST_CASE("recomputing blocks changes no bit, and takes less memory", "[training]") {
  Json config = averaged_config();
  config["model"]["layers"] = 6;
  config["model"]["attention_dropout"] = 0.1;
  const auto peak = [&] {
    const TemporaryFolder folder;
    reset_peak_bytes();
    const std::int64_t before = memory_stats().live_bytes;
    train(config, folder / "run");
    return memory_stats().peak_bytes - before;
  };
  const std::int64_t plain_bytes = peak();
  const std::string plain = same_in_every_way(config);
  config["train"]["recompute"] = true;
  const std::int64_t recomputed_bytes = peak();
  INFO(plain_bytes << " bytes without, " << recomputed_bytes << " with");
  CHECK(recomputed_bytes < plain_bytes);
  CHECK(same_in_every_way(config) == plain);
  config["model"] = Json::parse(
      R"({"type": "sequential", "layers": [{"type": "embedding", "out": 4}, {"type": "linear", "out": 16}]})");
  NORMA_CHECK_ERROR(parse_run_config(config), "train.recompute: the model has no blocks");
}

TEST_CASE("watching the logits changes nothing but the log", "[training]") {
  Json config = averaged_config();
  const std::string plain = same_in_every_way(config);
  config["train"]["log_logits"] = true;
  const std::string watched = same_in_every_way(config);
  CHECK(plain.find("largest_logit") == std::string::npos);
  CHECK(watched.find("largest_logit") != std::string::npos);
  CHECK(std::regex_replace(watched, std::regex(R"(,"largest_logit":[-0-9.e]+)"), "") == plain);
  config["model"] = Json::parse(
      R"({"type": "sequential", "layers": [{"type": "embedding", "out": 4}, {"type": "linear", "out": 16}]})");
  NORMA_CHECK_ERROR(parse_run_config(config), "train.log_logits: the model has no attention");
}

TEST_CASE("QK-Clip in a run: logged, the same bits in every way", "[training]") {
  Json config = averaged_config();
  config["train"]["accumulate"] = 2;
  const std::string plain = same_in_every_way(config);
  config["optimizer"]["qk_clip"] = {{"tau", 0.05}};
  const std::string clipped = same_in_every_way(config);
  CHECK(plain.find("largest_logit") == std::string::npos);
  CHECK(clipped.find("largest_logit") != std::string::npos);
  CHECK(clipped != plain);
  // With shared keys, and a tau that no head reaches: only the log differs.
  config["model"]["kv_heads"] = 1;
  CHECK(same_in_every_way(config) != plain);
  config["optimizer"]["qk_clip"]["tau"] = 1e6;
  const TemporaryFolder folder;
  train(config, folder / "high");
  config["optimizer"].erase("qk_clip");
  train(config, folder / "none");
  const std::string name = "blocks.0.attention.q.weight";
  CHECK(saved(folder / "high", 9, "model.safetensors", name) ==
        saved(folder / "none", 9, "model.safetensors", name));

  config["optimizer"]["qk_clip"] = {{"tau", 100}};
  config["model"]["qk_norm"] = {{"norm", "rms_norm"}, {"over", "head"}};
  NORMA_CHECK_ERROR(parse_run_config(config), "optimizer.qk_clip: has no effect on queries and");
  config["model"] = Json::parse(
      R"({"type": "sequential", "layers": [{"type": "embedding", "out": 4}, {"type": "linear", "out": 16}]})");
  NORMA_CHECK_ERROR(parse_run_config(config), "optimizer.qk_clip: the model has no attention");
}

TEST_CASE("four parts with unequal counts give the step of the one large batch", "[training]") {
  // Labels of which one does not count, so that the parts have different numbers that do.
  const TemporaryFolder folder;
  const std::int64_t samples = 24;
  {
    std::ofstream images(folder / "images", std::ios::binary);
    std::ofstream labels(folder / "labels", std::ios::binary);
    images << std::string("\0\0\x08\x03\0\0\0\x18\0\0\0\x02\0\0\0\x03", 16);
    labels << std::string("\0\0\x08\x01\0\0\0\x18", 8);
    for (std::int64_t i = 0; i < samples; ++i) {
      for (std::int64_t k = 0; k < 6; ++k) images.put(static_cast<char>((i * 37 + k * 11) % 251));
      labels.put(static_cast<char>(i * i % 7 % 3));
    }
  }
  Json config = Json::parse(R"({"name": "t", "data": {"type": "idx", "shuffle": false},
    "model": {"type": "sequential", "layers": ["flatten", {"type": "linear", "out": 8}, "layer_norm",
              "gelu", {"type": "linear", "out": 3}]},
    "loss": {"type": "cross_entropy", "ignore": 0}, "schedule": {"type": "constant"}})");
  for (const char* part : {"", "test_"}) {
    config["data"][part + std::string("images")] = folder / "images";
    config["data"][part + std::string("labels")] = folder / "labels";
  }
  config["optimizer"] = {{"type", "sgd"}, {"lr", 1}};
  config["train"] = {{"steps", 1}, {"batch", 8}};
  Trainer whole(parse_run_config(config), {.out = folder / "whole", .quiet = true});
  config["train"]["batch"] = 2;
  config["train"]["accumulate"] = 4;
  Trainer parts(parse_run_config(config), {.out = folder / "parts", .quiet = true});
  std::set<std::int64_t> counts;
  for (std::int64_t i = 0; i < 4; ++i) {
    const Batch batch = parts.data().train_batch(i, 2);
    counts.insert(parse_run_config(config).loss.count(Shape{}, batch.targets));
  }
  CHECK(counts.size() > 1);
  const RunResult a = whole.run(), b = parts.run();
  CHECK(a.final_loss == Approx(b.final_loss).epsilon(1e-6));
  const auto x = whole.model().state_dict(), y = parts.model().state_dict();
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(x[i].name);
    CHECK(compare(y[i].tensor, x[i].tensor, 1e-6) == "");
  }
}

}  // namespace
}  // namespace norma::test
