// Checkpoints: whole or passed over, of this run or refused, as many as asked for.
#include "apps/training/checkpoint.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "apps/training/build.h"
#include "apps/training/finished_run.h"
#include "core/safetensors.h"
#include "tests/apps/training/support.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace norma::test {
namespace {
namespace fs = std::filesystem;

Json small_config(std::int64_t steps) {
  Json config = shift_config(steps);
  config["model"] = Json::parse(R"({"type": "sequential", "layers": [
      {"type": "embedding", "out": 4}, {"type": "linear", "out": 16}]})");
  return config;
}

void flip_bit(const std::string& path, std::size_t bit) {
  std::string content = bytes(path);
  content.at(bit / 8) = static_cast<char>(content.at(bit / 8) ^ (1 << bit % 8));
  write_file(path, content);
}

std::vector<NamedTensor> tensors_of(const std::string& path) {
  const SafetensorsFile file(path);
  std::vector<NamedTensor> tensors;
  for (const auto& entry : file.entries()) tensors.push_back({entry.name, file.read(entry.name)});
  return tensors;
}

TEST_CASE("a checkpoint with one flipped bit, cut, or without a file is passed over",
          "[training]") {
  const TemporaryFolder folder;
  Json config = small_config(4);
  config["train"]["checkpoint_every"] = 2;
  train(config, folder / "whole");
  const std::string end = weights(folder / "whole", 4);
  const RunConfig parsed = parse_run_config(config);

  const auto resumes_from = [&](const std::string& run) {
    const RunFolder opened = RunFolder::open(run);
    const auto data = make_data_set(parsed.data, DataContext{});
    const ModelPtr model = build_model(parsed, data->spec());
    const auto parameters = flatten(model->named_parameters());
    const OptimizerPtr optimizer = make_optimizer(parsed.optimizer, parameters);
    std::vector<std::string> warnings;
    const auto state =
        load_newest_checkpoint(opened, {*model, *optimizer}, config::to_json(parsed), warnings);
    REQUIRE(state);
    CHECK(warnings.size() == (state->step == 4 ? 0U : 1U));
    return state->step;
  };
  CHECK(resumes_from(folder / "whole") == 4);

  for (const std::string name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string damaged = folder / "damaged";
    const auto fresh = [&] {
      fs::remove_all(damaged);
      fs::copy(folder / "whole", damaged, fs::copy_options::recursive);
      return step_folder(damaged, 4) + "/" + name;
    };
    INFO(name);
    std::string path = fresh();
    // The last byte of state.json ends the line.
    const std::size_t bits = 8 * (fs::file_size(path) - (name == "state.json" ? 1 : 0));
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t bit = i < 15 ? i * bits / 15 + i % 8 : bits - 1;
      flip_bit(path, bit);
      INFO("bit " << bit);
      CHECK(resumes_from(damaged) == 2);
      flip_bit(path, bit);
    }
    CHECK(resumes_from(damaged) == 4);
    fs::resize_file(path, fs::file_size(path) / 2);
    CHECK(resumes_from(damaged) == 2);
    fs::remove(path);
    CHECK(resumes_from(damaged) == 2);
    // The run ends where the whole one did, and the damaged checkpoint is not thrown away.
    train(config, damaged, true);
    CHECK(weights(damaged, 4) == end);
    CHECK(fs::exists(step_folder(damaged, 4) + ".damaged"));
  }
}

TEST_CASE("where no checkpoint is whole, a run does not begin anew", "[training]") {
  const TemporaryFolder folder;
  train(small_config(2), folder / "run");
  flip_bit(step_folder(folder / "run", 2) + "/model.safetensors", 4000);
  NORMA_CHECK_ERROR(train(small_config(2), folder / "run", true),
                    "none of its 1 checkpoints can be read, so it cannot go on");
  const ProcessResult evaluated = run_norma("evaluate " + folder / "run");
  CHECK(evaluated.status == 1);
  CHECK(contains(evaluated.err, "its checksum is"));
}

