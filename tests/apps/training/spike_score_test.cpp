#include "apps/training/spike_score.h"

#include <limits>

#include "tests/support/catch.h"

namespace norma::test {
namespace {

// 1, -1, 1, -1, ...: mean 0 and deviation 1 over an even number of values.
double alternating(int i) { return i % 2 == 0 ? 1 : -1; }

TEST_CASE("spike score: by hand", "[training]") {
  SpikeScore score;
  CHECK(score.percent() == 0);
  for (int i = 0; i < 199; ++i)
    score.add(i == 98 ? 1e6 : alternating(i));  // too early to be judged
  CHECK(score.percent() == 0);
  SpikeScore other;
  for (int i = 0; i < 198; ++i) other.add(alternating(i));
  other.add(6.99);
  CHECK(other.percent() == 0);
  SpikeScore third;
  for (int i = 0; i < 198; ++i) third.add(alternating(i));
  third.add(-7);  // at least seven
  CHECK(third.percent() == Approx(100.0 / 199));
  third.add(7);  // the spike itself has made the spread a little larger
  CHECK(third.percent() == Approx(100.0 / 200));
  third.add(std::numeric_limits<double>::quiet_NaN());
  third.add(std::numeric_limits<double>::infinity());
  CHECK(third.percent() == Approx(100.0 * 3 / 202));
}

TEST_CASE("spike score: the average rolls over the last 1000 values", "[training]") {
  SpikeScore score;
  for (int i = 0; i < 1000; ++i) score.add(1000 + alternating(i));
  for (int i = 0; i < 1000; ++i) score.add(alternating(i));
  // Leaving the old level is a spike until the spread has grown: with k values of the new level
  // among n, the distance is (n - k) / sqrt(k (n - k)) = sqrt((n - k) / k) deviations >= 7: k
  // <= 20.
  CHECK(score.percent() == Approx(100.0 * 20 / 2000));
  score.add(8);  // nothing of the old level is left
  CHECK(score.percent() == Approx(100.0 * 21 / 2001));
  SpikeScore flat;
  for (int i = 0; i < 500; ++i) flat.add(2.5);
  CHECK(flat.percent() == 0);
  flat.add(2.6);  // any step from a flat line
  CHECK(flat.percent() == Approx(100.0 / 501));
}

TEST_CASE("spike score: saved and put back, it goes on in the same bits", "[training]") {
  const auto value = [](int i) { return (i * 7919 % 1009) * (i % 131 == 0 ? 40.0 : 0.01); };
  SpikeScore whole, part;
  for (int i = 0; i < 2500; ++i) {
    whole.add(value(i));
    if (i % 333 == 0) {
      SpikeScore next;
      next.load_state(part.state("loss"), "loss");
      part = next;
    }
    part.add(value(i));
    REQUIRE(part.percent() == whole.percent());
  }
  CHECK(whole.percent() > 0);
  CHECK(whole.state("loss")[0].tensor.to_vector() == part.state("loss")[0].tensor.to_vector());
  NORMA_CHECK_ERROR(part.load_state({}, "loss"), "expected a tensor loss.window of f64");
}

}  // namespace
}  // namespace norma::test
