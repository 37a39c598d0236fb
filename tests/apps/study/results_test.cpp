// Verdicts, tables and the CSV.
#include "apps/study/results.h"

#include <cmath>

#include "apps/study/measures.h"
#include "tests/apps/study/support.h"
#include "tests/support/catch.h"

namespace norma::study {
namespace {

using norma::test::contains;

// Arms one and two, seeds 0 and 1, in the order of the plan: one/0, two/0, one/1, two/1.
std::vector<RunRecord> runs(double a, double b, double c, double d) {
  return {test::flat_run(a), test::flat_run(b), test::flat_run(c), test::flat_run(d)};
}

TEST_CASE("a claim holds iff it does on every seed", "[study]") {
  const Plan plan = make_plan(test::small_study(R"json([
    {"text": "One learns.", "expr": "all(final(\"one\") < 0.5)"},
    {"text": "Seed by seed, without all().", "expr": "final(\"one\") < final(\"two\")"}])json"));
  const StudyResults good = judge(plan, runs(0.2, 4.1, 0.3, 4.2));
  CHECK(good.claims[0].held == true);
  CHECK(good.claims[1].held == true);
  CHECK(good.as_expected());
  const StudyResults bad = judge(plan, runs(0.2, 4.1, 0.6, 4.2));
  CHECK(bad.claims[0].held == false);
  CHECK(bad.claims[1].held == true);
  CHECK_FALSE(bad.as_expected());
  CHECK(contains(claims_text(bad), "did not hold  One learns."));
  CHECK(contains(claims_text(bad), "final(\"one\") = 0.200, 0.600"));
  CHECK(contains(claims_text(bad), "NOT the expected verdict"));
  CHECK_FALSE(contains(claims_text(good), "NOT the expected verdict"));
  CHECK(judge(plan, runs(0.2, 4.1, 0.3, 0.1)).claims[1].held == false);
}

TEST_CASE("a claim that is expected to fail is right when it does not hold", "[study]") {
  const Plan plan = make_plan(test::small_study(R"json([
    {"text": "One is worse.", "expr": "all(final(\"one\") > 1)", "expect": "fails",
     "why": "The model is too small.", "published": "3.4"}])json"));
  const StudyResults fails = judge(plan, runs(0.2, 0, 0.3, 0));
  CHECK(fails.claims[0].held == false);
  CHECK(fails.as_expected());
  CHECK(contains(claims_text(fails), "expected to fail: The model is too small."));
  CHECK(contains(claims_text(fails), "published: 3.4"));
  const StudyResults holds = judge(plan, runs(2, 0, 2, 0));
  CHECK(holds.claims[0].held == true);
  CHECK_FALSE(holds.as_expected());
}

TEST_CASE("a run without a result decides nothing, a diverged one counts as infinite", "[study]") {
  const Plan plan = make_plan(test::small_study(R"json([
    {"text": "One fails.", "expr": "all(final(\"one\") > 1)"}])json"));
  std::vector<RunRecord> some = runs(2, 1, 2, 1);
  some[2] = test::flat_run(2, Outcome::diverged);
  const StudyResults diverged = judge(plan, some);
  CHECK(diverged.claims[0].held == true);
  CHECK(diverged.as_expected());
  CHECK(contains(table_text(diverged), "diverged"));
  some[2] = test::flat_run(2, Outcome::failed);
  const StudyResults failed = judge(plan, some);
  CHECK_FALSE(failed.claims[0].held.has_value());
  CHECK(failed.claims[0].verdict() == "no result");
  CHECK(contains(claims_text(failed), "there is no result, since values are missing"));
  CHECK(contains(claims_text(failed), "start the study again"));
  CHECK_FALSE(contains(claims_text(failed), "expected verdict"));
  CHECK_FALSE(failed.as_expected());
  some[2] = test::flat_run(2);
  some[3] = RunRecord{};  // missing, though no claim needs it
  CHECK_FALSE(judge(plan, some).as_expected());
}

TEST_CASE("a run that failed to learn is a result, and is marked", "[study]") {
  const Plan plan = make_plan(test::small_study(R"json([
    {"text": "One fails.", "expr": "all(final(\"one\") > 1) and not any(diverged(\"one\"))"}])json"));
  std::vector<RunRecord> some = runs(2, 1, 2, 1);
  some[2] = test::flat_run(3, Outcome::failed_to_learn);
  const StudyResults results = judge(plan, some);
  CHECK(results.claims[0].held == true);
  CHECK(results.as_expected());
  CHECK(contains(table_text(results), "3.000 (stopped)"));
  CHECK(contains(results_csv(results), "one,1,failed_to_learn,20,3,"));
}

TEST_CASE("measures of a run", "[study]") {
  RunRecord run;
  run.outcome = Outcome::completed;
  for (int step = 1; step <= 30; ++step) {
    run.train.push_back({step,
                         step <= 10   ? 1.0
                         : step <= 20 ? 0.5
                                      : 2.0 + (step - 20),
                         1e-3, 0.1 * step});
  }
  const auto value = [&](const char* name, std::vector<double> numbers = {}) {
    return find_measure(name)->of(run, {.text = "grad.blocks.last", .numbers = numbers});
  };
  CHECK(value("final") == Approx(7.5));  // the mean of 3..12
  CHECK(value("best") == Approx(0.5));
  CHECK(value("loss", {11}) == 0.5);
  CHECK(value("grad_norm", {3}) == Approx(0.3));
  CHECK(std::isnan(value("loss", {31})));
  CHECK(std::isnan(value("eval")));
  CHECK(value("diverged") == 0);
  run.evaluations = {{10, "test", 0.9, 0.5}, {30, "test", 0.8, {}}};
  CHECK(value("eval") == 0.8);
  CHECK(std::isnan(value("accuracy")));
  run.probes = {{0, {{"grad.blocks.0", 1}, {"grad.blocks.1", 2}}}, {5, {{"grad.blocks.0", 3}}}};
  CHECK(value("probe", {0}) == 2);
  CHECK(value("probe", {5}) == 3);
  CHECK(std::isnan(value("probe", {1})));
  run.train.back().loss = kMissing;  // "nan" on record
  CHECK(std::isinf(value("final")));
  run.outcome = Outcome::failed;
  CHECK(std::isnan(value("best")));
  run.outcome = Outcome::completed;
  run.train.resize(3);  // fewer than ten
  CHECK(value("final") == 1);
}

TEST_CASE("a difference and its interval have as many places", "[study]") {
  const auto shown = [](double mean, double half) {
    Difference d;
    d.mean = mean;
    d.half_width = half;
    return shown_difference(d);
  };
  CHECK(shown(-3.7e-4, 0.0021) == "-0.000 ± 0.002");
  CHECK(shown(0.25, 0.0021) == "0.250 ± 0.002");
  CHECK(shown(2.3e-5, 7.1e-5) == "2.30e-05 ± 7.10e-05");
}

TEST_CASE("the table and the CSV", "[study]") {
  StudyConfig config = test::small_study();
  config.arms.value["two, \"wide\""] = config::parse_json("{}");
  CHECK_THROWS(config::parse<StudyConfig>(config::to_json(config)));  // no quotes in names
  const Plan plan = make_plan(test::small_study());
  const StudyResults results = judge(plan, runs(0.25, 4, 0.75, 4));
  CHECK(table_text(results) ==
        "final   mean    std      minus one  seed 0  seed 1\n"
        "one    0.500  0.354                  0.250   0.750\n"
        "two    4.000  0.000  3.500 ± 3.177   4.000   4.000\n");
  const std::string csv = results_csv(results);
  CHECK(contains(csv, "arm,seed,status,steps,final,best,seconds,optimizer.lr,folder\n"));
  CHECK(contains(csv, "one,0,completed,20,0.25,0.25,1,0.001,runs/one-seed-0-"));
  CHECK(contains(csv, "two,1,completed,20,4,4,1,0.002,runs/two-seed-1-"));
}

TEST_CASE("arms are compared with the reference, seed by seed", "[study]") {
  StudyConfig config = test::small_study();
  config.reference = "two";
  const Plan plan = make_plan(config);
  const std::string csv = summary_csv(judge(plan, runs(1, 4, 2, 7)));
  // The differences are -3 and -5: their deviation sqrt(2), t = 12.706 at one degree of freedom.
  CHECK(contains(csv, "arm,measure,seeds,mean,std,reference,difference,difference_low,"));
  CHECK(contains(csv, "one,final,2,1.5,0.7071067811865476,two,-4,-16.70620473617"));
  CHECK(contains(csv, "two,final,2,5.5,2.1213203435596424,two,0,0,0,\n"));
  config.seeds = {0};
  const Plan single = make_plan(config);
  const StudyResults one = judge(single, {test::flat_run(1), test::flat_run(4)});
  CHECK(contains(summary_csv(one), "one,final,1,1,,two,-3,,,\n"));  // no interval
  CHECK_FALSE(contains(table_text(one), "minus"));
  CHECK(contains(table_text(judge(plan, {test::flat_run(1), test::flat_run(4, Outcome::diverged),
                                         test::flat_run(1), test::flat_run(4)})),
                 "-     1.000   1.000\n"));
}

TEST_CASE("quantiles of Student's t", "[study]") {
  // Two-sided 95 % (and 99 %), from the tables of Abramowitz and Stegun.
  const auto [degrees, t, t99] =
      GENERATE(table<std::size_t, double, double>({{1, 12.706, 63.657},
                                                   {2, 4.303, 9.925},
                                                   {3, 3.182, 5.841},
                                                   {4, 2.776, 4.604},
                                                   {5, 2.571, 4.032},
                                                   {8, 2.306, 3.355},
                                                   {30, 2.042, 2.750},
                                                   {121, 1.980, 2.617}}));
  CHECK(student_quantile(0.95, degrees) == Approx(t).margin(6e-4));
  CHECK(student_quantile(0.99, degrees) == Approx(t99).margin(6e-4));
}

TEST_CASE("tables list measures with what they are given, under names of their own", "[study]") {
  StudyConfig config = test::small_study();
  config.measures = {"third = loss(arm, 3)", "norm = probe(arm, \"grad.whole\", 0)"};
  config.published.value = config::parse_json(R"({"norm": {"one": 7, "two": 8}})");
  const Plan plan = make_plan(config);
  std::vector<RunRecord> some = runs(1, 2, 3, 4);
  for (RunRecord& run : some) run.probes = {{0, {{"grad.whole", 2 * run.train[0].loss}}}};
  const StudyResults results = judge(plan, some);
  CHECK(table_text(results) ==
        "third   mean    std      minus one  seed 0  seed 1\n"
        "one    2.000  1.414                  1.000   3.000\n"
        "two    3.000  1.414  1.000 ± 0.000   2.000   4.000\n"
        "\n"
        "norm   mean    std      minus one  seed 0  seed 1  published\n"
        "one   4.000  2.828                  2.000   6.000      7.000\n"
        "two   6.000  2.828  2.000 ± 0.000   4.000   8.000      8.000\n");
  CHECK(contains(results_csv(results), ",steps,third,norm,best,seconds,published.norm,"));
  CHECK(column_of("loss( arm,3 )").name == "loss( arm,3 )");
  CHECK(column_of("norm = probe(arm, 'a', 0)").expression == "probe(arm, 'a', 0)");
  CHECK(contains(summary_csv(results), "one,norm,2,4,2.8284271247461903,one,0,0,0,7\n"));
}

TEST_CASE("published values in table and CSV", "[study]") {
  StudyConfig config = test::small_study(R"json([
    {"text": "The same verdicts.",
     "expr": "count((final(\"*\") > 2) == (published(\"*\", \"final\") > 2)) == 4"}])json");
  config.published.value = config::parse_json(R"({"final": {"*": "nan", "one": 0.25}})");
  const Plan plan = make_plan(config);
  const StudyResults results = judge(plan, runs(0.25, 4, 3, 4));
  CHECK(table_text(results) ==
        "final   mean    std       minus one  seed 0  seed 1  published\n"
        "one    1.625  1.945                   0.250   3.000      0.250\n"
        "two    4.000  0.000  2.375 ± 17.471   4.000   4.000      fails\n");
  CHECK(contains(results_csv(results), "seconds,published.final,optimizer.lr"));
  CHECK(contains(results_csv(results), ",1,0.25,0.001,runs/one-seed-0-"));
  CHECK(contains(results_csv(results), ",1,inf,0.002,runs/two-seed-0-"));
  CHECK(results.claims[0].held == false);
  const std::string text = claims_text(results);
  CHECK(contains(text, "final(\"*\"): 4 values, from 0.250 (one) to 4.000 (two)"));
  CHECK(contains(text, "(published(\"*\", \"final\") > 2): 3 of 4; not one\n"));
  CHECK(judge(plan, runs(0.25, 4, 0.25, 4)).claims[0].held == true);
  std::vector<RunRecord> some = runs(0.25, 4, 0.25, 4);
  some[1] = test::flat_run(1, Outcome::diverged);  // infinite, as the published "nan" is
  CHECK(judge(plan, some).claims[0].held == true);
}

TEST_CASE("evidence over many arms is short", "[study]") {
  Evidence e{"final(\"*\") > 1", {}, {}, true};
  for (int i = 0; i < 20; ++i) {
    e.arms.push_back(fmt::format("a{}", i));
    e.values.push_back(i % 2 == 0 ? 1 : 0);
  }
  CHECK(shown_evidence(e) ==
        "final(\"*\") > 1: 10 of 20; only a0; a2; a4; a6; a8; a10; and 4 more");
  e.values.assign(20, 1);
  CHECK(shown_evidence(e) == "final(\"*\") > 1: 20 of 20");
  e.values[7] = 0;
  CHECK(shown_evidence(e) == "final(\"*\") > 1: 19 of 20; not a7");
  e.truth = false;
  e.values[3] = kMissing;
  CHECK(shown_evidence(e) ==
        "final(\"*\") > 1: 1 of 20 values are missing: not on record (see "
        "log_every, probe_every), or the run failed");
}

TEST_CASE("numbers as tables show them", "[study]") {
  CHECK(shown_number(4.1589) == "4.159");
  CHECK(shown_number(0.00012) == "1.20e-04");
  CHECK(shown_number(123.456) == "123.5");
  CHECK(shown_number(0) == "0.000");
  CHECK(shown_number(kMissing) == "-");
  CHECK(shown_number(INFINITY) == "inf");
  CHECK(shown_deviation({0.24, 0.00098}) == "0.001");
  CHECK(shown_deviation({123.4, 0.26}) == "0.3");
  CHECK(shown_deviation({1e-5, 2e-6}) == "2.00e-06");
  CHECK(shown_deviation({0.24, kMissing}) == "-");
}

}  // namespace
}  // namespace norma::study
