#include "apps/training/progress.h"

#include <limits>

#include "tests/apps/training/support.h"
#include "tests/support/process.h"

namespace norma::test {
namespace {

TEST_CASE("durations", "[training]") {
  CHECK(duration_text(0) == "0:00");
  CHECK(duration_text(59.4) == "0:59");
  CHECK(duration_text(59.6) == "1:00");
  CHECK(duration_text(65) == "1:05");
  CHECK(duration_text(7390) == "2:03:10");
  CHECK(duration_text(-1) == "?");
  CHECK(duration_text(1e300) == "?");
  CHECK(duration_text(std::numeric_limits<double>::infinity()) == "?");
  CHECK(duration_text(std::numeric_limits<double>::quiet_NaN()) == "?");
}

TEST_CASE("progress goes to stderr in plain lines where that is no terminal", "[cli]") {
  const TemporaryFolder folder;
  write_file(folder / "config.json", shift_config(3).dump());
  const std::string train = "train " + folder / "config.json";
  const ProcessResult shown = run_norma(train + " --out " + folder / "a");
  CHECK(shown.status == 0);
  CHECK(contains(shown.err, "t  step 3/3  loss "));
  CHECK(contains(shown.err, "t  step 3  validation loss "));
  CHECK_FALSE(contains(shown.err, "\r"));
  CHECK_FALSE(contains(shown.out, "step 3/3"));
  CHECK(run_norma(train + " --quiet --out " + folder / "b").err.empty());
}

TEST_CASE("a second run of a name says where it goes", "[cli]") {
  const TemporaryFolder folder;
  write_file(folder / "config.json", shift_config(2).dump());
  const std::string train =
      "cd " + folder.path() + " && " + norma_program() + " train config.json --quiet";
  // A warning is seen though the run be quiet.
  const std::string warning =
      "warning: schedule: the warm-up of 3 steps is longer than the run of 2; lr 0.001 is never "
      "reached\n";
  CHECK(run_shell(train).err == warning);
  CHECK(run_shell(train).err ==
        warning + "runs/t is taken by another run; this one goes to runs/t-2\n");
  const ProcessResult version = run_norma("--version");
  CHECK(version.status == 0);
  CHECK(version.out.starts_with("norma "));
}

}  // namespace
}  // namespace norma::test
