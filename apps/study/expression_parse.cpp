// The grammar of expressions, the loosest binding first:
//
//   or    := and ("or" and)*
//   and   := not ("and" not)*
//   not   := "not" not | chain
//   chain := sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)*     a < b < c is a < b and b < c
//   sum   := term (("+" | "-") term)*
//   term  := sign (("*" | "/") sign)*
//   sign  := "-" sign | power
//   power := atom ["^" sign]                                        -2^2 is -4, 2^3^2 is 512
//   atom  := NUMBER | NAME | NAME "(" [argument ("," argument)*] ")" | "(" or ")"
#include <algorithm>
#include <cctype>
#include <charconv>

#include "apps/study/expression_build.h"

namespace norma::study {
namespace {

constexpr std::string_view kArm = "arm";
constexpr int kDeepest = 20;  // brackets in brackets; a chain evaluates its middle twice

class Parser {
 public:
  Parser(std::string_view text, const Scope& scope)
      : text_(text), scope_(scope), nodes_(text, scope) {}

  NodePtr parse() {
    skip_space();
    if (at_ == text_.size()) nodes_.fail(at_, "expected an expression; got nothing");
    NodePtr node = parse_or();
    if (at_ < text_.size())
      nodes_.fail(at_, fmt::format("expected an operator or the end; got \"{}\"", rest()));
    if (node->text.empty()) node->text = text_;
    return node;
  }

 private:
  // --- Errors and letters. ---
  std::string rest() const { return std::string(text_.substr(at_, 12)); }
  static bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
  static bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  // Takes the sign if it comes next. A "<" does not take the first half of "<=".
  bool take(std::string_view sign) {
    if (!text_.substr(at_).starts_with(sign)) return false;
    const bool half = sign.size() == 1 && (sign == "<" || sign == ">") && at_ + 1 < text_.size() &&
                      text_[at_ + 1] == '=';
    if (half) return false;
    at_ += sign.size();
    skip_space();
    return true;
  }
  std::string_view peek_name() const {
    std::size_t end = at_;
    if (end < text_.size() && is_letter(text_[end])) {
      while (end < text_.size() &&
             (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.'))
        ++end;
    }
    return text_.substr(at_, end - at_);
  }
  bool take_word(std::string_view word) {
    if (peek_name() != word) return false;
    at_ += word.size();
    skip_space();
    return true;
  }

  template <class Next>
  NodePtr parse_words(std::string_view word, Op op, Next next) {
    std::size_t begin = at_;
    NodePtr left = next();
    for (std::size_t sign = at_; take_word(word); sign = at_) {
      nodes_.expect(*left, true, begin, word);
      begin = at_;
      NodePtr right = next();
      nodes_.expect(*right, true, begin, word);
      left = nodes_.make(op, true, {left, right}, sign);
      begin = sign;
    }
    return left;
  }
  NodePtr parse_or() {
    if (++depth_ > kDeepest) nodes_.fail(at_, "too many brackets in each other");
    NodePtr node = parse_words("or", Op::logical_or, [&] { return parse_and(); });
    --depth_;
    return node;
  }
  NodePtr parse_and() {
    return parse_words("and", Op::logical_and, [&] { return parse_not(); });
  }
  NodePtr parse_not() {
    if (!take_word("not")) return parse_chain();
    if (++depth_ > kDeepest) nodes_.fail(at_, "too many \"not\" in each other");
    const std::size_t begin = at_;
    NodePtr child = parse_not();
    --depth_;
    nodes_.expect(*child, true, begin, "not");
    return nodes_.make(Op::logical_not, true, {child}, begin);
  }

  bool take_comparison(Op& op) {
    constexpr std::pair<std::string_view, Op> kSigns[] = {
        {"<=", Op::less_equal}, {">=", Op::greater_equal}, {"==", Op::equal},
        {"!=", Op::not_equal},  {"<", Op::less},           {">", Op::greater}};
    for (const auto& [sign, comparison] : kSigns) {
      if (!take(sign)) continue;
      op = comparison;
      return true;
    }
    return false;
  }
  // The middle of a chain stands in two comparisons. Yes and no may be compared with == and !=.
  NodePtr parse_chain() {
    std::size_t begin = at_;
    NodePtr left = parse_sum(), whole;
    Op op{};
    for (std::size_t sign = at_; take_comparison(op); sign = at_) {
      const bool truth = left->truth && (op == Op::equal || op == Op::not_equal);
      nodes_.expect(*left, truth, begin, "a comparison");
      begin = at_;
      NodePtr right = parse_sum();
      nodes_.expect(*right, truth, begin, "a comparison");
      NodePtr link = nodes_.make(op, true, {left, right}, sign);
      whole = whole ? nodes_.make(Op::logical_and, true, {whole, link}, sign) : link;
      left = right;
    }
    return whole ? whole : left;
  }

  // left (sign right)*, for two signs.
  template <class Next>
  NodePtr parse_binary(char a, Op op_a, char b, Op op_b, Next next) {
    std::size_t begin = at_;
    NodePtr left = next();
    while (at_ < text_.size() && (text_[at_] == a || text_[at_] == b)) {
      const std::size_t sign_at = at_;
      const char sign = text_[at_];
      const std::string who = fmt::format("\"{}\"", sign);
      nodes_.expect(*left, false, begin, who);
      (void)take(std::string_view(&sign, 1));
      const std::size_t right_at = at_;
      NodePtr right = next();
      nodes_.expect(*right, false, right_at, who);
      left = nodes_.make(sign == a ? op_a : op_b, false, {left, right}, sign_at);
    }
    return left;
  }
  NodePtr parse_sum() {
    return parse_binary('+', Op::add, '-', Op::subtract, [&] { return parse_term(); });
  }
  NodePtr parse_term() {
    return parse_binary('*', Op::multiply, '/', Op::divide, [&] { return parse_sign(); });
  }
  NodePtr parse_sign() {
    if (!take("-")) return parse_power();
    if (++depth_ > kDeepest) nodes_.fail(at_, "too many signs");
    const std::size_t begin = at_;
    NodePtr child = parse_sign();
    --depth_;
    nodes_.expect(*child, false, begin, "\"-\"");
    return nodes_.make(Op::negate, false, {child}, begin);
  }
  NodePtr parse_power() {
    const std::size_t begin = at_;
    NodePtr base = parse_atom();
    if (!take("^")) return base;
    nodes_.expect(*base, false, begin, "\"^\"");
    if (++depth_ > kDeepest) nodes_.fail(at_, "too many powers");
    const std::size_t exponent_at = at_;
    NodePtr exponent = parse_sign();
    --depth_;
    nodes_.expect(*exponent, false, exponent_at, "\"^\"");
    return nodes_.make(Op::power, false, {base, exponent}, begin);
  }

  NodePtr parse_atom() {
    const std::size_t begin = at_;
    if (take("(")) {
      NodePtr node = parse_or();
      if (!take(")")) nodes_.fail(at_, "expected \")\"");
      return node;
    }
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) return parse_number();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      nodes_.fail(at_, "a text in quotes stands in a call alone, for instance final(\"arm\")");
    }
    const std::string_view name = peek_name();
    if (name.empty() || name == "and" || name == "or" || name == "not") {
      nodes_.fail(at_, at_ == text_.size() ? "expected a value; the expression ends"
                                           : fmt::format("expected a value; got \"{}\"", rest()));
    }
    at_ += name.size();
    skip_space();
    if (take("(")) return parse_call(name, begin);
    return nodes_.name(name, begin, at_);
  }

