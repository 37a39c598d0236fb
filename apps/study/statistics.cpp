#include "apps/study/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace norma::study {
namespace {

// P(|T| < t) with t = sqrt(degrees) tan(angle).
double student_share(double angle, std::size_t degrees) {
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  // odd: cos + 2/3 cos^3 + 2/3 4/5 cos^5 ...; even: 1 + 1/2 cos^2 + 1/2 3/4 cos^4 ...
  double term = odd ? cosine : 1, sum = 0;
  for (std::size_t k = odd ? 1 : 0; k + 1 < degrees; k += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(k + 1) / static_cast<double>(k + 2);
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

}  // namespace

Spread spread(const std::vector<double>& values) {
  Spread s;
  if (values.empty()) return s;
  double sum = 0, squares = 0;
  for (const double x : values) sum += x;
  s.mean = sum / static_cast<double>(values.size());
  for (const double x : values) squares += (x - s.mean) * (x - s.mean);
  if (values.size() > 1) s.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return s;
}

double student_quantile(double share, std::size_t degrees) {
  double low = 0, high = std::numbers::pi / 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (student_share(middle, degrees) < share ? low : high) = middle;
  }
  return std::sqrt(static_cast<double>(degrees)) * std::tan(low);
}

Difference paired_difference(const std::vector<double>& values,
                             const std::vector<double>& reference) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(values.size(), reference.size()); ++i)
    differences.push_back(values[i] - reference[i]);
  const Spread s = spread(differences);
  if (!std::isfinite(s.mean)) return {};
  const std::size_t n = differences.size();
  if (n < 2) return {s.mean, kMissing};
  constexpr double kShare = 0.95;
  return {s.mean,
          student_quantile(kShare, n - 1) * s.deviation / std::sqrt(static_cast<double>(n))};
}

}  // namespace norma::study