TEST_CASE("a checkpoint of another configuration is refused, with what differs", "[training]") {
  const TemporaryFolder folder;
  const Json config = small_config(2);
  train(config, folder / "run");
  const std::string end = weights(folder / "run", 2);
  Json other = config;
  other["optimizer"]["lr"] = 0.5;
  NORMA_CHECK_ERROR(train(other, folder / "run", true), "optimizer.lr: 0.001 -> 0.5");
  NORMA_CHECK_ERROR(train(config, folder / "run"),
                    "holds a run already; continue it with --resume");
  NORMA_CHECK_ERROR(train(config, folder / "none", true), "is not the folder of a run");
  CHECK(weights(folder / "run", 2) == end);
  // Put there from another run, or with the run's config.json changed.
  other["train"]["steps"] = 1;
  train(other, folder / "other");
  fs::remove_all(folder / "other/checkpoints");
  fs::copy(folder / "run/checkpoints", folder / "other/checkpoints", fs::copy_options::recursive);
  NORMA_CHECK_ERROR(train(other, folder / "other", true), "step-2: belongs to another config");
  NORMA_CHECK_ERROR(train(other, folder / "other", true), "train.steps: 2 -> 1");
}

TEST_CASE("the last checkpoints and the best one are kept", "[training]") {
  const TemporaryFolder folder;
  Json config = small_config(12);
  config["train"]["eval_every"] = 2;
  config["train"]["keep"] = 2;
  config["optimizer"]["lr"] = 1e-30;  // the first evaluation is the best
  train(config, folder / "run");
  CHECK(RunFolder(folder / "run").checkpoint_steps() == std::vector<std::int64_t>{2, 10, 12});
  CHECK(contains(run_norma("evaluate " + folder / "run").out, "checkpoint of step 2"));
  config["train"]["keep"] = 0;
  train(config, folder / "none");
  CHECK(RunFolder(folder / "none").checkpoint_steps().empty());
}

TEST_CASE("weights from a file: names and shapes must fit, and a kill loses nothing",
          "[training]") {
  const TemporaryFolder folder;
  train(small_config(3), folder / "donor");
  const std::string donor = step_folder(folder / "donor", 3) + "/model.safetensors";
  const auto start = [&](const std::string& init, const std::string& out, bool resume = false) {
    Trainer trainer(parse_run_config(small_config(3)),
                    {.out = out, .resume = resume, .init = init, .quiet = true});
    return trainer.run();
  };
  (void)start(donor, folder / "run");
  CHECK(bytes(step_folder(folder / "run", 0) + "/model.safetensors") == bytes(donor));

  std::vector<NamedTensor> tensors = tensors_of(donor);
  for (NamedTensor& t : tensors) {
    if (t.name == "1.bias") t.name = "1.offset";
    if (t.name == "1.weight") t.tensor = Tensor::zeros({4, 16});
  }
  write_safetensors(folder / "unfit.safetensors", tensors);
  const std::string message =
      error_of([&] { (void)start(folder / "unfit.safetensors", folder / "unfit"); });
  CHECK(contains(message, "unfit.safetensors: the tensors do not fit:"));
  CHECK(contains(message, "1.weight: expected shape (16, 4); got (4, 16)"));
  CHECK(contains(message, "1.bias: not in the file"));
  CHECK(contains(message, "1.offset: in the file, but not asked for"));
  CHECK_FALSE(fs::exists(folder / "unfit"));
  NORMA_CHECK_ERROR(start(donor, folder / "run", true), "give one of them");
}

TEST_CASE("before the first evaluation the newest checkpoint counts, and none as the best",
          "[training]") {
  const TemporaryFolder folder;
  train(small_config(3), folder / "donor");
  Json config = small_config(3);
  for (const int keep : {1, 3}) {
    config["train"]["keep"] = keep;
    const std::string run = folder / std::to_string(keep);
    Trainer trainer(parse_run_config(config),
                    {.out = run,
                     .init = step_folder(folder / "donor", 3) + "/model.safetensors",
                     .quiet = true,
                     .until = 2});
    CHECK(trainer.run().status == RunStatus::interrupted);
    const std::vector<std::int64_t> steps = RunFolder(run).checkpoint_steps();
    CHECK(steps == (keep == 1 ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{0, 2}));
    CHECK(FinishedRun(run).step() == 2);
  }
}

