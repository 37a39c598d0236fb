// Runs on files: the stream of samples over a resume, what is kept of the data, predictions.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/build.h"
#include "apps/training/prediction.h"
#include "apps/training/trainer.h"
#include "apps/training/translation.h"
#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

// Eleven rows of two features and a class, which is a color.
std::string table(std::int64_t rows = 11) {
  std::string text = "height,width,color\n";
  for (std::int64_t i = 0; i < rows; ++i) {
    text += fmt::format("{},{},{}\n", i, i * i % 7, i % 3 == 0 ? "red" : "\"dark, green\"");
  }
  return text;
}

Json csv_run(const std::string& path) {
  Json run = config::parse_json(R"({"name": "t", "data": {"type": "csv", "validation": 0.1},
    "model": {"type": "sequential", "layers": [{"type": "linear", "out": 8}, {"type": "dropout", "p": 0.2},
              "tanh", {"type": "linear", "out": 2}]},
    "train": {"epochs": 5, "batch": 3, "accumulate": 2, "log_every": 1, "checkpoint_every": 1, "keep": 100}})");
  run["data"]["path"] = path;
  return run;
}

RunResult train(const Json& run, const std::string& out, bool resume = false) {
  return Trainer(parse_run_config(run), {.out = out, .resume = resume, .quiet = true}).run();
}

std::string records(const std::string& run) {
  std::string text;
  for (Json record : read_metrics(run + "/metrics.jsonl")) {
    record.erase("seconds");
    text += record.dump() + "\n";
  }
  return text;
}

TEST_CASE("a run stopped after any step and resumed sees the samples of the whole one",
          "[training]") {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", table());
  const Json run = csv_run(folder / "x.csv");
  // 10 samples, 4 batches (the last of 1), 2 a step: 10 steps over 5 epochs.
  CHECK(train(run, folder / "whole").steps == 10);
  const std::string whole = records(folder / "whole");
  const Json last = read_metrics(folder / "whole/metrics.jsonl").back();
  CHECK(last["step"] == 10);
  for (int stop = 1; stop < 10; ++stop) {
    INFO("stopped after step " << stop);
    const std::string part = folder / std::to_string(stop);
    fs::copy(folder / "whole", part, fs::copy_options::recursive);
    for (int step = stop + 1; step <= 10; ++step) {
      fs::remove_all(part + "/checkpoints/step-" + std::to_string(step));
    }
    CHECK(train(run, part, true).steps == 10);
    REQUIRE(records(part) == whole);
  }
  // The samples of every step, the smaller last batch counted as it is.
  std::vector<std::int64_t> samples;
  for (const Json& record : read_metrics(folder / "whole/metrics.jsonl")) {
    if (record["kind"] == "train") samples.push_back(record["samples"]);
  }
  CHECK(samples == std::vector<std::int64_t>{6, 10, 16, 20, 26, 30, 36, 40, 46, 50});
}

TEST_CASE("a run in epochs takes all their batches, and is evaluated where one ends",
          "[training]") {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", table());
  Json run = csv_run(folder / "x.csv");
  run["train"]["accumulate"] = 3;
  // 5 epochs of 4 batches make 6 steps of 3; batches 4, 8, 12 and 16 are those of steps 2, 3, 4, 6.
  CHECK(train(run, folder / "run").steps == 6);
  std::vector<std::int64_t> evaluated;
  for (const Json& record : read_metrics(folder / "run/metrics.jsonl")) {
    if (record["kind"] == "eval") evaluated.push_back(record["step"]);
  }
  CHECK(evaluated == std::vector<std::int64_t>{2, 3, 4, 6});
}