  NodePtr parse_number() {
    double x = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), x);
    if (error != std::errc())
      nodes_.fail(at_, fmt::format("expected a number; got \"{}\"", rest()));
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.')) {
      nodes_.fail(at_, fmt::format("expected an operator behind the number; got \"{}\"", rest()));
    }
    skip_space();
    return nodes_.number(x);
  }

  // --- Calls. ---
  Argument parse_argument() {
    Argument argument;
    argument.at = at_;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const std::size_t end = text_.find(text_[at_], at_ + 1);
      if (end == std::string_view::npos) nodes_.fail(at_, "the text in quotes does not end");
      argument.is_text = true;
      argument.text = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      skip_space();
    } else if (scope_.arm && peek_name() == kArm) {
      argument.is_text = true;
      argument.text = scope_.arms[*scope_.arm];
      at_ += kArm.size();
      skip_space();
    } else {
      argument.value = parse_or();
    }
    argument.end = at_;
    return argument;
  }

  NodePtr parse_call(std::string_view name, std::size_t begin) {
    std::vector<Argument> arguments;
    if (!take(")")) {
      do {
        arguments.push_back(parse_argument());
      } while (take(","));
      if (!take(")")) nodes_.fail(at_, "expected \",\" or \")\"");
    }
    return nodes_.call(name, std::move(arguments), begin, at_);
  }

  std::string_view text_;
  const Scope& scope_;
  const NodeBuilder nodes_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

NodePtr parse_expression(std::string_view text, const Scope& scope) {
  return Parser(text, scope).parse();
}

}  // namespace norma::study
