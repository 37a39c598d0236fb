// The language of claims.
#include "apps/study/expression.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

namespace norma::study {
namespace {

// Three seeds; final("pre") = 0.1 0.2 0.3, final("post") = 4 5 6, best = half of it; "gone" has no
// result at seed 1, "nan" diverged at seed 2.
const Scope kScope{
    {"pre", "post", "gone", "nan", "post, lr=0.01"},
    3,
    {{"data.vocab", 64}, {"model.layers", 24}, {"encoder.layers", 2}, {"steps", 150}},
    {{"table", {0.5, 3.0, {}, INFINITY, 2.0}}},
    {}};

double measured(const Measure& measure, std::size_t arm, std::size_t seed,
                const MeasureArguments& arguments) {
  const auto s = static_cast<double>(seed);
  if (measure.name == "diverged") return arm == 3 && seed == 2;
  if (arm == 2 && seed == 1) return kMissing;
  if (arm == 3 && seed == 2) return std::numeric_limits<double>::infinity();
  const double final_loss = arm == 0 ? 0.1 * (s + 1) : arm == 4 ? 1.0 : 4 + s;
  if (measure.name == "best") return final_loss / 2;
  const auto text = static_cast<double>(arguments.text.size());
  return final_loss + text + (arguments.numbers.empty() ? 0 : arguments.numbers[0]);
}

Value evaluate(const std::string& text, std::vector<Evidence>* evidence = nullptr) {
  return Expression::parse(text, kScope).evaluate(measured, evidence);
}
double number(const std::string& text) {
  const Value value = evaluate(text);
  CHECK_FALSE(value.list);
  CHECK_FALSE(value.truth);
  return value.values.at(0);
}
bool truth(const std::string& text) {
  const Value value = evaluate(text);
  CHECK(value.truth);
  CHECK_FALSE(value.list);
  return value.values.at(0) != 0;
}

TEST_CASE("arithmetic binds as in mathematics", "[study]") {
  const auto [text, expected] = GENERATE(table<std::string, double>({
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"10 - 4 - 3", 3},
      {"16 / 4 / 2", 2},
      {"2 ^ 3 ^ 2", 512},
      {"-2 ^ 2", -4},
      {"2 ^ -1", 0.5},
      {"--3", 3},
      {"2 * -3", -6},
      {"1e-3 * 1E3", 1},
      {".5 + 0.25", 0.75},
      {"  7  ", 7},
      {"mean(probe(\"pre\", \"ab\", 1))", 3.2},  // a text of 2 letters, the number 1
      {"log(exp(2))", 2},
      {"sqrt(abs(-9))", 3},
      {"min(3, 1, 2)", 1},
      {"max(3, 1, 2)", 3},
  }));
  INFO(text);
  CHECK(number(text) == Approx(expected));
}

TEST_CASE("names are numbers of the configuration, by path or by the last part", "[study]") {
  CHECK(number("vocab") == 64);
  CHECK(number("data.vocab") == 64);
  CHECK(number("log(vocab)") == Approx(4.1588830833596715));
  CHECK(number("model.layers + steps") == 174);
  NORMA_CHECK_ERROR(evaluate("layers"), "\"layers\" may be encoder.layers or model.layers");
}

TEST_CASE("measures have a value a seed, and act seed by seed", "[study]") {
  const Value difference = evaluate("final(\"post\") - final(\"pre\")");
  CHECK(difference.list);
  REQUIRE(difference.values.size() == 3);
  CHECK(difference.values[0] == Approx(3.9));
  CHECK(difference.values[2] == Approx(5.7));
  CHECK(number("mean(final('pre'))") == Approx(0.2));
  CHECK(number("min(final('pre'))") == Approx(0.1));
  CHECK(number("max(final('pre'))") == Approx(0.3));
  CHECK(number("median(final('post'))") == 5);
  CHECK(number("std(final('post'))") == 1);  // the sample's: divided by 2
  CHECK(evaluate("max(final('pre'), 0.2)").values == std::vector<double>{0.2, 0.2, 0.1 * 3});
  CHECK(number("mean(loss('pre', 7))") == Approx(7.2));
  CHECK(number("mean(final('post', 'lr=0.01'))") == 1);
  CHECK(number("mean(best('post'))") == 2.5);
}

TEST_CASE("a glob is a list over the arms that match and their seeds", "[study]") {
  const Value both = evaluate("final('p*')");  // pre; post; post, lr=0.01
  CHECK(both.list);
  const std::vector<double> all = {0.1, 0.2, 0.1 * 3, 4, 5, 6, 1, 1, 1};
  CHECK(both.values == all);
  CHECK(evaluate("final('post', 'lr=*')").values == std::vector<double>{1, 1, 1});
  CHECK(evaluate("final('p?st')").values == std::vector<double>{4, 5, 6});
  CHECK(number("min(final('post*'))") == 1);
  CHECK(number("mean(final('post*'))") == 3);
  CHECK(evaluate("final('p*') - best('p*')").values[5] == 3);  // entry by entry
  CHECK(evaluate("final('post') * 0 + final('pre')").values[1] == 0.2);
  CHECK(truth("count(final('p*') > 4.5) == 2"));
  // Sensitivity to the rate: Wortsman et al. (2023), arXiv 2309.14322.
  CHECK(number("mean(min(final('post*'), log(vocab))) - min(final('post*'))") ==
        Approx((4 + 2 * 4.1588830833596715 + 3) / 6 - 1));
}

TEST_CASE("one value of each arm", "[study]") {
  CHECK(evaluate("median_by_arm(final('post*'))").values == std::vector<double>{5, 1});
  CHECK(evaluate("mean_by_arm(max(final('post*'), 5))").values[0] == Approx(16.0 / 3));
  CHECK(number("max(median_by_arm(final('p*')))") == 5);
  // It is paired with each seed of its arm.
  CHECK(evaluate("final('post*') - median_by_arm(final('post*'))").values ==
        std::vector<double>{-1, 0, 1, 0, 0, 0});
  CHECK(evaluate("median_by_arm(final('post*')) - final('post*')").values[0] == 1);
}

TEST_CASE("published values stand beside the measured ones", "[study]") {
  CHECK(evaluate("published('pre', 'table')").values == std::vector<double>{0.5, 0.5, 0.5});
  CHECK(evaluate("published('post', 'lr=0.01', 'table')").values[0] == 2);
  CHECK(evaluate("published('po*', 'table')").values == std::vector<double>{3, 3, 3, 2, 2, 2});
  CHECK(truth("all(published('nan', 'table') > 1e9)"));
  CHECK_FALSE(evaluate("published('nan', 'table') > 1").missing);
  // The same verdict: yes in both, no in both.
  CHECK(truth("count((final('p*') > 0.4) == (published('p*', 'table') > 0.4)) == 6"));
  CHECK(truth("all((final('p*') > 0.4) != (published('p*', 'table') < 0.4)) == (1 > 2)"));
}

TEST_CASE("comparisons, and, or, not", "[study]") {
  const auto [text, expected] = GENERATE(table<std::string, bool>({
      {"1 < 2", true},
      {"2 <= 2", true},
      {"2 < 2", false},
      {"3 > 2 > 1", true},
      {"0 < 3 < 2", false},
      {"1 == 1 and 1 != 2", true},
      {"1 > 2 or 2 > 1", true},
      {"not 1 > 2", true},
      {"not 1 < 2 or 1 < 2", true},  // (not ..) or ..
      {"1 > 2 and 1 > 2 or 1 < 2", true},
      {"all(final('post') > 3.9)", true},
      {"all(final('post') > 4.0)", false},
      {"any(final('post') > 5.5)", true},
      {"count(final('post') > 4.0) == 2", true},
      {"all(0.05 < final('pre') < 0.35)", true},
      {"all(0.15 < final('pre') < 0.35)", false},
      {"any(diverged('nan')) and not any(diverged('pre'))", true},
      {"mean(final('post')) > 0.9 * log(vocab)", true},
  }));
  INFO(text);
  CHECK(truth(text) == expected);
}

TEST_CASE("a diverged run counts as infinite, one without a result decides nothing", "[study]") {
  CHECK(truth("all(final('nan') > 3)"));
  CHECK_FALSE(evaluate("all(final('nan') > 3)").missing);
  CHECK(evaluate("all(final('gone') > 3)").missing);
  CHECK(evaluate("1 < 2 or any(final('gone') > 3)").missing);
  CHECK(evaluate("final('nan') - final('nan') < 1").missing);  // inf - inf is no number
  CHECK_FALSE(evaluate("final('pre') < 1").missing);
}

TEST_CASE("evidence has each measure once, as written", "[study]") {
  std::vector<Evidence> evidence;
  (void)evaluate("all(0 < final(\"pre\") < 1) and all(best('post', \"lr=0.01\") > 0)", &evidence);
  REQUIRE(evidence.size() == 2);
  CHECK(evidence[0].text == "final(\"pre\")");
  CHECK(evidence[0].values.size() == 3);
  CHECK(evidence[1].text == "best('post', \"lr=0.01\")");
  CHECK(evidence[1].arms == std::vector<std::string>{"post, lr=0.01"});
  // Over several arms the answers too, which are the argument of the reduction, or the whole.
  const std::string text = GENERATE("final('p*') > 0.15", "all( final('p*') > 0.15 )");
  std::vector<Evidence> several;
  (void)evaluate(text, &several);
  REQUIRE(several.size() == 2);
  CHECK(several[0].text == "final('p*')");
  CHECK(several[1].text == "final('p*') > 0.15");
  CHECK(several[1].truth);
  CHECK(several[1].values == std::vector<double>{0, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(several[1].arms == std::vector<std::string>{"pre", "post", "post, lr=0.01"});
}

TEST_CASE("errors say where, and what was meant", "[study]") {
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"", "column 1 of \"\": expected an expression; got nothing"},
      {"final(\"pots\") > 4", "unknown arm \"pots\"; the nearest known name is \"post\""},
      {"1 + fial(\"pre\")",
       "column 5 of \"1 + fial(\"pre\")\": unknown function \"fial\"; the nearest known name is "
       "\"final\""},
      {"vocabs", "unknown name \"vocabs\"; a name is a number"},
      {"data.vocap", "the nearest known name is \"data.vocab\""},
      {"final(\"q*\") > 4", "\"q*\" matches no arm; the first arm is \"pre\""},
      {"final(\"p*\") - final(\"pre\")", "column 13 of"},
      {"final(\"p*\") > final(\"pre\")", "lists over 3 and 1 arms do not pair"},
      {"median_by_arm(3)", "median_by_arm is over the seeds"},
      {"published(\"pre\")", "published expects the name of an arm in quotes, then the name of a"},
      {"published", "published is a function: write published(...)"},
      {"published(\"pre\", \"tabel\")",
       "no table \"tabel\" under the study's \"published\"; the nearest known name is \"table\""},
      {"published(\"*\", \"table\")", "the table \"table\" has no value for \"gone\""},
      {"(1 < 2) == 3", "a comparison expects a yes or no"},
      {"final(pre) < 1", "unknown name \"pre\""},
      {"final() < 1", "final expects the name of an arm in quotes"},
      {"final", "final is a function: write final(...)"},
      {"final(\"pre\", 3) < 1", "final expects 0 numbers behind the arm; got 1"},
      {"probe(\"pre\", 0) < 1",
       "probe expects the name of an arm in quotes, then a text in quotes"},
      {"probe(\"pre\", \"loss\") < 1", "probe expects 1 number behind the arm; got 0"},
      {"probe(\"pre\", 0, \"loss\") < 1", "then a text in quotes, then a number"},
      {"loss(\"pre\") < 1", "loss expects 1 number behind the arm; got 0"},
      {"loss(\"pre\", vocab < 1) < 1", "loss expects the name of an arm in quotes, then a number"},
      {"mean(3)", "mean is over the seeds, and expects a value with one a seed"},
      {"mean(\"pre\")", "mean expects a value, for instance final(\"pre\"); got a text"},
      {"all(final(\"pre\"))", "all expects a yes or no, as a comparison gives it; got a number"},
      {"mean(final(\"pre\") < 1)", "mean expects a number; got a yes or no"},
      {"(1 < 2) + 1", "\"+\" expects a number; got a yes or no"},
      {"1 + (1 < 2)", "column 5"},
      {"1 and 2 < 3", "and expects a yes or no"},
      {"2 < 3 or 1", "column 10"},
      {"not 1", "not expects a yes or no"},
      {"(1 < 2) < 3", "a comparison expects a number"},
      {"log(1, 2)", "log expects one value; got 2"},
      {"(1", "column 3 of \"(1\": expected \")\""},
      {"1)", "expected an operator or the end; got \")\""},
      {"1 2", "expected an operator or the end; got \"2\""},
      {"1 +", "expected a value; the expression ends"},
      {"* 2", "expected a value; got \"* 2\""},
      {"2x", "expected an operator behind the number"},
      {"1.2.3", "expected an operator behind the number"},
      {"\"pre\"", "a text in quotes stands in a call alone"},
      {"final(\"pre", "the text in quotes does not end"},
      {"1 = 1", "expected an operator or the end; got \"= 1\""},
      {"final(\"pre\" \"post\")", "expected \",\" or \")\""},
  }));
  const std::string wrong = text;  // a lambda cannot take a structured binding
  INFO(wrong);
  NORMA_CHECK_ERROR(Expression::parse(wrong, kScope), message);
}

TEST_CASE("brackets in brackets end with an error, not with the stack", "[study]") {
  for (const std::string open : {"(", "-", "not ", "2^"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += open;
    NORMA_CHECK_ERROR(Expression::parse(text + "1", kScope), "too many");
  }
}

}  // namespace
}  // namespace norma::study
