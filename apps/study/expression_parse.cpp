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
  bool of_truth;        // takes yes or no
  bool to_truth;        // gives yes or no
  bool of_list;         // takes a list, and makes one value of it
  bool by_arm = false;  // or of each arm's part of it
};

constexpr Function kFunctions[] = {
    {"mean", Op::mean, false, false, true},
    {"min", Op::min, false, false, true},
    {"max", Op::max, false, false, true},
    {"median", Op::median, false, false, true},
    {"std", Op::std_deviation, false, false, true},
    {"mean_by_arm", Op::mean, false, false, true, true},
    {"median_by_arm", Op::median, false, false, true, true},
    {"all", Op::all, true, true, true},
    {"any", Op::any, true, true, true},
    {"count", Op::count, true, false, true},
    {"log", Op::log, false, false, false},
    {"exp", Op::exp, false, false, false},
    {"sqrt", Op::sqrt, false, false, false},
    {"abs", Op::abs, false, false, false},
};

constexpr std::string_view kPublished = "published";  // a call, of a table of the study
constexpr std::string_view kArm = "arm";

// An argument of a call: a text in quotes, or a value.
struct Argument {
  bool is_text = false;
  std::string text;
  NodePtr value;
  std::size_t at = 0;
  std::size_t end = 0;  // behind it
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
    if (node->text.empty()) node->text = text_;
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
  // `at` is where lists that do not pair are reported.
  NodePtr make(Op op, bool truth, std::vector<NodePtr> children, std::size_t at) const {
    auto node = std::make_shared<Node>();
    node->op = op;
    node->truth = truth;
    for (const NodePtr& child : children) {
      if (!child->is_list()) continue;
      if (!node->is_list()) {
        node->arms = child->arms;
      } else if (node->arms.size() != child->arms.size()) {
        fail(at, fmt::format("lists over {} and {} arms do not pair; both must be over as many "
                             "arms, or one must be made a number, by mean() for instance",
                             node->arms.size(), child->arms.size()));
      }
      // One value an arm is paired with each of its seeds.
      node->seeds = std::max(node->seeds, child->seeds);
    }
    node->children.assign(children.begin(), children.end());
    return node;
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
      left = make(op, true, {left, right}, sign);
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
    NodePtr child = parse_not();
    --depth_;
    expect(*child, true, begin, "not");
    return make(Op::logical_not, true, {child}, begin);
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
      expect(*left, truth, begin, "a comparison");
      begin = at_;
      NodePtr right = parse_sum();
      expect(*right, truth, begin, "a comparison");
      NodePtr link = make(op, true, {left, right}, sign);
      whole = whole ? make(Op::logical_and, true, {whole, link}, sign) : link;
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
      expect(*left, false, begin, who);
      (void)take(std::string_view(&sign, 1));
      const std::size_t right_at = at_;
      NodePtr right = next();
      expect(*right, false, right_at, who);
      left = make(sign == a ? op_a : op_b, false, {left, right}, sign_at);
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
    NodePtr child = parse_sign();
    --depth_;
    expect(*child, false, begin, "\"-\"");
    return make(Op::negate, false, {child}, begin);
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
    return make(Op::power, false, {base, exponent}, begin);
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
    if (take("(")) return parse_call(name, begin);
    const Measure* measure = scope_.arm ? find_measure(name) : nullptr;
    return measure ? measure_of_arm(*measure, begin) : named_number(name, begin);
  }

