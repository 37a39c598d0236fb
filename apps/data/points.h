// Generated points in classes: spirals in the plane, clouds in any space.
#pragma once

#include <memory>

#include "apps/data/labelled_arrays.h"

namespace norma {

// Point i is of class k = i mod classes: r (sin a, cos a) with r uniform in [0, 1) and a = 2 pi k /
// classes + 4 r + noise N(0, 1). The same points for every seed.
struct SpiralsConfig : ArrayOptions {
  static constexpr const char* type = "spirals";
  static constexpr const char* doc = "Points in the plane, on spiral arms, an arm a class.";
  static constexpr const char* source = "as in Stanford's CS231n";
  std::int64_t classes = 3;
  std::int64_t samples = 3000;
  double noise = 0.2;

  [[nodiscard]] static config::Fields fields();
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

// Point i is of class k = i mod classes: offset + center k + N(0, I), the centers being 2 N(0, I).
// The same points for every seed.
struct GaussiansConfig : ArrayOptions {
  static constexpr const char* type = "gaussians";
  static constexpr const char* doc = "Points around random centers, a center a class.";
  static constexpr const char* source = "as in scikit-learn's make_blobs";
  std::int64_t classes = 3;
  std::int64_t features = 2;
  std::int64_t samples = 3000;
  double offset = 0;

  [[nodiscard]] static config::Fields fields();
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

}  // namespace norma
