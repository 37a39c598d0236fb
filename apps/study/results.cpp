#include "apps/study/results.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace norma::study {
namespace {

constexpr std::size_t kMostNames = 6;  // arms that an evidence names

// Text of UTF-8 takes as many places as it has letters.
std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string left(const std::string& text, std::size_t width) {
  const std::size_t n = letters(text);
  return text + std::string(width > n ? width - n : 0, ' ');
}
std::string right(const std::string& text, std::size_t width) {
  const std::size_t n = letters(text);
  return std::string(width > n ? width - n : 0, ' ') + text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_number(double x) { return std::isnan(x) ? "" : fmt::format("{}", x); }

}  // namespace

std::string ClaimResult::verdict() const {
  if (!held) return "no result";
  return *held ? "held" : "did not hold";
}

std::vector<double> StudyResults::values(const Column& column, std::size_t arm) const {
  std::vector<double> values;
  for (std::size_t seed = 0; seed < plan->seeds.size(); ++seed)
    values.push_back(column.of(run(arm, seed)));
  return values;
}

const PublishedTable* StudyResults::published(std::string_view column) const {
  const auto found = plan->published.find(column);
  return found == plan->published.end() ? nullptr : &found->second;
}

bool StudyResults::as_expected() const {
  return std::all_of(claims.begin(), claims.end(),
                     [](const ClaimResult& c) { return c.expected(); }) &&
         std::none_of(runs.begin(), runs.end(),
                      [](const RunRecord& r) { return !is_result(r.outcome); });
}

StudyResults judge(const Plan& plan, std::vector<RunRecord> runs) {
  StudyResults results{&plan, std::move(runs), {}};
  const MeasureValue measured = [&](const Measure& measure, std::size_t arm, std::size_t seed,
                                    const MeasureArguments& arguments) {
    return measure.of(results.run(arm, seed), arguments);
  };
  for (const CompiledClaim& claim : plan.claims) {
    ClaimResult result{&claim.config, std::nullopt, {}};
    const Value value = claim.expression.evaluate(measured, &result.evidence);
    if (!value.missing) {
      result.held =
          std::all_of(value.values.begin(), value.values.end(), [](double x) { return x != 0; });
    }
    results.claims.push_back(std::move(result));
  }
  return results;
}

std::string shown_number(double x) {
  if (std::isnan(x)) return "-";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  const double size = std::abs(x);
  if (size != 0 && (size < 1e-3 || size >= 1e5)) return fmt::format("{:.2e}", x);
  return fmt::format("{:.{}f}", x, size < 10 ? 3 : size < 100 ? 2 : 1);
}

std::string shown_value(const RunRecord& run, const Column& column) {
  const std::string value = shown_number(column.of(run));
  if (run.outcome == Outcome::completed) return value;
  return run.outcome == Outcome::failed_to_learn ? value + " (stopped)" : name_of(run.outcome);
}

std::string shown_deviation(const Spread& spread) {
  const std::string mean = shown_number(spread.mean);
  const std::size_t point = mean.find('.');
  if (!std::isfinite(spread.deviation) || point == std::string::npos ||
      mean.find('e') != std::string::npos) {
    return shown_number(spread.deviation);
  }
  return fmt::format("{:.{}f}", spread.deviation, mean.size() - point - 1);
}

std::string shown_difference(const Difference& difference) {
  const std::string mean = shown_number(difference.mean);
  if (std::isnan(difference.half_width)) return mean;
  // A mean far inside its interval has the interval's places, not a power of ten.
  const std::string half = shown_number(difference.half_width);
  const std::size_t point = half.find('.');
  if (mean.find("e-") != mean.npos && point != half.npos && half.find('e') == half.npos) {
    return fmt::format("{:.{}f} ± {}", difference.mean, half.size() - point - 1, half);
  }
  return fmt::format("{} ± {}", mean, shown_deviation({difference.mean, difference.half_width}));
}

std::string shown_published(const std::optional<double>& value) {
  if (!value) return "";
  return std::isinf(*value) ? "fails" : shown_number(*value);
}

std::string shown_evidence(const Evidence& evidence) {
  const std::vector<double>& values = evidence.values;
  if (evidence.arms.size() < 2) {
    std::vector<std::string> numbers;
    for (const double x : values) numbers.push_back(shown_number(x));
    return fmt::format("{} = {}", evidence.text, fmt::join(numbers, ", "));
  }
  const auto arm_of = [&](std::size_t i) -> const std::string& {
    return evidence.arms[i * evidence.arms.size() / values.size()];
  };
  const auto holds = static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [](double x) { return x != 0; }));
  if (!evidence.truth) {
    const auto missing = static_cast<std::size_t>(
        std::count_if(values.begin(), values.end(), [](double x) { return std::isnan(x); }));
    if (missing > 0)
      return fmt::format(
          "{}: {} of {} values are missing: not on record (see log_every, probe_every), or the run "
          "failed",
          evidence.text, missing, values.size());
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    const auto at = [&](auto x) { return static_cast<std::size_t>(x - values.begin()); };
    return fmt::format("{}: {} values, from {} ({}) to {} ({})", evidence.text, values.size(),
                       shown_number(*least), arm_of(at(least)), shown_number(*greatest),
                       arm_of(at(greatest)));
  }
  std::string text = fmt::format("{}: {} of {}", evidence.text, holds, values.size());
  if (holds == 0 || holds == values.size()) return text;
  // The fewer are named.
  const bool named = holds <= values.size() / 2;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if ((values[i] != 0) == named && (names.empty() || names.back() != arm_of(i)))
      names.push_back(arm_of(i));
  }
  const std::size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  text += fmt::format("; {} {}", named ? "only" : "not", fmt::join(names, "; "));
  return more > 0 ? text + fmt::format("; and {} more", more) : text;
}

