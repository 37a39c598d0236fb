// Statistics over the seeds of an arm.
#pragma once

#include <cstddef>
#include <vector>

#include "apps/study/run_record.h"

namespace norma::study {

// Mean and sample deviation.
struct Spread {
  double mean = kMissing;
  double deviation = kMissing;  // of one value: missing
};
[[nodiscard]] Spread spread(const std::vector<double>& values);

// The mean of differences, and half the width of its 95 % interval.
struct Difference {
  double mean = kMissing;
  double half_width = kMissing;  // of one difference: missing
};
// Of values - reference, seed by seed: mean +- t s / sqrt(n), t the 97.5 % quantile of Student's t
// with n - 1 degrees of freedom, s the differences' sample deviation. Not finite: missing.
[[nodiscard]] Difference paired_difference(const std::vector<double>& values,
                                           const std::vector<double>& reference);

// The t with P(|T| < t) = share, for Student's t with so many degrees of freedom, 0 < share < 1.
// Source: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4, inverted by bisection.
[[nodiscard]] double student_quantile(double share, std::size_t degrees);

}  // namespace norma::study
