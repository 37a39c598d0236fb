// Evaluation; expression_parse.cpp has the grammar.
#include "apps/study/expression.h"

#include <algorithm>
#include <cmath>

#include "apps/study/expression_node.h"

namespace norma::study {
namespace {

using Node = Expression::Node;

class Evaluator {
 public:
  Evaluator(const MeasureValue& measured, std::size_t seeds, std::vector<Evidence>* evidence)
      : measured_(measured), seeds_(seeds), evidence_(evidence) {}

  Value evaluate(const Node& node) {
    if (node.op == Op::number) return {false, false, {node.number}, false};
    if (node.op == Op::measure) return call(node);
    std::vector<Value> inputs;
    for (const NodePtr& child : node.children) inputs.push_back(evaluate(*child));
    Value result{node.truth, node.per_seed, {}, false};
    for (const Value& input : inputs) result.missing = result.missing || input.missing;
    if (node.op >= Op::mean) {
      result.values = {reduce(node.op, inputs[0].values)};
    } else {
      for (std::size_t i = 0; i < (node.per_seed ? seeds_ : 1); ++i) {
        double x = at(inputs[0], i);
        if (inputs.size() == 1) x = apply(node.op, x, 0);
        for (std::size_t k = 1; k < inputs.size(); ++k) x = apply(node.op, x, at(inputs[k], i));
        result.values.push_back(x);
      }
    }
    for (const double x : result.values) result.missing = result.missing || std::isnan(x);
    return result;
  }

 private:
  static double at(const Value& value, std::size_t i) {
    return value.values[value.per_seed ? i : 0];
  }

  Value call(const Node& node) {
    Value result{node.truth, true, {}, false};
    for (std::size_t seed = 0; seed < seeds_; ++seed) {
      result.values.push_back(
          measured_(*node.measure, node.arm, seed, {node.text_argument, node.numbers}));
      result.missing = result.missing || std::isnan(result.values.back());
    }
    if (evidence_ && std::none_of(evidence_->begin(), evidence_->end(),
                                  [&](const Evidence& e) { return e.text == node.text; })) {
      evidence_->push_back({node.text, result.values});
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
  std::size_t seeds_;
  std::vector<Evidence>* evidence_;
};

}  // namespace

Expression Expression::parse(std::string_view text, const Scope& scope) {
  Expression result;
  result.text_ = text;
  result.seeds_ = scope.seeds;
  result.root_ = parse_expression(text, scope);
  return result;
}

Value Expression::evaluate(const MeasureValue& measured, std::vector<Evidence>* evidence) const {
  return Evaluator(measured, seeds_, evidence).evaluate(*root_);
}

bool Expression::is_truth() const { return root_->truth; }
bool Expression::is_per_seed() const { return root_->per_seed; }

}  // namespace norma::study
