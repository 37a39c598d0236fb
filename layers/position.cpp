#include "layers/position.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace norma {

Tensor sinusoidal_table(std::int64_t length, std::int64_t width, DType dtype) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(length * width));
  for (std::int64_t t = 0; t < length; ++t) {
    for (std::int64_t c = 0; c < width; ++c) {
      const double exponent = static_cast<double>(c / 2 * 2) / static_cast<double>(width);
      const double angle = static_cast<double>(t) * std::pow(10000.0, -exponent);
      values.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return Tensor::from(Shape{length, width}, values, dtype);
}

std::vector<double> alibi_slopes(std::int64_t heads) {
  const auto of_power = [](std::int64_t n) {
    std::vector<double> slopes;
    for (std::int64_t i = 1; i <= n; ++i) {
      slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(n)));
    }
    return slopes;
  };
  const auto power = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(heads, 1))));
  std::vector<double> slopes = of_power(power);
  const std::vector<double> more = of_power(2 * power);
  for (std::size_t i = 0; slopes.size() < static_cast<std::size_t>(heads); i += 2) {
    slopes.push_back(more[i]);
  }
  return slopes;
}

Tensor alibi_bias(const std::vector<double>& slopes, std::int64_t queries, std::int64_t keys,
                  DType dtype) {
  std::vector<double> values;
  values.reserve(slopes.size() * static_cast<std::size_t>(queries * keys));
  for (double slope : slopes) {
    for (std::int64_t i = keys - queries; i < keys; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        values.push_back(-slope * static_cast<double>(std::abs(i - j)));
      }
    }
  }
  return Tensor::from(Shape{static_cast<std::int64_t>(slopes.size()), queries, keys}, values,
                      dtype);
}

void RelativePositionConfig::check(config::Problems& problems, const std::string& path) const {
  if (max_distance <= buckets / 2) {
    problems.add(config::join(path, "max_distance"),
                 "{} buckets tell the first {} distances apart one by one; give a distance above",
                 buckets, buckets / 2);
  }
}

std::int64_t relative_bucket(std::int64_t distance, Direction direction,
                             const RelativePositionConfig& config) {
  std::int64_t buckets = config.buckets, first = 0;
  if (direction == Direction::both) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(0, -distance);
  }
  const std::int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const auto n = static_cast<float>(exact);
  const float share =
      std::log(static_cast<float>(distance) / n) /
      static_cast<float>(std::log(static_cast<double>(config.max_distance) / exact));
  const auto far = static_cast<std::int64_t>(share * static_cast<float>(buckets - exact));
  return first + std::min(exact + far, buckets - 1);
}

}  // namespace norma