std::string table_text(const StudyResults& results) {
  const Plan& plan = *results.plan;
  std::string text;
  std::size_t name_width = 0;
  for (const Arm& arm : plan.arms) name_width = std::max(name_width, letters(arm.name));
  for (const Column& column : columns_of(plan.config.measures)) {
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> head = {column.name, "mean", "std"};
    const bool compared = plan.seeds.size() > 1 && plan.arms.size() > 1;
    if (compared) head.push_back("minus " + plan.reference);
    for (const std::int64_t seed : plan.seeds) head.push_back(fmt::format("seed {}", seed));
    const PublishedTable* published = results.published(column.name);
    if (published) head.emplace_back("published");
    rows.push_back(head);
    for (std::size_t arm = 0; arm < plan.arms.size(); ++arm) {
      const std::vector<double> values = results.values(column, arm);
      const Spread s = spread(values);
      std::vector<std::string> row = {plan.arms[arm].name, shown_number(s.mean),
                                      shown_deviation(s)};
      if (const std::size_t reference = plan.arms[arm].reference; compared) {
        row.push_back(reference == arm ? ""
                                       : shown_difference(paired_difference(
                                             values, results.values(column, reference))));
      }
      for (std::size_t seed = 0; seed < values.size(); ++seed) {
        row.push_back(shown_value(results.run(arm, seed), column));
      }
      if (published) row.push_back(shown_published((*published)[arm]));
      rows.push_back(row);
    }
    std::vector<std::size_t> widths(head.size(), 0);
    for (const auto& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], letters(row[i]));
    }
    widths[0] = std::max(widths[0], name_width);
    if (!text.empty()) text += "\n";
    for (const auto& row : rows) {
      std::string line = left(row[0], widths[0]);
      for (std::size_t i = 1; i < row.size(); ++i) line += "  " + right(row[i], widths[i]);
      text += line + "\n";
    }
  }
  return text;
}

