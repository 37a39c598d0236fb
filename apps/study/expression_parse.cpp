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

#include "apps/study/expression_node.h"
#include "core/config/problems.h"
#include "core/error.h"

namespace norma::study {
namespace {

using Node = Expression::Node;

constexpr int kDeepest = 20;  // brackets in brackets; a chain evaluates its middle twice

struct Function {
  std::string_view name;
  Op op;
  bool of_truth;  // takes yes or no
  bool to_truth;  // gives yes or no
  bool over_seeds;
};

constexpr Function kFunctions[] = {
    {"mean", Op::mean, false, false, true},
    {"min", Op::min, false, false, true},
    {"max", Op::max, false, false, true},
    {"median", Op::median, false, false, true},
    {"std", Op::std_deviation, false, false, true},
    {"all", Op::all, true, true, true},
    {"any", Op::any, true, true, true},
    {"count", Op::count, true, false, true},
    {"log", Op::log, false, false, false},
    {"exp", Op::exp, false, false, false},
    {"sqrt", Op::sqrt, false, false, false},
    {"abs", Op::abs, false, false, false},
};

// An argument of a call: a text in quotes, or a value.
struct Argument {
  bool is_text = false;
  std::string text;
  NodePtr value;
  std::size_t at = 0;
};

class Parser {
 public:
  Parser(std::string_view text, const Scope& scope) : text_(text), scope_(scope) {}

  NodePtr parse() {
    skip_space();
    if (at_ == text_.size()) fail(at_, "expected an expression; got nothing");
    NodePtr node = parse_or();
    if (at_ < text_.size())
      fail(at_, fmt::format("expected an operator or the end; got \"{}\"", rest()));
    return node;
  }

 private:
  // --- Errors and letters. ---
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw Error::format("column {} of \"{}\": {}", at + 1, text_, what);
  }
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

  // --- Nodes. ---
  static NodePtr make(Op op, bool truth, std::vector<NodePtr> children) {
    auto node = std::make_unique<Node>();
    node->op = op;
    node->truth = truth;
    for (const NodePtr& child : children) node->per_seed = node->per_seed || child->per_seed;
    node->children = std::move(children);
    return node;
  }
  static std::vector<NodePtr> pair(NodePtr a, NodePtr b) {
    std::vector<NodePtr> both;
    both.push_back(std::move(a));
    both.push_back(std::move(b));
    return both;
  }
  void expect(const Node& node, bool truth, std::size_t at, std::string_view who) const {
    if (node.truth == truth) return;
    fail(at, fmt::format("{} expects {}; got {}", who,
                         truth ? "a yes or no, as a comparison gives it" : "a number",
                         truth ? "a number" : "a yes or no"));
  }

