// The tree behind an Expression. Private to expression*.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/study/expression.h"

namespace norma::study {

enum class Op {
  number,   // `number`
  measure,  // `measure` of `arm`, with a text and numbers
  negate,
  logical_not,
  log,
  exp,
  sqrt,
  abs,  // elementwise, one child
  add,
  subtract,
  multiply,
  divide,
  power,  // elementwise, two or more
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,  // to yes or no
  logical_and,
  logical_or,
  least,
  greatest,  //
  mean,
  min,
  max,
  median,
  std_deviation,
  all,
  any,
  count  // over the seeds
};

struct Expression::Node {
  Op op = Op::number;
  bool truth = false;
  bool per_seed = false;
  std::vector<std::unique_ptr<Node>> children;
  double number = 0;
  const Measure* measure = nullptr;
  std::size_t arm = 0;
  std::string text_argument;  // of a measure call: what it is given behind the arm
  std::vector<double> numbers;
  std::string text;  // of a measure call, as it was written
};

using NodePtr = std::unique_ptr<Expression::Node>;

// Throws Error.
[[nodiscard]] NodePtr parse_expression(std::string_view text, const Scope& scope);

}  // namespace norma::study
