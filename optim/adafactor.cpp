#include "optim/adafactor.h"

#include <cmath>
#include <limits>

#include "core/kernels/factored.h"

namespace norma {
namespace {

kernels::FactoredShape factored_shape(const Shape& shape) {
  const int rank = shape.rank();
  if (rank < 2) return {.batch = 1, .rows = 1, .cols = shape.numel(), .factored = false};
  return {.batch = shape.numel(0, rank - 2),
          .rows = shape[rank - 2],
          .cols = shape[rank - 1],
          .factored = true};
}

class Adafactor final : public Optimizer {
 public:
  Adafactor(const AdafactorConfig& config, FlatParametersPtr flat)
      : Optimizer(config, std::move(flat)), config_(config) {
    for (std::int64_t i = 0; i < parameters().count(); ++i) {
      const Shape& shape = parameters().tensor(i).shape();
      const std::string& name = parameters().name(i);
      const DType dtype = parameters().dtype();
      Factors f;
      if (shape.rank() < 2) {
        f.row = Tensor::zeros(shape, dtype);
        add_state("second_moment." + name, f.row);
      } else {
        Shape columns = shape.sub(0, shape.rank() - 2);
        columns.push_back(shape[-1]);
        f.row = Tensor::zeros(shape.sub(0, shape.rank() - 1), dtype);
        f.col = Tensor::zeros(columns, dtype);
        add_state("second_moment_rows." + name, f.row);
        add_state("second_moment_columns." + name, f.col);
      }
      factors_.push_back(std::move(f));
    }
  }

 private:
  struct Factors {
    Tensor row, col;  // a vector has no col
  };

  void update(const Update& u) override {
    dispatch_compute(parameters().dtype(), "adafactor", [&]<class T>() {
      for (const Member& m : u.members) {
        update_one<T>(m.index, u.settings[static_cast<std::size_t>(m.setting)], u.grad_scale);
      }
    });
  }

  template <class T>
  void update_one(std::int64_t i, const StepSetting& s, double grad_scale) {
    const kernels::FactoredShape shape = factored_shape(parameters().tensor(i).shape());
    const std::int64_t begin = parameters().begin(i);
    const T* grad = parameters().gradients().data<T>() + begin;
    T* w = parameters().weights().mutable_data<T>() + begin;
    Factors& f = factors_[static_cast<std::size_t>(i)];
    T* row = f.row.mutable_data<T>();
    T* col = pointer<T>(f.col);

    const double t = static_cast<double>(s.step);
    const double numel = static_cast<double>(parameters().tensor(i).numel());
    const double eps = config_.eps[0].value_or(std::numeric_limits<T>::epsilon());
    const kernels::Segment own{begin, parameters().end(i), 0};
    const double rms_w = std::sqrt(
        kernels::sum_of_squares<T>({&own, 1}, parameters().weights().data<T>(), 1) / numel);
    kernels::factored_moments<T>(shape, grad, grad_scale, std::pow(t, config_.beta2_decay), row,
                                 col);
    const double rms_u = std::sqrt(
        kernels::factored_sum_of_squares<T>(shape, grad, grad_scale, eps, row, col) / numel);
    const double size = std::max(config_.eps[1].value_or(0), rms_w) *
                        std::min(s.lr, 1 / std::sqrt(t)) / std::max(1.0, rms_u / config_.d);
    kernels::factored_update<T>(shape, grad, grad_scale, eps, 1 - s.lr * s.weight_decay, size, row,
                                col, w);
  }

  AdafactorConfig config_;
  std::vector<Factors> factors_;
};

}  // namespace

config::Fields AdafactorConfig::fields() {
  using namespace config;
  return OptimizerOptions::fields() +
         Fields{field("beta2_decay", &AdafactorConfig::beta2_decay,
                      "Power of the step by which the second moment takes in a new square.",
                      at_most(0)),
                field("eps", &AdafactorConfig::eps,
                      "Least root of the second moment (null: the type's epsilon), least size of "
                      "the weights."),
                field("d", &AdafactorConfig::d, "Largest root mean square of an update.",
                      at_least(1))};
}

void AdafactorConfig::check(config::Problems& problems, const std::string& path) const {
  if (eps[0] && !(*eps[0] > 0)) {
    problems.add(config::join(config::join(path, "eps"), 0), "must be above 0; got {}", *eps[0]);
  }
  if (!eps[1] || !(*eps[1] >= 0)) {
    problems.add(config::join(config::join(path, "eps"), 1), "must be a number of at least 0");
  }
}

OptimizerPtr make_optimizer(const AdafactorConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<Adafactor>(config, std::move(parameters));
}

}  // namespace norma
