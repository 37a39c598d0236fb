// The shell around the verbs: exit statuses, what goes to stdout and what to stderr.
#include "core/instructions.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace norma {
namespace {

using test::contains;
using test::run_norma;

TEST_CASE("help goes to stdout, wrong usage to stderr with status 2") {
  const auto help = run_norma("--help");
  CHECK(help.status == 0);
  CHECK(contains(help.out, "version"));
  CHECK(help.err.empty());

  const auto nothing = run_norma("");
  CHECK(nothing.status == 2);
  CHECK(nothing.out.empty());
  CHECK(contains(nothing.err, "version"));

  const auto unknown = run_norma("verison");
  CHECK(unknown.status == 2);
  CHECK(unknown.err == "norma: unknown verb \"verison\"; the nearest known name is \"version\"\n");

  const auto option = run_norma("train x.json --sett a=1");
  CHECK(option.status == 2);
  CHECK(contains(option.err, "unknown option \"--sett\"; the nearest known name is \"--set\"\n"));
  CHECK(contains(run_norma("version --nonsense=1").err, "\"--nonsense\"; known: --help, "));
  CHECK(contains(run_norma("version x y").err, "takes no further arguments; got x y\n"));
  const auto alone = run_norma("--verison");
  CHECK(alone.status == 2);
  CHECK(alone.err.rfind("norma: unknown option \"--verison\"; the nearest known name is", 0) == 0);
  CHECK(run_norma("inspect").status == 2);
}

TEST_CASE("help is a verb too") {
  CHECK(run_norma("help").out == run_norma("--help").out);
  CHECK(run_norma("help").status == 0);
  CHECK(run_norma("help train").out == run_norma("train --help").out);
  CHECK(contains(run_norma("help train").out, "--resume"));
  const auto unknown = run_norma("help trian");
  CHECK(unknown.status == 2);
  CHECK(contains(unknown.err, "unknown verb \"trian\"; the nearest known name is \"train\""));
}

TEST_CASE("a message says its verb once") {
  const auto bench = run_norma("bench deep:layers=x --here");
  CHECK(bench.status == 2);
  CHECK(contains(bench.err, "norma bench: expected layers=N"));
  const TemporaryFolder folder;
  const auto check = run_norma("check " + folder.path());
  CHECK(check.status == 1);
  CHECK(!contains(check.err, "check: check"));
}

TEST_CASE("--threads goes with every verb, before it too") {
  CHECK(run_norma("--threads 3 version").out == run_norma("version --threads 3").out);
  const auto wrong_verb = run_norma("--threads 3 verison");
  CHECK(wrong_verb.status == 2);
  CHECK(contains(wrong_verb.err, "the nearest known name is \"version\""));
  const auto three = run_norma("version --threads 3");
  CHECK(three.status == 0);
  CHECK(contains(three.out, "threads   3\n"));
  for (const char* wrong : {"0", "-1", "many", "1000000"}) {
    INFO(wrong);
    const auto result = run_norma(std::string("version --threads ") + wrong);
    CHECK(result.status == 2);
    CHECK(contains(result.err, "--threads"));
  }
}

TEST_CASE("version says what the program is built with") {
  const auto result = run_norma("version");
  CHECK(result.status == 0);
  for (const char* part : {"norma     ", "compiler  ", "OpenBLAS  ", "Highway   ", "OpenMP    "}) {
    INFO(part);
    CHECK(contains(result.out, part));
  }
}

TEST_CASE("NORMA_INSTRUCTIONS chooses among the machine's instruction sets") {
  const std::string least = instruction_sets().back();
  const auto chosen =
      test::run_shell("NORMA_INSTRUCTIONS=" + least + " " + test::norma_program() + " version");
  CHECK(chosen.status == 0);
  CHECK(contains(chosen.out, "Highway   " + least + " (of "));
  const auto wrong =
      test::run_shell("NORMA_INSTRUCTIONS=avx9 " + test::norma_program() + " version");
  CHECK(wrong.status == 2);
  CHECK(
      contains(wrong.err, "NORMA_INSTRUCTIONS: expected an instruction set that this machine has"));
  CHECK(contains(wrong.err, "got \"avx9\"; leave it out for the best"));
}

TEST_CASE("a failure while running has status 1") {
  const auto result = run_norma("inspect /nowhere.safetensors");
  CHECK(result.status == 1);
  CHECK(contains(result.err, "norma inspect: /nowhere.safetensors: "));
  CHECK(result.out.empty());
  CHECK(run_norma("version >/dev/full").status == 1);
}

TEST_CASE("validate tells all problems of all files") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  };
  const std::string good = write("good.json", R"({"data": "shift", "train": {"steps": 1},
      "model": {"type": "transformer", "layers": 1, "width": 8}})");
  const std::string bad = write("bad.json", R"({"bacth": 1, "optimizer": "adamv"})");

  const auto both = run_norma("validate " + good + " " + bad);
  CHECK(both.status == 2);
  CHECK(both.out.rfind(good + ": valid, hash ", 0) == 0);
  for (const char* part : {"bad.json: 5 problems\n", "\n  bacth: ", "optimizer.type", "adamw",
                           "\n  data: missing", "\n  model: missing", "\n  train: missing"}) {
    INFO(part << " in " << both.err);
    CHECK(contains(both.err, part));
  }
  CHECK(run_norma("validate " + good).status == 0);
  const auto set =
      run_norma("validate " + good + " --set optimizer=sgd --resolved --set train.batch=9");
  CHECK(set.status == 0);
  CHECK(contains(set.out, "\"batch\": 9"));
  CHECK(contains(set.out, "\"momentum\""));
  CHECK(run_norma("validate /nowhere.json").status == 2);
  // The schema, which stands beside configurations.
  const auto schema = run_norma("validate " + test::source_dir() + "/configs/schema.json " + good);
  CHECK(schema.status == 0);
  CHECK(contains(schema.err,
                 "note: " + test::source_dir() + "/configs/schema.json: the JSON Schema"));
  CHECK(schema.out.rfind(good + ": valid, hash ", 0) == 0);
  const auto train = run_norma("train " + test::source_dir() + "/configs/schema.json");
  CHECK(train.status == 2);
  CHECK(contains(train.err, "configs/schema.json: is the JSON Schema"));
  CHECK(run_norma("validate " + good + " --set train.batch").status == 2);
}

TEST_CASE("list prints the families, and schema the schema") {
  const auto all = run_norma("list");
  CHECK(all.status == 0);
  for (const char* name : {"layer_norm", "adamw", "cosine", "shift", "deepnorm", "cross_entropy"}) {
    INFO(name);
    CHECK(contains(all.out, name));
  }
  const auto one = run_norma("list schedule");
  CHECK(contains(one.out, "cosine"));
  CHECK(!contains(one.out, "adamw"));
  const auto none = run_norma("list shedule");
  CHECK(none.status == 2);
  CHECK(contains(none.err, "\"schedule\""));
  CHECK(contains(run_norma("schema").out, "json-schema.org/draft/2020-12"));
  CHECK(contains(run_norma("schema --markdown").out, "### `adamw`"));
}

}  // namespace
}  // namespace norma
