// Evaluation; expression_parse.cpp has the grammar.
#include "apps/study/expression.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "apps/study/expression_node.h"
#include "core/config/problems.h"
#include "core/parameters.h"

namespace norma::study {
namespace {

using Node = Expression::Node;

class Evaluator {
 public:
  Evaluator(const MeasureValue& measured, const std::vector<std::string>& arms,
            std::vector<Evidence>* evidence)
      : measured_(measured), arms_(arms), evidence_(evidence) {}

  Value evaluate(const Node& node) {
    Value result{node.truth, node.is_list(), {}, false};
    if (node.op == Op::number) {
      result.values = {node.number};
    } else if (node.op == Op::measure || node.op == Op::published) {
      result.values = call(node);
      add_evidence(node, result.values);
    } else {
      std::vector<Value> inputs;
      for (const auto& child : node.children) inputs.push_back(evaluate(*child));
      for (const Value& input : inputs) result.missing = result.missing || input.missing;
      if (node.op >= Op::mean) {
        result.values = reduce_list(node, inputs[0].values);
      } else {
        for (std::size_t i = 0; i < node.size(); ++i)
          result.values.push_back(apply(node, inputs, i));
      }
    }
    for (const double x : result.values) result.missing = result.missing || std::isnan(x);
    return result;
  }

  // Says where a comparison over several arms holds.
  void add_answers(const Node& node, const std::vector<double>& values) {
    if (node.truth && node.arms.size() > 1) add_evidence(node, values);
  }

 private:
  std::vector<double> call(const Node& node) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < node.arms.size(); ++i) {
      for (std::size_t seed = 0; seed < node.seeds; ++seed) {
        values.push_back(node.op == Op::published ? node.published[i]
                                                  : measured_(*node.measure, node.arms[i], seed,
                                                              {node.text_argument, node.numbers}));
      }
    }
    return values;
  }

  void add_evidence(const Node& node, const std::vector<double>& values) {
    if (!evidence_ || std::any_of(evidence_->begin(), evidence_->end(),
                                  [&](const Evidence& e) { return e.text == node.text; })) {
      return;
    }
    Evidence evidence{node.text, values, {}, node.truth};
    for (const std::size_t arm : node.arms) evidence.arms.push_back(arms_[arm]);
    evidence_->push_back(std::move(evidence));
  }

  // Entry `i` of the result. A list with one value an arm has it for each seed.
  static double apply(const Node& node, const std::vector<Value>& inputs, std::size_t i) {
    const auto at = [&](std::size_t k) {
      const Node& child = *node.children[k];
      if (!child.is_list()) return inputs[k].values[0];
      return inputs[k].values[child.seeds == node.seeds ? i : i / node.seeds];
    };
    double x = at(0);
    if (inputs.size() == 1) return apply(node.op, x, 0);
    for (std::size_t k = 1; k < inputs.size(); ++k) x = apply(node.op, x, at(k));
    return x;
  }

  std::vector<double> reduce_list(const Node& node, const std::vector<double>& values) {
    const Node& child = *node.children[0];
    if (!node.by_arm) {
      add_answers(child, values);
      return {reduce(node.op, values)};
    }
    std::vector<double> result;
    for (auto begin = values.begin(); begin != values.end();) {
      const auto end = begin + static_cast<std::ptrdiff_t>(child.seeds);
      result.push_back(reduce(node.op, {begin, end}));
      begin = end;
    }
    return result;
  }

