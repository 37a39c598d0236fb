// The verbs that read data: predict, generate of lines and of answers, validate.
#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace norma {
namespace {

using test::contains;
using test::run_norma;

TEST_CASE(
    "predict prints a line of CSV for every sample; a table is found beside its configuration") {
  const TemporaryFolder folder;
  std::string table = "x,kind\n";
  for (int i = 0; i < 40; ++i) {
    table += i % 2 == 0 ? "-1,\"cold, wet\"\n" : "1,warm\n";
  }
  write_file(folder / "t.csv", table);
  write_file(folder / "run.json", R"({"data": {"type": "csv", "path": "t.csv"},
    "model": {"type": "sequential", "layers": [{"type": "linear", "out": 2}]},
    "optimizer": {"type": "adam", "lr": 0.1}, "train": {"epochs": 10, "batch": 8}})");
  const std::string run = folder / "run";
  CHECK(run_norma("train " + (folder / "run.json") + " --quiet --out " + run).status == 0);
  write_file(folder / "in.csv", "x\n1\n-1\n");
  const auto says = run_norma("predict " + run + " " + (folder / "in.csv"));
  CHECK(says.status == 0);
  CHECK(contains(says.out, "kind,probability\nwarm,0.9"));
  CHECK(contains(says.out, "\n\"cold, wet\",0.9"));
  write_file(folder / "in.csv", "y\n1\n");
  const auto wrong = run_norma("predict " + run + " " + (folder / "in.csv"));
  CHECK(wrong.status == 1);
  CHECK(
      contains(wrong.err, "expected the columns of the training: x; missing here: x; unknown: y"));
}

TEST_CASE("generate ends a line by itself, and needs no data") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "ab\n";
  write_file(folder / "x.txt", lines);
  write_file(folder / "run.json", R"({"data": {"type": "lines", "path": "x.txt"},
    "model": {"type": "transformer", "layers": 1, "width": 16, "heads": 2},
    "optimizer": {"type": "adamw", "lr": 1e-2}, "train": {"steps": 40, "batch": 8}})");
  const std::string run = folder / "run";
  CHECK(run_norma("train " + (folder / "run.json") + " --quiet --out " + run).status == 0);
  std::filesystem::remove(folder / "x.txt");
  CHECK(run_norma("generate " + run + " --temperature 0").out == "ab\n");
  CHECK(run_norma("generate " + run + " a --temperature 0").out == "ab\n");
  const auto gone = run_norma("evaluate " + run);
  CHECK(gone.status == 1);
  CHECK(contains(gone.err, "data.path: there is no file " + (folder / "x.txt")));
}

TEST_CASE("generate takes the checkpoint that is asked for") {
  const TemporaryFolder folder;
  write_file(folder / "run.json", R"({"data": {"type": "lines", "path": "x.txt"},
    "model": {"type": "transformer", "layers": 1, "width": 16, "heads": 2},
    "optimizer": {"type": "adamw", "lr": 1e-2},
    "train": {"steps": 40, "batch": 8, "checkpoint_every": 1, "keep": 40}})");
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "abcd\n";
  write_file(folder / "x.txt", lines);
  const std::string run = folder / "run";
  CHECK(run_norma("train " + (folder / "run.json") + " --quiet --out " + run).status == 0);
  CHECK(run_norma("generate " + run + " --temperature 0 --step 40").out == "abcd\n");
  CHECK(run_norma("generate " + run + " --temperature 0 --step 1").out != "abcd\n");
  const auto none = run_norma("generate " + run + " --step 41");
  CHECK(none.status == 1);
  CHECK(contains(none.err, "has no checkpoint of step 41"));
}

