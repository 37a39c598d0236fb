// The nodes of an expression: what its operators, names and calls mean, and whether they fit.
// Private to expression*.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/study/expression_node.h"

namespace norma::study {

// An argument of a call: a text in quotes, or a value.
struct Argument {
  bool is_text = false;
  std::string text;
  NodePtr value;
  std::size_t at = 0;
  std::size_t end = 0;  // behind it
};

struct Function;  // mean, log, ...

// Every member throws Error for what does not fit, with the place in `text`.
class NodeBuilder {
 public:
  NodeBuilder(std::string_view text, const Scope& scope) : text_(text), scope_(scope) {}

  [[noreturn]] void fail(std::size_t at, const std::string& what) const;
  void expect(const Expression::Node& node, bool truth, std::size_t at, std::string_view who) const;

  // `at` is where lists that do not pair are reported.
  [[nodiscard]] NodePtr make(Op op, bool truth, std::vector<NodePtr> children,
                             std::size_t at) const;
  [[nodiscard]] NodePtr number(double x) const;
  // A name alone, in [begin, end).
  [[nodiscard]] NodePtr name(std::string_view name, std::size_t begin, std::size_t end) const;
  // name(arguments), in [begin, end).
  [[nodiscard]] NodePtr call(std::string_view name, std::vector<Argument> arguments,
                             std::size_t begin, std::size_t end) const;

 private:
  // What stands in [begin, end), without space behind it.
  [[nodiscard]] std::string written(std::size_t begin, std::size_t end) const;
  // Names an arm by its parts, or several by a glob.
  void set_arms(Expression::Node& node, const std::vector<std::string>& parts, std::size_t begin,
                std::size_t end) const;
  [[nodiscard]] const char* arm_words() const;
  [[nodiscard]] NodePtr named_number(std::string_view name, std::size_t begin) const;
  [[nodiscard]] NodePtr call_measure(const Measure& measure, const std::vector<Argument>& arguments,
                                     std::size_t begin, std::size_t end) const;
  [[nodiscard]] NodePtr call_published(const std::vector<Argument>& arguments, std::size_t begin,
                                       std::size_t end) const;
  [[nodiscard]] NodePtr call_function(const Function& function, std::vector<Argument> arguments,
                                      std::size_t begin) const;

  std::string_view text_;
  const Scope& scope_;
};

}  // namespace norma::study