  template <class Next>
  NodePtr parse_words(std::string_view word, Op op, Next next) {
    std::size_t begin = at_;
    NodePtr left = next();
    for (std::size_t sign = at_; take_word(word); sign = at_) {
      expect(*left, true, begin, word);
      begin = at_;
      NodePtr right = next();
      expect(*right, true, begin, word);
      left = make(op, true, pair(std::move(left), std::move(right)));
      begin = sign;
    }
    return left;
  }
  NodePtr parse_or() {
    if (++depth_ > kDeepest) fail(at_, "too many brackets in each other");
    NodePtr node = parse_words("or", Op::logical_or, [&] { return parse_and(); });
    --depth_;
    return node;
  }
  NodePtr parse_and() {
    return parse_words("and", Op::logical_and, [&] { return parse_not(); });
  }
  NodePtr parse_not() {
    if (!take_word("not")) return parse_chain();
    if (++depth_ > kDeepest) fail(at_, "too many \"not\" in each other");
    const std::size_t begin = at_;
    std::vector<NodePtr> child;
    child.push_back(parse_not());
    --depth_;
    expect(*child[0], true, begin, "not");
    return make(Op::logical_not, true, std::move(child));
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
  // The middle of a chain stands in two comparisons: a copy each, so that the tree stays a tree.
  NodePtr parse_chain() {
    std::size_t begin = at_;
    NodePtr left = parse_sum(), whole;
    Op op{};
    while (take_comparison(op)) {
      expect(*left, false, begin, "a comparison");
      begin = at_;
      NodePtr right = parse_sum();
      expect(*right, false, begin, "a comparison");
      NodePtr again = copy(*right);
      NodePtr link = make(op, true, pair(std::move(left), std::move(right)));
      whole = whole ? make(Op::logical_and, true, pair(std::move(whole), std::move(link)))
                    : std::move(link);
      left = std::move(again);
    }
    return whole ? std::move(whole) : std::move(left);
  }
  static NodePtr copy(const Node& node) {
    auto same = std::make_unique<Node>();
    same->op = node.op;
    same->truth = node.truth;
    same->per_seed = node.per_seed;
    same->number = node.number;
    same->measure = node.measure;
    same->arm = node.arm;
    same->text_argument = node.text_argument;
    same->numbers = node.numbers;
    same->text = node.text;
    for (const NodePtr& child : node.children) same->children.push_back(copy(*child));
    return same;
  }

  // left (sign right)*, for two signs.
  template <class Next>
  NodePtr parse_binary(char a, Op op_a, char b, Op op_b, Next next) {
    std::size_t begin = at_;
    NodePtr left = next();
    while (at_ < text_.size() && (text_[at_] == a || text_[at_] == b)) {
      const char sign = text_[at_];
      const std::string who = fmt::format("\"{}\"", sign);
      expect(*left, false, begin, who);
      (void)take(std::string_view(&sign, 1));
      const std::size_t right_at = at_;
      NodePtr right = next();
      expect(*right, false, right_at, who);
      left = make(sign == a ? op_a : op_b, false, pair(std::move(left), std::move(right)));
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
    if (++depth_ > kDeepest) fail(at_, "too many signs");
    const std::size_t begin = at_;
    std::vector<NodePtr> child;
    child.push_back(parse_sign());
    --depth_;
    expect(*child[0], false, begin, "\"-\"");
    return make(Op::negate, false, std::move(child));
  }
  NodePtr parse_power() {
    const std::size_t begin = at_;
    NodePtr base = parse_atom();
    if (!take("^")) return base;
    expect(*base, false, begin, "\"^\"");
    if (++depth_ > kDeepest) fail(at_, "too many powers");
    const std::size_t exponent_at = at_;
    NodePtr exponent = parse_sign();
    --depth_;
    expect(*exponent, false, exponent_at, "\"^\"");
    return make(Op::power, false, pair(std::move(base), std::move(exponent)));
  }

  NodePtr parse_atom() {
    const std::size_t begin = at_;
    if (take("(")) {
      NodePtr node = parse_or();
      if (!take(")")) fail(at_, "expected \")\"");
      return node;
    }
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) return parse_number();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      fail(at_, "a text in quotes stands in a call alone, for instance final(\"arm\")");
    }
    const std::string_view name = peek_name();
    if (name.empty() || name == "and" || name == "or" || name == "not") {
      fail(at_, at_ == text_.size() ? "expected a value; the expression ends"
                                    : fmt::format("expected a value; got \"{}\"", rest()));
    }
    at_ += name.size();
    skip_space();
    return take("(") ? parse_call(name, begin) : named_number(name, begin);
  }