TEST_CASE("data that changed are refused by resume and evaluate, and not needed to predict") {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", table());
  const Json run = csv_run(folder / "x.csv");
  train(run, folder / "run");
  write_file(folder / "x.csv", table(12));
  NORMA_CHECK_ERROR(train(run, folder / "run", true), "has changed: expected content of hash");
  FinishedRun finished(folder / "run");
  NORMA_CHECK_ERROR(finished.data(), "has changed: expected content of hash");
  fs::remove(folder / "x.csv");
  FinishedRun alone(folder / "run");
  CHECK(alone.spec().classes == 2);

  // Columns in any order, with or without the target; values as the model gives them.
  write_file(folder / "a.csv", "width,height\n0,0\n4,9\n");
  write_file(folder / "b.csv", "color,height,width\nred,0,0\nred,9,4\n");
  write_file(folder / "c.csv", "0,0\n9,4\n");
  const Tensor a = read_inputs(alone.record(), folder / "a.csv");
  CHECK(a.shape() == Shape{2, 2});
  const DataRecord& record = alone.record();
  CHECK(a.to_vector()[2] == Approx((9 - record.mean[0]) / record.deviation[0]));
  CHECK(read_inputs(record, folder / "b.csv").to_vector() == a.to_vector());
  CHECK(read_inputs(record, folder / "c.csv").to_vector() == a.to_vector());
  const std::vector<Prediction> says = predict(alone, a);
  REQUIRE(says.size() == 2);
  for (const Prediction& p : says) {
    CHECK((p.value == "red" || p.value == "dark, green"));
    CHECK(p.probability >= 0.5);
    CHECK(p.probability <= 1);
  }
  write_file(folder / "d.csv", "height,depth\n1,2\n");
  NORMA_CHECK_ERROR(
      read_inputs(record, folder / "d.csv"),
      "expected the columns of the training: height, width; missing here: width; unknown: depth");
  write_file(folder / "e.csv", "1,2,3\n");
  NORMA_CHECK_ERROR(read_inputs(record, folder / "e.csv"), "expected 2 columns");
  write_file(folder / "f.idx", std::string("\0\0\x08\x02\0\0\0\1\0\0\0\3\1\2\3", 15));
  NORMA_CHECK_ERROR(read_inputs(record, folder / "f.idx"),
                    "expected samples of shape (2), as in training; got an array of shape (1, 3)");
}

TEST_CASE("paths: relative to the configuration, from --set to the current folder, kept whole") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "sub");
  write_file(folder / "x.csv", table());
  Json run = csv_run("../x.csv");
  write_file(folder / "sub/run.json", run.dump());
  write_file(folder / "over.json", R"({"extends": "sub/run.json", "seed": 1})");
  const auto path_of = [](const RunConfig& config) {
    return config.data.get_if<CsvConfig>()->path;
  };
  CHECK(path_of(load_run_config(folder / "sub/run.json")) == folder / "x.csv");
  CHECK(path_of(load_run_config(folder / "over.json")) == folder / "x.csv");
  const std::vector<std::string> set = {"data.path=y.csv"};
  CHECK(path_of(load_run_config(folder / "over.json", set)) ==
        (fs::current_path() / "y.csv").string());
}

TEST_CASE("what training would refuse is found without it; sizes nobody means are told") {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", table());
  Json run = csv_run(folder / "x.csv");
  (void)Trainer(parse_run_config(run), {.dry = true});
  run["loss"] = "mse";
  NORMA_CHECK_ERROR(Trainer(parse_run_config(run), {.dry = true}),
                    "loss: mse is for targets that are numbers; the data's are classes");
  run["loss"] = "cross_entropy";
  run["model"]["layers"][3]["out"] = 1;
  NORMA_CHECK_ERROR(Trainer(parse_run_config(run), {.dry = true}), "the data have 2 classes");
  run["model"]["layers"][3]["out"] = 2;
  run["train"]["accumulate"] = 21;
  NORMA_CHECK_ERROR(Trainer(parse_run_config(run), {.dry = true}),
                    "train.accumulate: 21 batches a step are more than the 20 of all epochs");

  const RunConfig small = parse_run_config(csv_run(folder / "x.csv"));
  const auto data = build_data(small);
  TrainConfig sizes = small.train;
  CHECK(size_warnings(sizes, *data).empty());
  sizes.batch = 11;
  // Accumulate is too large then, too, and does not divide the batches of all epochs.
  CHECK(size_warnings(sizes, *data).size() == 3);
  CHECK(test::contains(size_warnings(sizes, *data)[0],
                       "a batch of 11 is more than the 10 samples of the train part"));
}

