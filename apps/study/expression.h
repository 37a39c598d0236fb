// The language of claims: expressions over the results of a study.
//
//   all(final("post") > 4.0)
//   mean(final("pre")) < 0.9 * log(vocab) and not any(diverged("pre"))
//   max(final("deepnorm") - final("pre")) < 0.1
//   mean(min(final("post", "lr=*"), log(vocab))) - min(final("post", "lr=*")) > 0.5
//
// A measure (measures.h) of an arm is a list with a value a seed, in the order of the study's
// seeds. An arm is named by its text; with factors, by several: final("post", "lr=0.01") is the arm
// "post, lr=0.01". A glob ("post, lr=*": * stands for any characters, ? for one) names all arms
// that match: the list has their values behind each other, in the order of the plan.
// `published("arm or glob", "table")` is such a list too, of the study's published values.
//
// `+ - * / ^`, comparisons (`0.1 < x < 0.5` too), `and`, `or`, `not` act entry by entry, so that a
// difference of two arms is paired. Lists of as many arms pair by position; others are an error.
// `mean min max median std` make one number of a list, `mean_by_arm median_by_arm` one of each
// arm's seeds; `min` and `max` of several values take the least or greatest entry by entry;
// `all any count` make one answer of a list of yes and no. `log exp sqrt abs` are functions of
// numbers. Other names are numbers of the base configuration by dotted path (`model.layers`), or
// its last part alone where it is one only (`vocab`).
//
// Everything that can be wrong is found by parse(), before any run starts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/study/measures.h"

namespace norma::study {

// A published value for each arm, by index; nothing where none is known.
using PublishedTable = std::vector<std::optional<double>>;

// What an expression may speak of.
struct Scope {
  std::vector<std::string> arms;
  std::size_t seeds = 1;
  std::map<std::string, double, std::less<>> numbers;            // by dotted path
  std::map<std::string, PublishedTable, std::less<>> published;  // by name
  // What the word `arm` stands for, where an expression is written once for every arm: of figures
  // and of tables. There a measure that needs no more than the arm may stand without a call.
  std::optional<std::size_t> arm;
};

// Where evaluation finds a measure's value for the run of an arm and a seed (by index).
using MeasureValue = std::function<double(const Measure& measure, std::size_t arm, std::size_t seed,
                                          const MeasureArguments& arguments)>;

// One number, or a list. Yes and no are 1 and 0.
struct Value {
  bool truth = false;
  bool list = false;
  std::vector<double> values;
  // A value that a run lacks, or something that is not a number, was used: it decides nothing.
  bool missing = false;
};

// What a claim rests on: a call of a measure; or a comparison over several arms that is reduced to
// one answer.
struct Evidence {
  std::string text;  // final("post")
  std::vector<double> values;
  std::vector<std::string> arms;  // of the values, which stand arm by arm
  bool truth = false;
};

class Expression {
 public:
  struct Node;
  // Throws Error with the column and what is wrong: the form, an unknown name, arm or function,
  // a number where a yes or no belongs, lists that do not pair.
  [[nodiscard]] static Expression parse(std::string_view text, const Scope& scope);

  // `evidence`, where given, gets each text once, in the order of the evaluation.
  [[nodiscard]] Value evaluate(const MeasureValue& measured,
                               std::vector<Evidence>* evidence = nullptr) const;
  // True iff the value is a yes or no.
  [[nodiscard]] bool is_truth() const;
  [[nodiscard]] bool is_list() const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const std::vector<std::string>> arms_;
  std::shared_ptr<const Node> root_;
};

// The indices of the arms that the name or glob means; an arm of exactly that name is meant alone.
// Empty if there is none.
[[nodiscard]] std::vector<std::size_t> arms_of(std::string_view pattern,
                                               std::span<const std::string> arms);
// True iff the text has a sign of a glob.
[[nodiscard]] bool is_glob(std::string_view text);
// What to say of a name or a glob that fits none of the arms.
[[nodiscard]] std::string unknown_arm(std::string_view pattern,
                                      const std::vector<std::string_view>& arms);

// The value of an expression that must be a number which no run decides. Throws Error.
[[nodiscard]] double constant_of(std::string_view text, const Scope& scope);

}  // namespace norma::study
