#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/kernels/gemm.h"
#include "core/kernels/pointwise.h"
#include "core/parallel.h"
#include "optim/adam.h"
#include "optim/globs.h"

namespace norma {
namespace {

constexpr int kIterations = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kEps = 1e-7;  // added to the norm

// Note [Small matrices]. The products of a small matrix are too short to be shared among threads,
// but there are many such matrices: they run side by side, each on one thread. Those whose products
// take more multiplications than this run one after the other, on all threads.
constexpr std::int64_t kSideBySide = 32 * 1024 * 1024;

bool is_small(std::int64_t rows, std::int64_t cols) {
  const std::int64_t side = std::min(rows, cols);
  return side * side * std::max(rows, cols) <= kSideBySide;
}

template <class T>
double norm_of(const T* x, std::int64_t n) {
  return std::sqrt(
      parallel_sum<double>(n, kernels::kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
        double sum = 0;
        for (std::int64_t i = begin; i < end; ++i) {
          sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
        }
        return sum;
      }));
}

// x (rows, cols) in place. With rows > cols the Gram matrix is X^T X and the products change sides,
// which equals transposing before and after.
template <class T>
void orthogonalize(std::int64_t rows, std::int64_t cols, T* x) {
  const std::int64_t n = rows * cols, side = std::min(rows, cols), inner = std::max(rows, cols);
  const auto multiply = [serial = is_small(rows, cols)](const kernels::Product& p, double alpha,
                                                        const T* a, const T* b, double beta, T* c) {
    const auto run = [&](auto gemm) {
      gemm(p, static_cast<T>(alpha), a, b, static_cast<T>(beta), c);
    };
    if (serial) {
      run([](const auto&... args) { kernels::gemm_serial(args...); });
    } else {
      run([](const auto&... args) { kernels::gemm(args...); });
    }
  };
  const T scale = static_cast<T>(1 / (norm_of(x, n) + kEps));
  parallel_for(n, kernels::kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) x[i] *= scale;
  });
  std::vector<T> gram(static_cast<std::size_t>(side * side)), poly(gram.size());
  std::vector<T> next(static_cast<std::size_t>(n));
  const bool tall = rows > cols;
  T* from = x;
  T* to = next.data();
  for (int k = 0; k < kIterations; ++k) {
    multiply({.m = side, .n = side, .k = inner, .transpose_a = tall, .transpose_b = !tall}, 1, from,
             from, 0, gram.data());
    std::copy(gram.begin(), gram.end(), poly.begin());
    multiply({.m = side, .n = side, .k = side}, kC, gram.data(), gram.data(), kB, poly.data());
    kernels::copy_bytes(from, to, n * static_cast<std::int64_t>(sizeof(T)));
    if (tall) {
      multiply({.m = rows, .n = cols, .k = side}, 1, from, poly.data(), kA, to);
    } else {
      multiply({.m = rows, .n = cols, .k = side}, 1, poly.data(), from, kA, to);
    }
    std::swap(from, to);
  }
  if (from != x) kernels::copy_bytes(from, x, n * static_cast<std::int64_t>(sizeof(T)));
}

std::int64_t rows_of(const Shape& shape) { return shape[0]; }
std::int64_t cols_of(const Shape& shape) { return shape.numel(1, shape.rank()); }

class Muon final : public Optimizer {
 public:
  Muon(const MuonConfig& config, FlatParametersPtr flat)
      : Optimizer(config, std::move(flat)),
        config_(config),
        first_(add_buffer("first_moment")),
        second_(parameters().make_buffer()) {
    rest_.betas = config.rest.betas;
    rest_.eps = config.rest.eps;
    const std::vector<std::string> usual = MuonConfig{}.not_hidden;
    for (const std::string& glob : config.not_hidden) {
      // The usual names need not occur; one that was given should.
      if (std::find(usual.begin(), usual.end(), glob) == usual.end()) {
        require_match("optimizer.not_hidden", glob, parameters());
      }
    }
    for (std::int64_t i = 0; i < parameters().count(); ++i) {
      const std::string& name = parameters().name(i);
      const bool excluded =
          std::any_of(config.not_hidden.begin(), config.not_hidden.end(),
                      [&](const std::string& glob) { return matches_glob(name, glob); });
      hidden_.push_back(parameters().tensor(i).rank() >= 2 && !excluded &&
                        parameters().tensor(i).numel() > 0);
      if (!hidden_.back()) add_state("second_moment." + name, parameters().slice(second_, i));
    }
  }