  NodePtr number(double x) const {
    NodePtr node = make(Op::number, false, {}, 0);
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
    if (find_measure(name) || find_function(name) || name == kPublished) {
      fail(begin, fmt::format("{} is a function: write {}(...)", name, name));
    }
    if (const auto exact = scope_.numbers.find(name); exact != scope_.numbers.end()) {
      return number(exact->second);
    }
    std::vector<std::string_view> fits, all;
    if (scope_.arm) all = measure_names();
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
      if (!take(")")) fail(at_, "expected \",\" or \")\"");
    }
    if (const Measure* measure = find_measure(name)) {
      return call_measure(*measure, std::move(arguments), begin);
    }
    if (name == kPublished) return call_published(arguments, begin);
    if (const Function* function = find_function(name)) {
      return call_function(*function, std::move(arguments), begin);
    }
    std::vector<std::string_view> known = measure_names();
    for (const Function& f : kFunctions) known.push_back(f.name);
    known.push_back(kPublished);
    fail(begin, fmt::format("unknown function \"{}\"{}", name, config::name_hint(name, known)));
  }

  // What stands in [begin, end), without space behind it.
  std::string written(std::size_t begin, std::size_t end) const {
    while (end > begin && std::isspace(static_cast<unsigned char>(text_[end - 1]))) --end;
    return std::string(text_.substr(begin, end - begin));
  }

  // Names an arm by its parts, or several by a glob.
  void set_arms(Node& node, const std::vector<std::string>& parts, std::size_t begin) const {
    const std::string arm = fmt::format("{}", fmt::join(parts, ", "));
    node.arms = arms_of(arm, scope_.arms);
    node.seeds = scope_.seeds;
    node.text = written(begin, at_);
    if (!node.arms.empty()) return;
    const std::vector<std::string_view> known(scope_.arms.begin(), scope_.arms.end());
    if (is_glob(arm)) {
      fail(begin, fmt::format("\"{}\" matches no arm; the first arm is \"{}\"", arm,
                              known.empty() ? "" : known[0]));
    }
    fail(begin, fmt::format("unknown arm \"{}\"{}", arm, config::name_hint(arm, known)));
  }

  [[nodiscard]] const char* arm_words() const {
    return scope_.arm ? "the word arm, or the name of one in quotes"
                      : "the name of an arm in quotes";
  }

  NodePtr call_measure(const Measure& measure, std::vector<Argument> arguments,
                       std::size_t begin) const {
    NodePtr node = make(Op::measure, measure.truth, {}, begin);
    std::vector<std::string> texts;
    for (const Argument& a : arguments) {
      if (a.is_text && node->numbers.empty()) {
        texts.push_back(a.text);
      } else if (!a.is_text && a.value->op == Op::number) {
        node->numbers.push_back(a.value->number);
      } else {
        fail(a.at, fmt::format("{} expects {}{}{}", measure.name, arm_words(),
                               measure.text ? ", then a text in quotes" : "",
                               measure.numbers > 0 ? ", then a number" : ""));
      }
    }
    if (texts.size() < (measure.text ? 2 : 1)) {
      fail(begin, fmt::format("{} expects {}{}", measure.name, arm_words(),
                              measure.text ? ", then a text in quotes" : ""));
    }
    if (measure.text) {
      node->text_argument = texts.back();
      texts.pop_back();
    }
    if (node->numbers.size() != measure.numbers) {
      fail(begin,
           fmt::format("{} expects {} number{} behind the arm; got {}", measure.name,
                       measure.numbers, measure.numbers == 1 ? "" : "s", node->numbers.size()));
    }
    node->measure = &measure;
    set_arms(*node, texts, begin);
    return node;
  }

  // A measure's name alone.
  NodePtr measure_of_arm(const Measure& measure, std::size_t begin) const {
    std::vector<Argument> arguments(1);
    arguments[0].is_text = true;
    arguments[0].text = scope_.arms[*scope_.arm];
    return call_measure(measure, std::move(arguments), begin);
  }

  NodePtr call_published(const std::vector<Argument>& arguments, std::size_t begin) const {
    std::vector<std::string> texts;
    for (const Argument& a : arguments) {
      if (a.is_text) texts.push_back(a.text);
    }
    if (texts.size() < 2 || texts.size() != arguments.size()) {
      fail(begin, "published expects the name of an arm in quotes, then the name of a table");
    }
    const std::string name = texts.back();
    texts.pop_back();
    const auto table = scope_.published.find(name);
    if (table == scope_.published.end()) {
      std::vector<std::string_view> known;
      for (const auto& [known_name, values] : scope_.published) known.push_back(known_name);
      fail(begin, fmt::format("no table \"{}\" under the study's \"published\"{}", name,
                              known.empty() ? "" : config::name_hint(name, known)));
    }
    NodePtr node = make(Op::published, false, {}, begin);
    set_arms(*node, texts, begin);
    std::vector<std::string> without;
    for (const std::size_t arm : node->arms) {
      const std::optional<double>& value = table->second[arm];
      if (!value) without.push_back(fmt::format("\"{}\"", scope_.arms[arm]));
      node->published.push_back(value.value_or(0));
    }
    if (!without.empty()) {
      fail(begin,
           fmt::format("the table \"{}\" has no value for {}", name, fmt::join(without, ", ")));
    }
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
      return make(function.op == Op::min ? Op::least : Op::greatest, false, std::move(children),
                  begin);
    }
    const NodePtr child = children[0];
    if (function.of_list && !child->is_list()) {
      fail(begin, fmt::format(
                      "{} is over the seeds, and expects a value with one a seed; got a single one",
                      function.name));
    }
    NodePtr node = make(function.op, function.to_truth, std::move(children), begin);
    if (!function.of_list) return node;
    if (child->text.empty()) child->text = written(arguments[0].at, arguments[0].end);
    node->by_arm = function.by_arm;
    node->seeds = 1;
    if (!function.by_arm) node->arms.clear();
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
