#include "apps/study/sharing.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "apps/training/run_config.h"

namespace norma::study {
namespace {

constexpr std::int64_t kWorth = 5;  // a prefix is at least this part of a run

struct Rates {
  std::size_t run;            // index into Plan::runs
  std::vector<double> rates;  // by step
};
using Group = std::vector<Rates>;

// What must agree, as text; nothing where the rates are not known.
std::optional<std::string> rest_of(const Json& config) {
  const Json& schedule = config.at("schedule");
  if (!config.at("train").at("steps").is_number()) return std::nullopt;
  if (schedule.contains("warmup_tokens") && !schedule["warmup_tokens"].is_null())
    return std::nullopt;
  Json rest = config;
  rest.erase("name");
  rest.erase("schedule");
  rest["train"].erase("steps");
  return rest.dump();
}

Rates rates_of(std::size_t index, const Json& json) {
  const auto config = config::parse<RunConfig>(json);
  const SchedulePtr schedule =
      make_schedule(config.schedule, config.optimizer.options().lr, *config.train.steps);
  Rates rates{index, {}};
  for (std::int64_t t = 0; t < *config.train.steps; ++t) rates.rates.push_back(schedule->rate(t));
  return rates;
}

// Steps that all have in common; the last step of a run is its own, since it ends there.
std::size_t common_steps(const Group& group) {
  std::size_t steps = group[0].rates.size() - 1;
  for (const Rates& r : group) {
    steps = std::min(steps, r.rates.size() - 1);
    const auto differs =
        std::mismatch(group[0].rates.begin(),
                      group[0].rates.begin() + static_cast<std::ptrdiff_t>(steps), r.rates.begin());
    steps = static_cast<std::size_t>(differs.first - group[0].rates.begin());
  }
  return steps;
}

class Sharer {
 public:
  Sharer(const Plan& plan, Sharing& sharing) : plan_(plan), sharing_(sharing) {}

  void share(const Group& group, std::optional<std::size_t> before) {
    for (const Rates& r : group) sharing_.of_run[r.run] = before;
    if (group.size() < 2) return;
    const std::size_t steps = common_steps(group);
    std::size_t longest = 0;
    for (const Rates& r : group) longest = std::max(longest, r.rates.size());
    const std::int64_t trained = before ? sharing_.prefixes[*before].steps : 0;
    const auto own = static_cast<std::int64_t>(steps) - trained;
    if (own > 0 && own * kWorth >= static_cast<std::int64_t>(longest)) {
      const PlannedRun& first = plan_.runs[group[0].run];
      sharing_.prefixes.push_back({fmt::format("{}-{}", first.hash.substr(0, 8), steps),
                                   group[0].run, static_cast<std::int64_t>(steps), group.size(),
                                   before});
      before = sharing_.prefixes.size() - 1;
      for (const Rates& r : group) sharing_.of_run[r.run] = before;
    }
    // Those that go on together share more; those that end here are done.
    std::map<double, Group> parts;
    for (const Rates& r : group) {
      if (r.rates.size() > steps + 1) parts[r.rates[steps]].push_back(r);
    }
    for (const auto& [rate, part] : parts) share(part, before);
  }

 private:
  const Plan& plan_;
  Sharing& sharing_;
};

}  // namespace

Sharing share_prefixes(const Plan& plan) {
  Sharing sharing{{}, std::vector<std::optional<std::size_t>>(plan.runs.size())};
  std::map<std::string, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (const auto rest = rest_of(plan.runs[i].config)) alike[*rest].push_back(i);
  }
  for (const auto& [rest, runs] : alike) {
    if (runs.size() < 2) continue;
    Group group;
    for (const std::size_t i : runs) group.push_back(rates_of(i, plan.runs[i].config));
    Sharer(plan, sharing).share(group, std::nullopt);
  }
  return sharing;
}

}  // namespace norma::study