 private:
  void update(const Update& u) override {
    dispatch_compute(parameters().dtype(), "muon", [&]<class T>() {
      std::vector<kernels::Segment> rest;
      std::vector<kernels::AdamSetting> settings;
      std::vector<Member> small;
      for (const Member& m : u.members) {
        const StepSetting& s = u.settings[static_cast<std::size_t>(m.setting)];
        if (hidden_[static_cast<std::size_t>(m.index)]) {
          const Shape& shape = parameters().tensor(m.index).shape();
          if (is_small(rows_of(shape), cols_of(shape))) {
            small.push_back(m);
          } else {
            update_matrix<T>(m, u, first_.mutable_data<T>(),
                             parameters().weights().mutable_data<T>());
          }
          continue;
        }
        rest.push_back({parameters().begin(m.index), parameters().end(m.index),
                        static_cast<std::int32_t>(settings.size())});
        settings.push_back(adam_numbers(rest_, rest_rate(s.lr), rest_decay(m.index, s), s.step,
                                        /*decoupled=*/true));
      }
      T* momentum = first_.mutable_data<T>();
      T* w = parameters().weights().mutable_data<T>();
      parallel_for(static_cast<std::int64_t>(small.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       update_matrix<T>(small[static_cast<std::size_t>(i)], u, momentum, w);
                     }
                   });
      kernels::adam_update<T>(rest, settings, u.grad_scale, parameters().gradients().data<T>(),
                              first_.mutable_data<T>(), second_.mutable_data<T>(),
                              static_cast<T*>(nullptr), parameters().weights().mutable_data<T>());
    });
  }

  // The schedule scales both rates alike.
  [[nodiscard]] double rest_rate(double lr) const {
    return config_.lr > 0 ? lr / config_.lr * config_.rest.lr : 0;
  }
  [[nodiscard]] double rest_decay(std::int64_t i, const StepSetting& s) const {
    if (!setting(i).decays) return 0;
    return setting(i).own_decay ? s.weight_decay : config_.rest.weight_decay;
  }

  template <class T>
  void update_matrix(const Member& member, const Update& u, T* momentum, T* w) const {
    const StepSetting& s = u.settings[static_cast<std::size_t>(member.setting)];
    const Shape& shape = parameters().tensor(member.index).shape();
    const std::int64_t rows = rows_of(shape), cols = cols_of(shape), n = rows * cols;
    const std::int64_t begin = parameters().begin(member.index);
    const T* grad = parameters().gradients().template data<T>() + begin;
    momentum += begin;
    w += begin;
    const T blend = static_cast<T>(1 - config_.momentum);
    const T look = static_cast<T>(config_.nesterov ? config_.momentum : 1);
    const T scale = static_cast<T>(u.grad_scale);
    std::vector<T> x(static_cast<std::size_t>(n));
    parallel_for(n, kernels::kPointwiseGrain, [&, x = x.data()](std::int64_t b, std::int64_t e) {
      for (std::int64_t k = b; k < e; ++k) {
        const T g = grad[k] * scale;
        momentum[k] += blend * (g - momentum[k]);
        x[k] = g + look * (momentum[k] - g);
      }
    });
    orthogonalize(rows, cols, x.data());
    const double aspect = static_cast<double>(rows) / static_cast<double>(cols);
    const T size = static_cast<T>(s.lr * std::sqrt(std::max(1.0, aspect)));
    const T keep = static_cast<T>(1 - s.lr * s.weight_decay);
    parallel_for(n, kernels::kPointwiseGrain, [&, x = x.data()](std::int64_t b, std::int64_t e) {
      for (std::int64_t k = b; k < e; ++k) w[k] = keep * w[k] - size * x[k];
    });
  }

  MuonConfig config_;
  AdamOptions rest_;
  std::vector<bool> hidden_;
  Tensor first_, second_;
};

}  // namespace

config::Fields MuonRestConfig::fields() {
  using namespace config;
  return {field("lr", &MuonRestConfig::lr, "Peak rate, which the schedule scales.", at_least(0)),
          field("weight_decay", &MuonRestConfig::weight_decay, "Decoupled decay.", at_least(0)),
          field("betas", &MuonRestConfig::betas, "Memory of the first and the second moment.",
                at_least(0) & below(1)),
          field("eps", &MuonRestConfig::eps, "Added to the root of the second moment.", above(0))};
}

config::Fields MuonConfig::fields() {
  using namespace config;
  return OptimizerOptions::fields() +
         Fields{field("momentum", &MuonConfig::momentum, "Memory of the momentum.",
                      at_least(0) & below(1)),
                field("nesterov", &MuonConfig::nesterov, "Look ahead along the momentum."),
                field("not_hidden", &MuonConfig::not_hidden,
                      "Globs of matrices that `rest` updates: embeddings and heads."),
                field("rest", &MuonConfig::rest, "The AdamW for what is not a hidden matrix.")};
}

Tensor newton_schulz(const Tensor& x) {
  require(x.rank() >= 2, "newton_schulz: expected a matrix; got {}", x.shape());
  Tensor y = x.clone();
  dispatch_compute(x.dtype(), "newton_schulz", [&]<class T>() {
    orthogonalize(rows_of(x.shape()), cols_of(x.shape()), y.mutable_data<T>());
  });
  return y;
}

OptimizerPtr make_optimizer(const MuonConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<Muon>(config, std::move(parameters));
}

}  // namespace norma