TEST_CASE(
    "weights are read past a damaged checkpoint, with a warning, unless its step is asked for",
    "[training]") {
  const TemporaryFolder folder;
  Json config = small_config(4);
  config["train"]["checkpoint_every"] = 2;
  train(config, folder / "run");
  const std::string run = folder / "run", newest = step_folder(run, 4);
  const auto evaluates = [&](std::int64_t step) {
    const ProcessResult result = run_norma("evaluate " + run);
    INFO(result.err);
    CHECK(result.status == 0);
    CHECK(contains(result.out, fmt::format("checkpoint of step {}", step)));
    CHECK(contains(result.err, "warning: " + newest + " is damaged and passed over: "));
  };
  for (const std::string name : {"state.json", "model.safetensors"}) {
    INFO(name);
    const std::string path = newest + "/" + name, whole = bytes(path);
    fs::resize_file(path, whole.size() / 2);
    evaluates(2);
    NORMA_CHECK_ERROR(FinishedRun(run, 4), name);
    write_file(path, whole);
  }
  // A whole checkpoint gives no warning.
  CHECK(run_norma("evaluate " + run).err.find("warning") == std::string::npos);
  // Nothing is left to read.
  for (const int step : {2, 4}) fs::resize_file(step_folder(run, step) + "/state.json", 9);
  NORMA_CHECK_ERROR(FinishedRun(run), "none of its 2 checkpoints can be read");
}

TEST_CASE("a best step without a checkpoint: the newest one is read", "[training]") {
  // With a rate of 0 every evaluation is as good as the first, that of step 1.
  const TemporaryFolder folder;
  Json config = small_config(4);
  config["optimizer"]["lr"] = 0.0;
  config["train"]["eval_every"] = 1;
  config["train"]["checkpoint_every"] = 2;
  train(config, folder / "run");
  const std::string run = folder / "run";
  REQUIRE_FALSE(fs::exists(step_folder(run, 1)));
  const ProcessResult result = run_norma("evaluate " + run);
  INFO(result.err);
  CHECK(result.status == 0);
  CHECK(contains(result.out, "checkpoint of step 4"));
  CHECK_FALSE(contains(result.err, "warning"));
}

TEST_CASE("inspect: a pipe, a folder or a device is refused, and nothing waits", "[cli]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto inspect = [](const std::string& path) {
    const ProcessResult result = run_shell("timeout 20 " + norma_program() + " inspect " + path);
    CHECK(result.status == 1);
    return result.err;
  };
  CHECK(contains(inspect(folder / "pipe"), "cannot be read: it is a pipe or a device"));
  CHECK(contains(inspect("/dev/zero"), "cannot be read: it is a pipe or a device"));
  CHECK(contains(inspect(folder.path()), "cannot be read: it is a folder"));
}

TEST_CASE("the state of the checkpoint that is loaded is read once", "[training]") {
  const TemporaryFolder folder;
  train(small_config(4), folder / "run");
  const int watch = inotify_init1(IN_NONBLOCK);
  REQUIRE(watch >= 0);
  const std::string state = step_folder(folder / "run", 4) + "/state.json";
  // With the closing between them, two openings are not told as one.
  REQUIRE(inotify_add_watch(watch, state.c_str(), IN_OPEN | IN_CLOSE_NOWRITE) >= 0);
  CHECK(FinishedRun(folder / "run").step() == 4);
  std::array<inotify_event, 64> events{};  // without names, since it is a file that is watched
  const auto bytes_read = ::read(watch, events.data(), sizeof(events));
  ::close(watch);
  REQUIRE(bytes_read > 0);
  const auto count = bytes_read / static_cast<std::ptrdiff_t>(sizeof(inotify_event));
  CHECK(std::count_if(events.begin(), events.begin() + count,
                      [](const inotify_event& e) { return (e.mask & IN_OPEN) != 0; }) == 1);
}

}  // namespace
}  // namespace norma::test
