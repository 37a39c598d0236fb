// The conformance cases of tests/cases, and that a wrong number is found.
#include "apps/conformance/conformance.h"

#include <unistd.h>

#include <filesystem>

#include "core/file.h"
#include "core/instructions.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

namespace norma::test {
namespace {
namespace fs = std::filesystem;

const std::string kCases = test::source_dir() + "/tests/cases";

// The failure of the only case in `text`, written to a file of its own.
std::string failure_of(const std::string& text) {
  const std::string path =
      (fs::temp_directory_path() / ("norma_case" + std::to_string(::getpid()) + ".json")).string();
  write_file(path, text);
  const auto results = run_cases({path});
  fs::remove(path);
  REQUIRE(results.size() == 1);
  return results[0].failure;
}

TEST_CASE("the shipped conformance cases pass", "[conformance]") {
  const auto results = run_cases({kCases});
  CHECK(results.size() > 100);
  for (const CaseResult& r : results) {
    INFO(r.file << ": " << r.name);
    CHECK(r.failure == "");
    CHECK(r.note == "");
  }
}

// The last of three cases sees what the second has left: scratch memory full of NaN.
TEST_CASE("attention reads no scratch memory, with any instruction set", "[conformance]") {
  for (const std::string& name : instruction_sets()) {
    INFO(name);
    set_instruction_set(name);
    for (const CaseResult& r : run_cases({kCases + "/attention_window.json"})) {
      INFO(r.name);
      CHECK(r.failure == "");
    }
  }
  set_instruction_set(instruction_sets().front());
}

TEST_CASE("a case picks by its name", "[conformance]") {
  CHECK(run_cases({kCases}, "adam").size() == 1);
  CHECK(run_cases({kCases}, "adam*").size() > 2);
  NORMA_CHECK_ERROR(run_cases({"/nowhere"}), "/nowhere: does not exist");
}

TEST_CASE("a wrong number, shape or error is found, and where", "[conformance]") {
  const std::string head = R"({"name": "x", "source": "by hand", )";
  CHECK(failure_of(head + R"("kind": "layer", "layer": "relu", "inputs": [{"dtype": "f32", "shape":
    [2], "data": [-1, 2]}], "expect": {"output": {"dtype": "f32", "shape": [2], "data": [0, 2]}}})") ==
        "");
  CHECK(contains(failure_of(head + R"("kind": "layer", "layer": "relu", "inputs": [{"dtype": "f32",
    "shape": [2], "data": [-1, 2]}], "expect": {"output": {"dtype": "f32", "shape": [2],
    "data": [0, 2.001]}}})"),
                 "output[1]: got 2, expected 2.00099993"));
  CHECK(contains(failure_of(head + R"("kind": "schedule", "schedule": {"type": "linear"}, "lr": 1,
    "total_steps": 10, "steps": [0, 5], "expect": {"lr": [1, 0.6]}})"),
                 "lr[1]: got 0.5, expected 0.6"));
  CHECK(contains(
      failure_of(head + R"("kind": "config", "config": {"name": "x"}, "expect_error": []})"),
      "expected no error; got"));
  CHECK(contains(failure_of(head + R"("kind": "loss", "loss": "mse", "inputs": [{"dtype": "f32",
    "shape": [1], "data": [1]}, {"dtype": "f32", "shape": [1], "data": [1]}], "expect_error": ["no"]})"),
                 "expected an error; got none"));
  CHECK(contains(failure_of(head + R"("kind": "model", "model": {"type": "sequential", "layers":
    [{"type": "linear", "out": 1}]}, "loss": "mse", "inputs": [{"dtype": "f32", "shape": [1, 2],
    "data": [1, 2]}], "targets": {"dtype": "f32", "shape": [1, 1], "data": [0]},
    "expect": {"grad_norms": {"nowhere": 1}}})"),
                 "gradient norm of nowhere: does not exist"));
  CHECK(contains(failure_of(head + R"("kind": "toy"})"), "unknown kind \"toy\""));
}

}  // namespace
}  // namespace norma::test
