// The tree behind an Expression. Private to expression*.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/study/expression.h"

namespace norma::study {

enum class Op {
  number,     // `number`
  measure,    // `measure` of `arms`, with a text and numbers
  published,  // `published`, a value for each of `arms`
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
  count  // of a list, or of each arm's part of it
};

struct Expression::Node {
  Op op = Op::number;
  bool truth = false;
  // A list has an entry for each of `arms` (indices into Scope::arms) and, behind each other, each
  // of `seeds`; a single value has no arms.
  std::vector<std::size_t> arms;
  std::size_t seeds = 1;
  std::vector<std::shared_ptr<const Node>> children;
  bool by_arm = false;  // of a reduction: of each arm's part
  double number = 0;
  const Measure* measure = nullptr;
  std::string text_argument;  // of a measure call: what it is given behind the arm
  std::vector<double> numbers;
  std::vector<double> published;
  std::string text;  // as it was written; of a call, and of what a reduction reduces

  [[nodiscard]] bool is_list() const { return !arms.empty(); }
  [[nodiscard]] std::size_t size() const { return is_list() ? arms.size() * seeds : 1; }
};

using NodePtr = std::shared_ptr<Expression::Node>;

// Throws Error.
[[nodiscard]] NodePtr parse_expression(std::string_view text, const Scope& scope);

}  // namespace norma::study
