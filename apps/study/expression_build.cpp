#include "apps/study/expression_build.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/config/problems.h"
#include "core/error.h"

namespace norma::study {

struct Function {
  std::string_view name;
  Op op;
  bool of_truth;        // takes yes or no
  bool to_truth;        // gives yes or no
  bool of_list;         // takes a list, and makes one value of it
  bool by_arm = false;  // or of each arm's part of it
};

namespace {

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

const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

}  // namespace

void NodeBuilder::fail(std::size_t at, const std::string& what) const {
  throw Error::format("column {} of \"{}\": {}", at + 1, text_, what);
}

void NodeBuilder::expect(const Expression::Node& node, bool truth, std::size_t at,
                         std::string_view who) const {
  if (node.truth == truth) return;
  fail(at, fmt::format("{} expects {}; got {}", who,
                       truth ? "a yes or no, as a comparison gives it" : "a number",
                       truth ? "a number" : "a yes or no"));
}

NodePtr NodeBuilder::make(Op op, bool truth, std::vector<NodePtr> children, std::size_t at) const {
  auto node = std::make_shared<Expression::Node>();
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

NodePtr NodeBuilder::number(double x) const {
  NodePtr node = make(Op::number, false, {}, 0);
  node->number = x;
  return node;
}

NodePtr NodeBuilder::named_number(std::string_view name, std::size_t begin) const {
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
    fail(begin, fmt::format("\"{}\" may be {}: write one of them", name, fmt::join(fits, " or ")));
  }
  const std::string_view near = config::nearest_name(name, all);
  fail(begin,
       fmt::format("unknown name \"{}\"{}; a name is a number of the base configuration that "
                   "no arm changes, for instance vocab or optimizer.lr",
                   name,
                   near.empty() ? "" : fmt::format("; the nearest known name is \"{}\"", near)));
}

NodePtr NodeBuilder::name(std::string_view name, std::size_t begin, std::size_t end) const {
  const Measure* measure = scope_.arm ? find_measure(name) : nullptr;
  if (!measure) return named_number(name, begin);
  std::vector<Argument> arguments(1);
  arguments[0].is_text = true;
  arguments[0].text = scope_.arms[*scope_.arm];
  return call_measure(*measure, arguments, begin, end);
}

NodePtr NodeBuilder::call(std::string_view name, std::vector<Argument> arguments, std::size_t begin,
                          std::size_t end) const {
  if (const Measure* measure = find_measure(name)) {
    return call_measure(*measure, arguments, begin, end);
  }
  if (name == kPublished) return call_published(arguments, begin, end);
  if (const Function* function = find_function(name)) {
    return call_function(*function, std::move(arguments), begin);
  }
  std::vector<std::string_view> known = measure_names();
  for (const Function& f : kFunctions) known.push_back(f.name);
  known.push_back(kPublished);
  fail(begin, fmt::format("unknown function \"{}\"{}", name, config::name_hint(name, known)));
}

std::string NodeBuilder::written(std::size_t begin, std::size_t end) const {
  while (end > begin && std::isspace(static_cast<unsigned char>(text_[end - 1]))) --end;
  return std::string(text_.substr(begin, end - begin));
}

void NodeBuilder::set_arms(Expression::Node& node, const std::vector<std::string>& parts,
                           std::size_t begin, std::size_t end) const {
  const std::string arm = fmt::format("{}", fmt::join(parts, ", "));
  node.arms = arms_of(arm, scope_.arms);
  node.seeds = scope_.seeds;
  node.text = written(begin, end);
  if (!node.arms.empty()) return;
  const std::vector<std::string_view> known(scope_.arms.begin(), scope_.arms.end());
  fail(begin, unknown_arm(arm, known));
}

const char* NodeBuilder::arm_words() const {
  return scope_.arm ? "the word arm, or the name of one in quotes" : "the name of an arm in quotes";
}

NodePtr NodeBuilder::call_measure(const Measure& measure, const std::vector<Argument>& arguments,
                                  std::size_t begin, std::size_t end) const {
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
         fmt::format("{} expects {} number{} behind the arm; got {}", measure.name, measure.numbers,
                     measure.numbers == 1 ? "" : "s", node->numbers.size()));
  }
  node->measure = &measure;
  set_arms(*node, texts, begin, end);
  return node;
}

NodePtr NodeBuilder::call_published(const std::vector<Argument>& arguments, std::size_t begin,
                                    std::size_t end) const {
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
  set_arms(*node, texts, begin, end);
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

NodePtr NodeBuilder::call_function(const Function& function, std::vector<Argument> arguments,
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
    fail(begin,
         fmt::format("{} is over the seeds, and expects a value with one a seed; got a single one",
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

}  // namespace norma::study
