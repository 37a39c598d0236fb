// Runs on other ranks. What needs mpirun is left out, with a message, where it is missing.
#include "apps/study/remote.h"

#include <filesystem>
#include <fstream>

#include "apps/study/archive.h"
#include "tests/apps/study/support.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"

namespace norma::study {
namespace {

namespace fs = std::filesystem;
using norma::test::run_shell;

TEST_CASE("the files of a run go as one text", "[study]") {
  const TemporaryFolder folder;
  const std::string run = folder / "a", other = folder / "b";
  fs::create_directories(run + "/checkpoints/step-3");
  const std::string bytes("\0\n with 7 \n\xff", 12);
  write_file(run + "/checkpoints/step-3/model 1.bin", bytes);
  write_file(run + "/empty", "");
  write_file(run + ".json", "{}");
  const std::string text = pack_run(run);
  fs::create_directories(other);
  write_file(other + "/old", "gone");
  unpack_run(text, other);
  CHECK(read_file(other + "/checkpoints/step-3/model 1.bin") == bytes);
  CHECK(read_file(other + "/empty").empty());
  CHECK(read_file(other + ".json") == "{}");
  CHECK_FALSE(fs::exists(other + "/old"));
  CHECK_FALSE(fs::exists(other + ".log"));
  CHECK(pack_run(other).size() == text.size());
  for (std::size_t cut = 1; cut < text.size(); cut += 7) {
    const std::string part = text.substr(0, cut);
    // At the end of a file the rest is not missed.
    try {
      unpack_run(part, folder / "c");
    } catch (const Error& e) {
      CHECK(norma::test::contains(e.what(), "came in part"));
    }
  }
  NORMA_CHECK_ERROR(unpack_run("/../x 1\ny", other), "a file is called /../x");
  CHECK(read_file(other + "/empty").empty());  // what was there stays
}

const std::string kMpirun =
    "mpirun --allow-run-as-root --oversubscribe -n 2 " + norma::test::norma_program() + " study ";

bool no_mpirun() {
  if (Ranks::available() && run_shell("command -v mpirun").status == 0) return false;
  WARN("left out: no mpirun, or a build without MPI");
  return true;
}

TEST_CASE("the ranks of mpirun give the same table as jobs", "[study][mpi][slow]") {
  if (no_mpirun()) return;
  const TemporaryFolder folder;
  Json study = config::parse_json(test::kStudy);
  study["arms"]["longer"] = config::parse_json(R"({"optimizer.lr": 0.001, "train.steps": 30})");
  std::ofstream(folder / "study.json") << study.dump();
  const std::string file = folder / "study.json";
  const auto ranks = run_shell(kMpirun + file + " --quiet --out " + (folder / "ranks"));
  INFO(ranks.err);
  CHECK(ranks.status == 0);
  const auto jobs =
      norma::test::run_norma("study " + file + " --quiet --jobs 2 --out " + (folder / "jobs"));
  CHECK(jobs.status == 0);
  CHECK(read_file(folder / "ranks/summary.csv") == read_file(folder / "jobs/summary.csv"));
  CHECK(test::lines(folder / "ranks/ledger.jsonl").size() == 6);
  // Once more: all is done.
  CHECK(run_shell(kMpirun + file + " --out " + (folder / "ranks")).status == 0);
  CHECK(test::lines(folder / "ranks/ledger.jsonl").size() == 6);
}

TEST_CASE("a wrong study ends all ranks", "[study][mpi][slow]") {
  if (no_mpirun()) return;
  const TemporaryFolder folder;
  std::ofstream(folder / "study.json") << R"({"name": "x"})";
  const auto wrong = run_shell("timeout 60 " + kMpirun + (folder / "study.json"));
  CHECK(wrong.status == 2);
  CHECK(norma::test::contains(wrong.err, "base: missing"));
}

TEST_CASE("several processes of a build without MPI are an error", "[study]") {
  if (Ranks::available()) return;
  const auto wrong =
      run_shell("OMPI_COMM_WORLD_SIZE=2 " + norma::test::norma_program() + " study nowhere.json");
  CHECK(wrong.status == 1);
  CHECK(norma::test::contains(wrong.err, "was built without MPI"));
}

}  // namespace
}  // namespace norma::study