std::string claims_text(const StudyResults& results) {
  std::string text;
  for (const ClaimResult& result : results.claims) {
    const ClaimConfig& claim = *result.claim;
    const std::string indent(14, ' ');
    text += fmt::format("{:<12}  {}\n", result.verdict(), claim.text);
    text += fmt::format("{}{}\n", indent, claim.expr);
    for (const Evidence& e : result.evidence)
      text += fmt::format("{}{}\n", indent, shown_evidence(e));
    if (!claim.published.empty()) text += fmt::format("{}published: {}\n", indent, claim.published);
    if (claim.expect == Verdict::fails)
      text += fmt::format("{}expected to fail: {}\n", indent, claim.why);
    if (!result.held) {
      text += fmt::format(
          "{0}there is no result, since values are missing: mend what stopped the runs named "
          "above,\n"
          "{0}or have them record the value, and start the study again; finished runs are kept\n",
          indent);
    } else if (!result.expected()) {
      text += fmt::format("{}this is NOT the expected verdict\n", indent);
    }
  }
  return text;
}

std::string summary_csv(const StudyResults& results) {
  const Plan& plan = *results.plan;
  std::string text =
      "arm,measure,seeds,mean,std,reference,difference,difference_low,difference_high,published\n";
  const std::vector<Column> columns = columns_of(plan.config.measures);
  for (std::size_t arm = 0; arm < plan.arms.size(); ++arm) {
    for (const Column& column : columns) {
      const std::vector<double> values = results.values(column, arm);
      const Spread s = spread(values);
      const std::size_t reference = plan.arms[arm].reference;
      const Difference d = paired_difference(values, results.values(column, reference));
      const PublishedTable* published = results.published(column.name);
      std::vector<std::string> cells = {csv_cell(plan.arms[arm].name),
                                        csv_cell(column.name),
                                        std::to_string(values.size()),
                                        csv_number(s.mean),
                                        csv_number(s.deviation),
                                        csv_cell(plan.arms[reference].name),
                                        csv_number(d.mean),
                                        csv_number(d.mean - d.half_width),
                                        csv_number(d.mean + d.half_width)};
      cells.push_back(published ? csv_number((*published)[arm].value_or(kMissing)) : "");
      text += fmt::format("{}\n", fmt::join(cells, ","));
    }
  }
  return text;
}

std::string results_csv(const StudyResults& results) {
  const Plan& plan = *results.plan;
  std::vector<std::string> settings, listed = plan.config.measures;
  for (const Arm& arm : plan.arms) {
    for (const auto& [key, value] : arm.settings.items()) {
      if (std::find(settings.begin(), settings.end(), key) == settings.end())
        settings.push_back(key);
    }
  }
  for (const char* usual : {"best", "seconds"}) {
    if (std::find(listed.begin(), listed.end(), usual) == listed.end()) listed.emplace_back(usual);
  }
  const std::vector<Column> columns = columns_of(listed);
  std::string text = "arm,seed,status,steps";
  for (const Column& column : columns) text += "," + csv_cell(column.name);
  for (const auto& [name, table] : plan.published) text += "," + csv_cell("published." + name);
  for (const std::string& key : settings) text += "," + csv_cell(key);
  text += ",folder\n";
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const PlannedRun& run = plan.runs[i];
    const RunRecord& record = results.runs[i];
    const Arm& arm = plan.arms[run.arm];
    text +=
        fmt::format("{},{},{},{}", csv_cell(arm.name), plan.seeds[run.seed],
                    name_of(record.outcome), record.train.empty() ? 0 : record.train.back().step);
    for (const Column& column : columns) text += "," + csv_number(column.of(record));
    for (const auto& [name, table] : plan.published)
      text += "," + csv_number(table[run.arm].value_or(kMissing));
    for (const std::string& key : settings) {
      // The value that ran, whether the arm or the base sets it.
      const Json* value = at_path(run.config, key);
      text +=
          "," +
          (value ? csv_cell(value->is_string() ? value->get<std::string>() : value->dump()) : "");
    }
    text += fmt::format(",runs/{}\n", run.id);
  }
  return text;
}

}  // namespace norma::study
