// The shell around the verbs: exit statuses, what goes to stdout and what to stderr.
#include "tests/support/catch.h"
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

  CHECK(run_norma("version --nonsense").status == 2);
  CHECK(run_norma("--nonsense").status == 2);
  CHECK(run_norma("inspect").status == 2);
}

TEST_CASE("--threads goes with every verb") {
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

TEST_CASE("a failure while running has status 1") {
  const auto result = run_norma("inspect /nowhere.safetensors");
  CHECK(result.status == 1);
  CHECK(contains(result.err, "norma inspect: /nowhere.safetensors: "));
  CHECK(result.out.empty());
  CHECK(run_norma("version >/dev/full").status == 1);
}

}  // namespace
}  // namespace norma
