#include <cmath>

#include "apps/bench/compare.h"
#include "apps/bench/machine.h"
#include "apps/bench/measure.h"
#include "apps/bench/process.h"
#include "apps/bench/workloads.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"

namespace norma::bench {
namespace {

const Result kResult{.framework = "torch",
                     .version = "2.13.0",
                     .workload = "mlp",
                     .threads = 2,
                     .params = 670,
                     .ms_min = 2.75,
                     .ms_median = 3.5,
                     .steps = 7,
                     .peak_rss_mib = 300.5};

TEST_CASE("a result travels as the peer's line of JSON", "[apps]") {
  const std::string line = to_json_line(kResult);
  CHECK(line ==
        R"({"framework":"torch","version":"2.13.0","workload":"mlp","threads":2,"params":670,)"
        R"("ms_min":2.75,"ms_median":3.5,"steps":7,"peak_rss_mib":300.5})");
  CHECK(to_json_line(from_json_line(line)) == line);
  NORMA_CHECK_ERROR(from_json_line("{}"), "has no \"framework\"");
  NORMA_CHECK_ERROR(from_json_line("mlp 3.5"), "expected a line of JSON; got \"mlp 3.5\"");
  NORMA_CHECK_ERROR(from_json_line(R"({"framework":3})"), "\"framework\" is of another type");
  Result none = kResult;
  none.ms_median = 0;
  NORMA_CHECK_ERROR(from_json_line(to_json_line(none)), "expected times above 0");
}

TEST_CASE("a process gives its output, or an error", "[apps]") {
  CHECK(run_process({"printf", "a\\nb"}) == "a\nb");
  NORMA_CHECK_ERROR(run_process({"sh", "-c", "exit 3"}), "sh ended with status 3");
  NORMA_CHECK_ERROR(run_process({"sh", "-c", "kill -9 $$"}), "was ended by signal 9");
  NORMA_CHECK_ERROR(run_process({"/nowhere/python"}), "cannot start /nowhere/python");
  CHECK(own_program().find("norma_test") != std::string::npos);
}

TEST_CASE("bench tells what is wrong with its arguments, and with the peer", "[apps]") {
  const auto check = [](const std::string& arguments, int status, const char* text) {
    const auto result = test::run_norma("bench " + arguments);
    INFO(arguments << ": " << result.err);
    CHECK(result.status == status);
    CHECK(result.out.empty());
    CHECK(test::contains(result.err, text));
  };
  check("ops:foo", 2, "unknown op \"ops:foo\"; known: ops:layer_norm");
  check("gpt-bay", 2, "\"gpt-baby\"");
  check("ops:gelu --json", 2, "--json: ops and scaling print tables");
  check("scaling --here", 2, "--here: ops and scaling print tables");
  check("mlp-small --compile", 2, "give --against-torch");
  check("mlp-small --here --against-torch sh x", 2, "leave out --here, or --against-torch");
  const std::string quick = "mlp-small --seconds 0.001 --threads 1 --against-torch ";
  check(quick + "/nowhere/python x", 1, "cannot start /nowhere/python");
  check(quick + "echo x", 1, "The peer was: echo x --threads 1 --seconds 0.001 --only mlp-small");
}

TEST_CASE("the workloads are those of the peer", "[apps]") {
  // Parameters of the peer's models (torch 2.13.0), and arithmetic by hand: 6 x parameters x
  // samples for matrices, 4 x where the data need no gradient.
  CHECK(workloads().size() == 9);
  const auto flops = [](const char* name) { return find_workload(name).flops; };
  CHECK(flops("mlp") == 128 * (4.0 * 784 * 512 + 6.0 * 512 * 512 + 6.0 * 512 * 10));
  CHECK(flops("cnn-bn") == flops("cnn-gn"));
  CHECK(flops("gpt2-124m") == Approx(6.0 * 256 * 123.5e6).epsilon(0.01));
  NORMA_CHECK_ERROR(find_workload("gpt-bay"), "\"gpt-baby\"");
  const Workload half = find_workload("deep:layers=32,batch=4,norm=rms_norm");
  CHECK(half.batch == 4);
  CHECK(half.flops < 0.3 * flops("deep"));
  CHECK(test::contains(half.model, "\"norm\":\"rms_norm\""));
  NORMA_CHECK_ERROR(find_workload("deep:depth=3"), "expected layers=N");
}

TEST_CASE("a workload trains, with the peer's parameters", "[apps]") {
  const Result small = measure(find_workload("mlp-small"), 0.01);
  CHECK(small.params == 55306);  // torch 2.13.0
  CHECK(small.steps >= 5);
  CHECK(small.ms_min > 0);
  CHECK(small.ms_median >= small.ms_min);
  CHECK(small.peak_rss_mib > 1);
  CHECK(measure(find_workload("gpt-nano"), 0.01).params == 809856);  // torch 2.13.0
}

TEST_CASE("the table shows shares and ratios", "[apps]") {
  Comparison row{kResult, kResult};
  row.own.framework = "norma";
  row.own.ms_median = 1.75;
  row.gemm_rate = 469.5;  // its 410.8 million operations take 1.75 ms at half of that
  CHECK(row.ratio() == 0.5);
  const std::string table = to_table({row});
  CHECK(test::contains(table, "mlp"));
  CHECK(test::contains(table, "  0.50  time <= 0.65 held, MiB <= "));
  CHECK(test::contains(table, "geometric mean of the ratios: 0.50"));
  row.own.ms_median = 7;
  CHECK(test::contains(to_table({row}), "  2.00  time <= 0.65 missed"));
  CHECK(test::contains(table, "   50%  |"));
  CHECK(test::contains(table, "(470 to 470 GFLOP/s)"));
  CHECK(test::contains(table, "torch 2.13.0"));
}

TEST_CASE("in turns, each counts with its least", "[apps]") {
  std::vector<std::size_t> calls;
  const double values[] = {5, 2, 3, 7, 4, 1, 6, 8, 9, 3};
  const std::vector<double> least = least_in_turns(2, [&](std::size_t i) {
    calls.push_back(i);
    return values[calls.size() - 1];
  });
  CHECK(calls == std::vector<std::size_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(least == std::vector<double>{3, 1});
}

TEST_CASE("the machine's rate is a number above zero", "[apps]") {
  CHECK(measure_gemm_rate(0.02) > 0);
  std::vector<std::int64_t> calls;
  int others = 0;
  const Medians medians = median_seconds(
      3, 0, [&](std::int64_t i) { calls.push_back(i); }, {}, [&] { ++others; });
  CHECK(calls == std::vector<std::int64_t>{0, 1, 2, 0, 1, 2});
  CHECK(others == 6);
  CHECK((medians.call >= 0 && medians.beside >= 0));
}

}  // namespace
}  // namespace norma::bench