TEST_CASE("outputs beyond the classes of the data are told, as nothing trains them") {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", table());
  Json run = csv_run(folder / "x.csv");
  const auto says = [&](int outputs) {
    run["model"]["layers"][3]["out"] = outputs;
    write_file(folder / "run.json", run.dump());
    const test::ProcessResult result = test::run_norma(
        fmt::format("train {} --out {}", folder / "run.json", folder / std::to_string(outputs)));
    CHECK(result.status == 0);
    return result.err;
  };
  CHECK(test::contains(says(5),
                       "warning: model: it has 5 outputs, and the data have 2 classes: 3 outputs "
                       "belong to no class"));
  CHECK_FALSE(test::contains(says(2), "warning: model"));
  // Not of ids, of which some are only read.
  CHECK(output_warning({8, 68}, {.input = {8}, .target = {8}, .vocab = 68, .classes = 67}).empty());
}

TEST_CASE("exact: the answers that are right when written an id at a time, and no others") {
  const TemporaryFolder folder;
  const RunConfig config = parse_run_config(config::parse_json(R"({"name": "t",
    "data": {"type": "reverse", "vocab": 4, "length": 4},
    "model": {"type": "transformer", "kind": "encoder_decoder", "encoder_layers": 1, "decoder_layers": 1,
              "width": 32, "heads": 2, "hidden": 32},
    "optimizer": {"type": "adamw", "lr": 3e-3}, "train": {"steps": 25, "batch": 32}})"));
  Trainer trainer(config, {.out = folder / "run", .quiet = true});
  const RunResult result = trainer.run();
  REQUIRE(result.final);
  REQUIRE(result.final->exact);
  const Batch batch = trainer.data().batch(Part::validation, 0, 512);
  const std::vector<std::int64_t> source = batch.source.to_ids(), target = batch.targets.to_ids();
  std::int64_t right = 0;
  for (std::size_t s = 0; s < 512; ++s) {
    const auto written = translate(trainer.model(), trainer.data().spec(), {&source[4 * s], 4});
    right += written == std::vector<std::int64_t>(&target[4 * s], &target[4 * s] + 4);
  }
  CHECK(static_cast<double>(right) / 512 == *result.final->exact);
  CHECK(right > 5);  // some are right, and some are not: else nothing was compared
  CHECK(right < 507);
  CHECK(*result.final->exact <= *result.final->accuracy);
}

TEST_CASE("an output that belongs to no class is predicted as none, and not as a number") {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", table());
  Json run = csv_run(folder / "x.csv");
  run["model"]["layers"][3]["out"] = 5;
  train(run, folder / "run");
  write_file(folder / "in.csv", "1,2\n");
  const std::string command = "predict " + (folder / "run") + " " + (folder / "in.csv");
  CHECK(test::contains(test::run_norma(command).err, "warning: model: it has 5 outputs"));
  FinishedRun finished(folder / "run");
  const Tensor input = read_inputs(finished.record(), folder / "in.csv");
  CHECK((predict(finished, input)[0].value == "red" ||
         predict(finished, input)[0].value == "dark, green"));
  Tensor bias = find_tensor(finished.model().state_dict(), "3.bias")->tensor;
  {
    const NoGrad off;
    bias.mutable_data<float>()[4] = 100;
  }
  CHECK(predict(finished, input)[0].value == "no class (output 4)");
}

}  // namespace
}  // namespace norma