TEST_CASE("a run is named by its folder where a configuration is asked for") {
  const TemporaryFolder folder;
  write_file(folder / "x.txt", "ab\nab\nab\nab\nab\nab\nab\nab\nab\nab\nab\nab\n");
  write_file(folder / "run.json", R"({"data": {"type": "lines", "path": "nowhere.txt"},
    "model": {"type": "transformer", "layers": 1, "width": 8},
    "train": {"steps": 4, "batch": 4}})");
  const std::string run = folder / "run";
  const std::string train = "train " + (folder / "run.json") + " --quiet --out " + run;
  CHECK(run_norma(train + " --until 2 --set data.path=" + (folder / "x.txt")).status == 0);
  for (const std::string verb : {"validate", "explain", "probe --no-curvature"}) {
    const auto result = run_norma(verb + " " + run);
    INFO(verb << ": " << result.err);
    CHECK(result.status == 0);
  }
  // What was set is the run's, and not the file's: told before the data are looked for.
  const auto other = run_norma(train + " --resume");
  CHECK(other.status == 2);
  CHECK(contains(other.err, "was started with another configuration:\ndata.path: "));
  CHECK(contains(other.err, "`norma train " + run + " --resume` goes on with the run's own"));
  const auto resumed = run_norma("train " + run + " --resume --quiet");
  INFO(resumed.err);
  CHECK(resumed.status == 0);
  CHECK(contains(resumed.out, run + ": completed after 4 steps"));
  // By the configuration in its folder too; and without --resume a folder is no configuration.
  CHECK(contains(run_norma("train " + run + "/config.json --resume --quiet").out,
                 run + ": completed after 4 steps"));
  const auto forgotten = run_norma("train " + run);
  CHECK(forgotten.status == 2);
  CHECK(contains(forgotten.err, "`norma train " + run + " --resume` goes on with it"));

  const auto none = run_norma("probe " + folder.path());
  CHECK(none.status == 2);
  CHECK(contains(none.err, folder.path() + ": is a folder, and neither that of a run"));
  const auto tensors = run_norma("inspect " + run);
  CHECK(tensors.status == 1);
  CHECK(contains(tensors.err,
                 run + ": cannot be read: it is a folder; give a safetensors file, for instance " +
                     run + "/checkpoints/step-4/model.safetensors"));
  const auto init = run_norma(train + "2 --init " + run + " --set data.path=" + (folder / "x.txt"));
  CHECK(init.status == 2);
  CHECK(contains(init.err, "it is a folder; give a safetensors file"));
}

TEST_CASE("a configuration that is wrong has status 2, whichever verb finds it, and where") {
  const TemporaryFolder folder;
  std::string table = "x,kind\n";
  for (int i = 0; i < 12; ++i) table += std::to_string(i) + (i % 2 == 0 ? ",a\n" : ",b\n");
  write_file(folder / "t.csv", table);
  write_file(folder / "run.json", R"({"data": {"type": "csv", "path": "t.csv"},
    "model": {"type": "sequential", "layers": ["batch_norm", {"type": "linear", "out": 2}]},
    "train": {"steps": 2, "batch": 4, "eval_every": 1}})");
  const auto check = [&](const std::string& verb, const std::string& set, int expected) {
    const std::string out = verb == "train" ? " --quiet --out " + (folder / "run") : "";
    const auto result = run_norma(verb + " " + (folder / "run.json") + out + set);
    INFO(verb << set << ": " << result.err);
    CHECK(result.status == expected);
    std::filesystem::remove_all(folder / "run");
  };
  for (const std::string verb : {"train", "validate", "explain", "probe"}) {
    check(verb, "", 0);
    // Found in the form, against the data, in the data, and in the first pass.
    check(verb, " --set train.batch=-1", 2);
    check(verb, " --set loss=mse", 2);
    check(verb, " --set data.path=nowhere.csv", 2);
    if (verb != "explain") check(verb, " --set train.batch=1", 2);  // which makes no pass
  }
}

TEST_CASE("validate refuses what train refuses, and knows studies") {
  const TemporaryFolder folder;
  write_file(folder / "run.json",
             R"({"data": {"type": "lines", "path": "x.txt"}, "train": {"steps": 1},
    "model": {"type": "transformer", "layers": 1, "width": 8}})");
  const auto refused = run_norma("validate " + (folder / "run.json"));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "data.path: there is no file " + (folder / "x.txt")));
  CHECK(run_norma("validate --form " + (folder / "run.json")).status == 0);
  const auto study =
      run_norma("validate " + test::source_dir() + "/configs/experiments/warmup.json");
  CHECK(study.status == 0);
  CHECK(contains(study.out, "a valid study of 4 arms and 3 seeds"));
}

}  // namespace
}  // namespace norma
