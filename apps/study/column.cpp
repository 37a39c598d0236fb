#include "apps/study/column.h"

#include "core/error.h"

namespace norma::study {
namespace {

std::string_view trimmed(std::string_view part) {
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ')) part.remove_suffix(1);
  return part;
}

}  // namespace

double Column::of(const RunRecord& run) const {
  const MeasureValue measured = [&](const Measure& measure, std::size_t, std::size_t,
                                    const MeasureArguments& arguments) {
    return measure.of(run, arguments);
  };
  return value.evaluate(measured).values[0];
}

Column column_of(std::string_view text) {
  std::string_view name = trimmed(text), expression = name;
  // A name of its own stands before the first sign that an expression has.
  if (const std::size_t sign = text.find_first_of("='\"(<>!+-*/^");
      sign < text.size() && text[sign] == '=' && text.substr(sign, 2) != "==") {
    name = trimmed(text.substr(0, sign));
    expression = trimmed(text.substr(sign + 1));
  }
  require(!name.empty() && !expression.empty(),
          "\"{}\": expected a measure, or `name = expression`, for instance rms = probe(arm, "
          "'loss', 0)",
          text);
  const Scope one_run{.arms = {"arm"}, .seeds = 1, .numbers = {}, .published = {}, .arm = 0};
  const Measure* measure = find_measure(expression.substr(0, expression.find('(')));
  return {std::string(name), std::string(expression),
          std::string(measure ? measure->doc : expression), Expression::parse(expression, one_run)};
}

std::vector<Column> columns_of(std::span<const std::string> texts) {
  std::vector<Column> columns;
  for (const std::string& text : texts) columns.push_back(column_of(text));
  return columns;
}

}  // namespace norma::study
