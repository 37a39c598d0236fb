#include "apps/training/first_step.h"

#include <cmath>
#include <limits>

#include "core/autograd.h"

namespace norma {
namespace {

constexpr double kLeast = 1e-7, kMost = 10;
constexpr double kPrecision = 1.05;

// Parameters that can be moved, and are put back.
class Line {
 public:
  Line(const std::vector<Tensor>& parameters, const std::vector<std::vector<double>>& gradients)
      : parameters_(parameters) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      start_.push_back(parameters[i].to_vector());
      direction_.push_back(gradients[i]);
      for (double& g : direction_.back()) g /= std::abs(g) + kAdamEps;
    }
  }
  ~Line() { move(0); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void move(double lr) {
    const NoGrad off;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      std::vector<double> values = start_[i];
      for (std::size_t k = 0; k < values.size(); ++k) values[k] -= lr * direction_[i][k];
      parameters_[i].copy_(Tensor::from(parameters_[i].shape(), values, parameters_[i].dtype()));
    }
  }

 private:
  std::vector<Tensor> parameters_;
  std::vector<std::vector<double>> start_, direction_;
};

}  // namespace

double first_step_limit(const std::vector<Tensor>& parameters,
                        const std::vector<std::vector<double>>& gradients,
                        const std::function<double()>& loss) {
  const double before = loss();
  if (std::isnan(before)) return before;
  Line line(parameters, gradients);
  const auto lowers = [&](double lr) {
    line.move(lr);
    return loss() <= before;  // false where it is not a number
  };
  // From below, so that the first rate that fails is found and not one behind it.
  double good = 0, bad = kLeast;
  while (lowers(bad)) {
    good = bad;
    if (bad >= kMost) return std::numeric_limits<double>::infinity();
    bad *= 2;
  }
  while (good > 0 && bad / good > kPrecision) {
    const double middle = std::sqrt(good * bad);
    (lowers(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace norma
