#include "apps/data/points.h"

#include <cmath>
#include <numbers>

#include "core/random.h"

namespace norma {
namespace {

// n points of `features` numbers and their classes, 0, 1, ..., classes - 1, 0, 1, ...
LabelledArrays make_points(std::int64_t n, std::int64_t features, std::int64_t classes) {
  LabelledArrays points;
  points.inputs = Tensor::empty({n, features});
  points.labels = Tensor::empty({n}, DType::i64);
  for (std::int64_t i = 0; i < n; ++i) {
    points.labels.mutable_data<std::int64_t>()[i] = i % classes;
  }
  return points;
}

}  // namespace

config::Fields SpiralsConfig::fields() {
  using namespace config;
  return Fields{field("classes", &SpiralsConfig::classes, "Arms.", between(2, 1e6)),
                field("samples", &SpiralsConfig::samples, "Points of all arms.", between(1, 1e8)),
                field("noise", &SpiralsConfig::noise, "Deviation of the angle.", at_least(0))} +
         array_fields();
}

std::unique_ptr<DataSet> SpiralsConfig::make(const DataContext& run) const {
  LabelledArrays points = make_points(samples, 2, classes);
  RandomStream random(random_key(0, "data/spirals"));
  float* x = points.inputs.mutable_data<float>();
  for (std::int64_t i = 0; i < samples; ++i) {
    const double arm = static_cast<double>(i % classes) / static_cast<double>(classes);
    const double r = random.uniform();
    const double angle = 2 * std::numbers::pi * arm + 4 * r + noise * random.normal();
    x[2 * i] = static_cast<float>(r * std::sin(angle));
    x[2 * i + 1] = static_cast<float>(r * std::cos(angle));
  }
  return std::make_unique<LabelledArraysDataSet>(type, std::move(points), *this, run.seed);
}

config::Fields GaussiansConfig::fields() {
  using namespace config;
  return Fields{
             field("classes", &GaussiansConfig::classes, "Centers.", between(2, 1e6)),
             field("features", &GaussiansConfig::features, "Numbers of a point.", between(1, 1e6)),
             field("samples", &GaussiansConfig::samples, "Points of all classes.", between(1, 1e8)),
             field("offset", &GaussiansConfig::offset,
                   "Added to every number: without `normalize`, a mean far from 0.")} +
         array_fields();
}

std::unique_ptr<DataSet> GaussiansConfig::make(const DataContext& run) const {
  LabelledArrays points = make_points(samples, features, classes);
  Tensor centers = Tensor::empty({classes, features});
  fill_normal(centers, 0, 2, random_key(0, "data/gaussians/centers"));
  fill_normal(points.inputs, offset, 1, random_key(0, "data/gaussians"));
  float* x = points.inputs.mutable_data<float>();
  for (std::int64_t i = 0; i < samples; ++i) {
    const float* center = centers.data<float>() + i % classes * features;
    for (std::int64_t f = 0; f < features; ++f) *x++ += center[f];
  }
  return std::make_unique<LabelledArraysDataSet>(type, std::move(points), *this, run.seed);
}

}  // namespace norma
