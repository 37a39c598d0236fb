// The language of claims: expressions over the results of a study.
//
//   all(final("post") > 4.0)
//   mean(final("pre")) < 0.9 * log(vocab) and not any(diverged("pre"))
//   max(final("deepnorm") - final("pre")) < 0.1
//
// A measure of an arm (measures.h) is a list with a value a seed, in the order of the study's
// seeds; `+ - * / ^`, comparisons (`0.1 < x < 0.5` too), `and`, `or`, `not` act seed by seed, so
// that a difference of two arms is paired. `mean min max median std` make one number of a list;
// `min` and `max` of several values take the least or greatest seed by seed; `all any count` make
// one answer of a list of yes and no. `log exp sqrt abs` are functions of numbers. An arm is named
// by its text; with factors, by several: final("post", "lr=0.01") is the arm "post, lr=0.01". Other
// names are numbers of the base configuration by dotted path (`model.layers`), or its last part
// alone where it is one only (`vocab`).
//
// Everything that can be wrong is found by parse(), before any run starts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/study/measures.h"

namespace norma::study {

// What an expression may speak of.
struct Scope {
  std::vector<std::string> arms;
  std::size_t seeds = 1;
  std::map<std::string, double, std::less<>> numbers;  // by dotted path
};

// Where evaluation finds a measure's value for the run of an arm and a seed (by index).
using MeasureValue = std::function<double(const Measure& measure, std::size_t arm, std::size_t seed,
                                          const MeasureArguments& arguments)>;

// One number, or one a seed. Yes and no are 1 and 0.
struct Value {
  bool truth = false;
  bool per_seed = false;
  std::vector<double> values;
  // A value that a run lacks, or something that is not a number, was used: it decides nothing.
  bool missing = false;
};

// A call of a measure that an evaluation made: what a claim rests on.
struct Evidence {
  std::string text;  // final("post")
  std::vector<double> values;
};

class Expression {
 public:
  struct Node;
  // Throws Error with the column and what is wrong: the form, an unknown name, arm or function,
  // a number where a yes or no belongs.
  [[nodiscard]] static Expression parse(std::string_view text, const Scope& scope);

  // `evidence`, where given, gets each measure call once, in the order of the text.
  [[nodiscard]] Value evaluate(const MeasureValue& measured,
                               std::vector<Evidence>* evidence = nullptr) const;
  // True iff the value is a yes or no.
  [[nodiscard]] bool is_truth() const;
  // True iff the value is a list with an entry a seed.
  [[nodiscard]] bool is_per_seed() const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t seeds_ = 1;
  std::shared_ptr<const Node> root_;
};

}  // namespace norma::study