  static double apply(Op op, double a, double b) {
    switch (op) {
      case Op::negate:
        return -a;
      case Op::logical_not:
        return a == 0 ? 1 : 0;
      case Op::log:
        return std::log(a);
      case Op::exp:
        return std::exp(a);
      case Op::sqrt:
        return std::sqrt(a);
      case Op::abs:
        return std::abs(a);
      case Op::add:
        return a + b;
      case Op::subtract:
        return a - b;
      case Op::multiply:
        return a * b;
      case Op::divide:
        return a / b;
      case Op::power:
        return std::pow(a, b);
      case Op::less:
        return a < b;
      case Op::less_equal:
        return a <= b;
      case Op::greater:
        return a > b;
      case Op::greater_equal:
        return a >= b;
      case Op::equal:
        return a == b;
      case Op::not_equal:
        return a != b;
      case Op::logical_and:
        return a != 0 && b != 0;
      case Op::logical_or:
        return a != 0 || b != 0;
      case Op::least:
        return std::isnan(a) || a < b ? a : b;
      default:
        return std::isnan(a) || a > b ? a : b;
    }
  }

  static double reduce(Op op, std::vector<double> x) {
    const auto n = static_cast<double>(x.size());
    double sum = 0;
    for (const double v : x) sum += v;
    switch (op) {
      case Op::mean:
        return sum / n;
      case Op::min:
        return *std::min_element(x.begin(), x.end());
      case Op::max:
        return *std::max_element(x.begin(), x.end());
      case Op::all:
        return sum == n;
      case Op::any:
        return sum > 0;
      case Op::count:
        return sum;
      case Op::median: {
        std::sort(x.begin(), x.end());
        const std::size_t half = x.size() / 2;
        return x.size() % 2 == 1 ? x[half] : (x[half - 1] + x[half]) / 2;
      }
      default: {
        double squares = 0;
        for (const double v : x) squares += (v - sum / n) * (v - sum / n);
        return x.size() < 2 ? 0 : std::sqrt(squares / (n - 1));
      }
    }
  }

  const MeasureValue& measured_;
  const std::vector<std::string>& arms_;
  std::vector<Evidence>* evidence_;
};

}  // namespace

Expression Expression::parse(std::string_view text, const Scope& scope) {
  Expression result;
  result.text_ = text;
  result.arms_ = std::make_shared<const std::vector<std::string>>(scope.arms);
  result.root_ = parse_expression(text, scope);
  return result;
}

Value Expression::evaluate(const MeasureValue& measured, std::vector<Evidence>* evidence) const {
  Evaluator evaluator(measured, *arms_, evidence);
  const Value value = evaluator.evaluate(*root_);
  evaluator.add_answers(*root_, value.values);
  return value;
}

bool Expression::is_truth() const { return root_->truth; }
bool Expression::is_list() const { return root_->is_list(); }

double constant_of(std::string_view text, const Scope& scope) {
  const Expression expression = Expression::parse(text, scope);
  const Value value = expression.evaluate([](const auto&...) { return kMissing; });
  require(!value.truth && !value.list && !value.missing,
          "must be a number that does not depend on a run; got {}", text);
  return value.values[0];
}

bool is_glob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

std::string unknown_arm(std::string_view pattern, const std::vector<std::string_view>& arms) {
  constexpr std::size_t kMost = 8;  // arms that are named
  if (is_glob(pattern)) {
    return fmt::format("\"{}\" matches no arm; the first arm is \"{}\"", pattern,
                       arms.empty() ? "" : arms[0]);
  }
  std::string text = fmt::format("unknown arm \"{}\"", pattern);
  if (const std::string_view near = config::nearest_name(pattern, arms); !near.empty()) {
    return text + fmt::format("; the nearest known name is \"{}\"", near);
  }
  // In quotes, since names have commas.
  const std::span some(arms.begin(), std::min(arms.size(), kMost));
  text += fmt::format("; known: \"{}\"", fmt::join(some, "\", \""));
  if (arms.size() > kMost) text += fmt::format(" and {} more", arms.size() - kMost);
  return text;
}

std::vector<std::size_t> arms_of(std::string_view pattern, std::span<const std::string> arms) {
  std::vector<std::size_t> found;
  const auto exact = std::find(arms.begin(), arms.end(), pattern);
  if (exact != arms.end()) return {static_cast<std::size_t>(exact - arms.begin())};
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (matches_glob(arms[i], pattern)) found.push_back(i);
  }
  return found;
}

}  // namespace norma::study