  NodePtr number(double x) const {
    NodePtr node = make(Op::number, false, {});
    node->number = x;
    return node;
  }
  NodePtr parse_number() {
    double x = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), x);
    if (error != std::errc()) fail(at_, fmt::format("expected a number; got \"{}\"", rest()));
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.')) {
      fail(at_, fmt::format("expected an operator behind the number; got \"{}\"", rest()));
    }
    skip_space();
    return number(x);
  }

  // --- Names. ---
  NodePtr named_number(std::string_view name, std::size_t begin) const {
    if (find_measure(name) || find_function(name)) {
      fail(begin, fmt::format("{} is a function: write {}(...)", name, name));
    }
    if (const auto exact = scope_.numbers.find(name); exact != scope_.numbers.end()) {
      return number(exact->second);
    }
    std::vector<std::string_view> fits, all;
    for (const auto& [path, value] : scope_.numbers) {
      all.push_back(path);
      if (std::string_view(path).ends_with(fmt::format(".{}", name))) fits.push_back(path);
    }
    if (fits.size() == 1) return number(scope_.numbers.find(fits[0])->second);
    if (fits.size() > 1) {
      fail(begin,
           fmt::format("\"{}\" may be {}: write one of them", name, fmt::join(fits, " or ")));
    }
    const std::string_view near = config::nearest_name(name, all);
    fail(begin,
         fmt::format("unknown name \"{}\"{}; a name is a number of the base configuration that "
                     "no arm changes, for instance vocab or optimizer.lr",
                     name,
                     near.empty() ? "" : fmt::format("; the nearest known name is \"{}\"", near)));
  }

  static const Function* find_function(std::string_view name) {
    for (const Function& f : kFunctions) {
      if (f.name == name) return &f;
    }
    return nullptr;
  }

  Argument parse_argument() {
    Argument argument;
    argument.at = at_;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const std::size_t end = text_.find(text_[at_], at_ + 1);
      if (end == std::string_view::npos) fail(at_, "the text in quotes does not end");
      argument.is_text = true;
      argument.text = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      skip_space();
    } else {
      argument.value = parse_or();
    }
    return argument;
  }

  NodePtr parse_call(std::string_view name, std::size_t begin) {
    std::vector<Argument> arguments;
    if (!take(")")) {
      do {
        arguments.push_back(parse_argument());
      } while (take(","));
      if (!take(")")) fail(at_, "expected \",\" or \")\"");
    }
    std::string written(text_.substr(begin, at_ - begin));
    while (!written.empty() && std::isspace(static_cast<unsigned char>(written.back())))
      written.pop_back();
    if (const Measure* measure = find_measure(name)) {
      return call_measure(*measure, std::move(arguments), begin, std::move(written));
    }
    if (const Function* function = find_function(name)) {
      return call_function(*function, std::move(arguments), begin);
    }
    std::vector<std::string_view> known = measure_names();
    for (const Function& f : kFunctions) known.push_back(f.name);
    fail(begin, fmt::format("unknown function \"{}\"{}", name, config::name_hint(name, known)));
  }

  NodePtr call_measure(const Measure& measure, std::vector<Argument> arguments, std::size_t begin,
                       std::string written) const {
    NodePtr node = make(Op::measure, measure.truth, {});
    std::vector<std::string> texts;
    for (const Argument& a : arguments) {
      if (a.is_text && node->numbers.empty()) {
        texts.push_back(a.text);
      } else if (!a.is_text && a.value->op == Op::number) {
        node->numbers.push_back(a.value->number);
      } else {
        fail(a.at, fmt::format("{} expects the name of an arm in quotes{}{}", measure.name,
                               measure.text ? ", then a text in quotes" : "",
                               measure.numbers > 0 ? ", then a number" : ""));
      }
    }
    if (texts.size() < (measure.text ? 2 : 1)) {
      fail(begin, fmt::format("{} expects the name of an arm in quotes{}", measure.name,
                              measure.text ? ", then a text in quotes" : ""));
    }
    if (measure.text) {
      node->text_argument = texts.back();
      texts.pop_back();
    }
    const std::string arm = fmt::format("{}", fmt::join(texts, ", "));
    if (node->numbers.size() != measure.numbers) {
      fail(begin,
           fmt::format("{} expects {} number{} behind the arm; got {}", measure.name,
                       measure.numbers, measure.numbers == 1 ? "" : "s", node->numbers.size()));
    }
    const auto found = std::find(scope_.arms.begin(), scope_.arms.end(), arm);
    if (found == scope_.arms.end()) {
      const std::vector<std::string_view> known(scope_.arms.begin(), scope_.arms.end());
      fail(begin, fmt::format("unknown arm \"{}\"{}", arm, config::name_hint(arm, known)));
    }
    node->measure = &measure;
    node->arm = static_cast<std::size_t>(found - scope_.arms.begin());
    node->per_seed = true;
    node->text = std::move(written);
    return node;
  }

  NodePtr call_function(const Function& function, std::vector<Argument> arguments,
                        std::size_t begin) const {
    const bool several = function.op == Op::min || function.op == Op::max;
    if (arguments.empty() || (arguments.size() > 1 && !several)) {
      fail(begin, fmt::format("{} expects {} value; got {}", function.name,
                              several ? "at least one" : "one", arguments.size()));
    }
    std::vector<NodePtr> children;
    for (Argument& a : arguments) {
      if (a.is_text) {
        fail(a.at, fmt::format("{} expects a value, for instance final(\"{}\"); got a text",
                               function.name, a.text));
      }
      expect(*a.value, function.of_truth, a.at, function.name);
      children.push_back(std::move(a.value));
    }
    if (children.size() > 1) {
      return make(function.op == Op::min ? Op::least : Op::greatest, false, std::move(children));
    }
    if (function.over_seeds && !children[0]->per_seed) {
      fail(begin, fmt::format(
                      "{} is over the seeds, and expects a value with one a seed; got a single one",
                      function.name));
    }
    NodePtr node = make(function.op, function.to_truth, std::move(children));
    if (function.over_seeds) node->per_seed = false;
    return node;
  }

  std::string_view text_;
  const Scope& scope_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

NodePtr parse_expression(std::string_view text, const Scope& scope) {
  return Parser(text, scope).parse();
}

}  // namespace norma::study
