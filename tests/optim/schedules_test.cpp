// Schedules, by the formula and against torch. Faults that others had are named by their threads.
#include "optim/schedules.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace norma {
namespace {

SchedulePtr make(const std::string& json, double lr, std::int64_t steps, std::int64_t tokens = 0) {
  return make_schedule(config::parse<ScheduleConfig>(config::parse_json(json), "schedule"), lr,
                       steps, tokens);
}

struct Row {
  const char* config;
  double lr;
  std::int64_t steps;
  std::vector<std::int64_t> at;
  std::vector<double> rates;
};

TEST_CASE("schedules give the rates of their formulas", "[optim]") {
  const std::vector<Row> rows = {
      // By hand.
      {R"({"type":"constant","warmup_steps":4})",
       0.1,
       10,
       {0, 2, 3, 4, 9},
       {.025, .075, .1, .1, .1}},
      {R"({"type":"linear","warmup_steps":2,"final_factor":0.2})",
       1,
       10,
       {0, 1, 2, 6, 9, 10},
       {.5, 1, 1, .6, .3, .2}},
      {R"({"type":"cosine","warmup_steps":2,"final_factor":0.1})",
       1,
       10,
       {1, 2, 4, 6, 10},
       {1, 1, .1 + .9 * (1 + std::sqrt(.5)) / 2, .55, .1}},
      {R"({"type":"inverse_sqrt","warmup_steps":4})",
       1,
       99,
       {3, 4, 15, 63},
       {1, std::sqrt(.8), .5, .25}},
      {R"("inverse_sqrt")", 1, 99, {0, 3}, {1, .5}},
      {R"({"type":"wsd","warmup_steps":2,"decay_steps":4,"final_factor":0.2})",
       1,
       10,
       {0, 2, 6, 7, 9, 10},
       {.5, 1, 1, .8, .4, .2}},
      // torch 2.13.0 StepLR, ExponentialLR, OneCycleLR.
      {R"({"type":"step","every":3,"factor":0.5})", 1, 10, {0, 2, 3, 8, 9}, {1, 1, .5, .25, .125}},
      {R"({"type":"exponential","factor":0.9})", 0.1, 40, {0, 1, 13}, {.1, .09, .0254186583}},
      {R"("one_cycle")",
       0.1,
       20,
       {0, 1, 3, 5, 6, 10, 18, 19},
       {.004, .01316718427, .06683281573, .1, .09874640062, .07169430018, .001253999376, 4e-07}},
      // Vaswani et al. 2017, d = 512, W = 4000: the peak is (d W)^-1/2.
      {R"({"type":"noam","warmup_steps":4000,"width":512})",
       1,
       10000,
       {0, 3999, 9999},
       {1.74692811e-07, 0.000698771243, 0.000441941738}},
  };
  for (const Row& row : rows) {
    INFO(row.config);
    const SchedulePtr schedule = make(row.config, row.lr, row.steps);
    for (std::size_t i = 0; i < row.at.size(); ++i) {
      INFO("step " << row.at[i]);
      CHECK(schedule->rate(row.at[i]) == Approx(row.rates[i]).epsilon(1e-8));
    }
  }
}

TEST_CASE("warm-up in steps, as a fraction and in tokens", "[optim]") {
  CHECK(make(R"({"type":"linear","warmup_fraction":0.1})", 1, 200)->warmup_steps() == 20);
  CHECK(make(R"({"type":"linear","warmup_tokens":1001})", 1, 200, 100)->warmup_steps() == 11);
  NORMA_CHECK_ERROR(make(R"({"type":"linear","warmup_tokens":1000})", 1, 200), "use warmup_steps");
  NORMA_CHECK_ERROR(make(R"({"type":"linear","warmup_tokens":9,"warmup_steps":9})", 1, 200),
                    "expected one of warmup_steps, warmup_fraction, warmup_tokens; got 2");
}

TEST_CASE("edges of warm-up (huggingface/transformers#47285)", "[optim]") {
  for (const char* type : {"constant", "linear", "cosine", "inverse_sqrt"}) {
    for (const auto& [warmup, steps] :
         {std::pair<int, int>{0, 10}, {10, 10}, {12, 10}, {0, 0}, {0, 1}}) {
      INFO(type << " " << warmup << " of " << steps);
      const SchedulePtr s =
          make(fmt::format(R"({{"type":"{}","warmup_steps":{}}})", type, warmup), 1, steps);
      for (const std::int64_t t : {0, 1, 9, 10, 11, 12, 13, 1000}) {
        CHECK(s->rate(t) >= 0);
        CHECK(s->rate(t) <= 1);
      }
      CHECK(s->rate(0) == (warmup == 0 ? 1 : 1.0 / warmup));
      CHECK(s->warning().empty() == (warmup <= steps));
    }
  }
  CHECK(make(R"({"type":"linear","warmup_steps":12})", 0.5, 10)->warning() ==
        "schedule: the warm-up of 12 steps is longer than the run of 10; lr 0.5 is never reached");
  NORMA_CHECK_ERROR(make(R"({"type":"linear","warmup_steps":-1})", 1, 10), "schedule.warmup_steps");
  NORMA_CHECK_ERROR(make(R"("linear")", 1, -1), "at least 0 steps; got -1");
  NORMA_CHECK_ERROR(make(R"("linear")", 1, 1)->rate(-1), "steps count from 0; got -1");
  // A decay over no steps, and one that is longer than the run.
  CHECK(make(R"({"type":"wsd","decay_steps":0})", 1, 10)->rate(9) == 1);
  const SchedulePtr wsd = make(R"({"type":"wsd","decay_steps":20})", 1, 10);
  CHECK(wsd->rate(0) == 0.5);
  CHECK(!wsd->warning().empty());
}

TEST_CASE("beyond the end the rate stays (google-deepmind/optax#905)", "[optim]") {
  for (const char* config :
       {R"({"type":"cosine","final_factor":0.1})", R"({"type":"linear","final_factor":0.1})",
        R"({"type":"wsd","decay_steps":3,"final_factor":0.1})"}) {
    INFO(config);
    for (const std::int64_t t : {6, 7, 12, 1'000'000'000}) {
      CHECK(make(config, 1, 6)->rate(t) == Approx(0.1));
    }
    // Resumed with another length: the new formula from there on, within the limits.
    const double resumed = make(config, 1, 12)->rate(6);
    CHECK(resumed > 0.1);
    CHECK(resumed <= 1);
  }
  CHECK(make(R"("one_cycle")", 0.1, 20)->rate(1000) == Approx(4e-07));
  NORMA_CHECK_ERROR(make(R"({"type":"cosine","final_factor":1.5})", 1, 6), "schedule.final_factor");
}

}  // namespace
}  // namespace norma
