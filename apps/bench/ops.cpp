#include "apps/bench/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "apps/bench/compare.h"
#include "apps/bench/machine.h"
#include "core/autograd.h"
#include "core/ops/activations.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/norm_channels.h"
#include "core/ops/norm_rows.h"
#include "core/ops/softmax.h"
#include "core/random.h"
#include "optim/adamw.h"

namespace norma::bench {
namespace {

constexpr double kAim = 0.8;

struct OpBench {
  std::string name;
  Shape shape;
  std::function<Tensor(const Tensor& x)> run;     // undefined: AdamW
  double forward_bytes = 8, backward_bytes = 12;  // an element
};

Tensor random(const Shape& shape) {
  Tensor x = Tensor::empty(shape);
  fill_normal(x, 0, 1, random_key(0, "bench/ops"));
  return x;
}

Tensor gain(const Shape& shape) { return Tensor::ones(shape).set_requires_grad(); }
Tensor shift(const Shape& shape) { return Tensor::zeros(shape).set_requires_grad(); }

// The ops on a matrix, or on images; what works on rows takes a plane of an image as a row.
std::vector<OpBench> ops_at(const Shape& shape) {
  const bool images = shape.rank() == 4;
  const Shape rows = images ? Shape{shape[0] * shape[1], shape[2] * shape[3]} : shape;
  const Shape features = images ? shape.sub(1, 4) : Shape{shape[1]};
  const Shape channels{shape[1]}, cols{rows[1]};
  std::vector<std::int64_t> ids(static_cast<std::size_t>(rows[0]));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int64_t>(i) * 7 % rows[1];
  }
  const Tensor targets = Tensor::from_ids({rows[0]}, ids);
  const auto layer = [features, w = gain(features), b = shift(features)](const Tensor& x) {
    return layer_norm(x, w, b, {.axes = features.rank()});
  };
  return {
      {"layer_norm", shape, layer},
      {"rms_norm", rows, [w = gain(cols)](const Tensor& x) { return rms_norm(x, w); }},
      {"group_norm", shape,
       [w = gain(channels), b = shift(channels)](const Tensor& x) {
         return group_norm(x, w, b, {.groups = 8});
       }},
      {"batch_norm", shape,
       [w = gain(channels), b = shift(channels)](const Tensor& x) {
         return batch_norm(x, w, b, {});
       }},
      {"softmax", rows, [](const Tensor& x) { return softmax(x); }},
      {"gelu", rows, [](const Tensor& x) { return gelu(x); }},
      {"cross_entropy", rows, [targets](const Tensor& x) { return cross_entropy(x, targets); }, 4,
       8},
      {"adamw", rows, nullptr, 28, 0},
  };
}

struct Times {
  double forward = 0, backward = 0;  // seconds
};

std::int64_t sets_of(std::int64_t bytes) { return 4 * last_cache_bytes() / bytes + 1; }

Times time_op(const OpBench& op, double seconds) {
  const std::int64_t n = op.shape.numel();
  const std::int64_t sets =
      std::max<std::int64_t>(3, sets_of(static_cast<std::int64_t>(op.forward_bytes) * n));
  const auto count = static_cast<std::size_t>(sets);
  std::vector<Tensor> x(count), y(count), dy(count);
  const Tensor values = random(op.shape);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = values.clone().set_requires_grad();
    x[i].set_grad_buffer(Tensor::zeros(op.shape));
  }
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  Times t;
  t.forward = median_seconds(sets, seconds, [&](std::int64_t i) { y[at(i)] = op.run(x[at(i)]); });
  for (std::size_t i = 0; i < count; ++i) {
    dy[i] = y[i].numel() == 1 ? Tensor::ones(y[i].shape()) : values.clone();
  }
  t.backward = median_seconds(
      sets, seconds, [&](std::int64_t i) { backward(y[at(i)], dy[at(i)], {.retain_graph = true}); },
      [&](std::int64_t i) { x[at(i)].clear_grad(); });
  return t;
}

Times time_adamw(const Shape& shape, double seconds) {
  const std::int64_t sets = sets_of(16 * shape.numel());
  std::vector<OptimizerPtr> optimizers;
  const Tensor values = random(shape);
  for (std::int64_t i = 0; i < sets; ++i) {
    Tensor w = values.clone().set_requires_grad();
    optimizers.push_back(make_optimizer(AdamWConfig(), flatten({{"w", w}})));
    w.set_grad(w.grad_buffer());
    w.grad().copy_(values);
  }
  return {
      median_seconds(sets, seconds,
                     [&](std::int64_t i) { optimizers[static_cast<std::size_t>(i)]->step(1e-4); }),
      0};
}

std::string cell(double seconds, double bytes, double copy) {
  if (seconds == 0) return fmt::format(" {:>8} {:>6} {:<7}", "", "", "");
  const double share = bytes / seconds / 1e9 / copy;
  return fmt::format(" {:>8.3f} {:>5.0f}% {:<7}", 1e3 * seconds, 100 * share,
                     verdict(share >= kAim));
}

std::string norms_in_a_step(double seconds) {
  std::string text =
      fmt::format("\n{:<22} {:>9} {:>9} {:>9} {:>16} {:>14}\n", "a step, ms", "LayerNorm",
                  "RMSNorm", "no norm", "RMSNorm saves", "norms' share");
  for (const char* workload : {"gpt-nano", "gpt-baby", "deep"}) {
    double layer = std::numeric_limits<double>::infinity(), rms = layer, none = layer;
    for (int round = 0; round < 3; ++round) {
      const auto step = [&](const char* norm, double& best) {
        const std::string variant = fmt::format("{}:norm={}", workload, norm);
        best =
            std::min(best, run_workload(variant, {.seconds = seconds}, std::nullopt).own.ms_median);
      };
      step("layer_norm", layer);
      step("rms_norm", rms);
      step("none", none);
    }
    text += fmt::format("{:<22} {:>9.3f} {:>9.3f} {:>9.3f} {:>15.1f}% {:>13.1f}%\n", workload,
                        layer, rms, none, 100 * (1 - rms / layer), 100 * (1 - none / layer));
  }
  return text;
}

}  // namespace

std::string op_table(double seconds) {
  const double copy = measure_copy_rate(seconds);
  std::string text = fmt::format("{:<14} {:<18} {:>8} {:>6} {:<7} {:>8} {:>6}\n", "op", "shape",
                                 "fwd ms", "share", "", "bwd ms", "share");
  std::string beside = fmt::format("\n{:<22} {:>10} {:>10} {:>14}\n", "forward and backward",
                                   "LayerNorm ms", "RMSNorm ms", "RMSNorm saves");
  for (const Shape& shape : {Shape{2048, 768}, Shape{4096, 1024}, Shape{64, 64, 28, 28}}) {
    double layer = 0, rms = 0;
    for (const OpBench& op : ops_at(shape)) {
      const double n = static_cast<double>(op.shape.numel());
      const Times t = op.run ? time_op(op, seconds) : time_adamw(op.shape, seconds);
      text += fmt::format("{:<14} {:<18}{}{}\n", op.name, op.shape,
                          cell(t.forward, n * op.forward_bytes, copy),
                          cell(t.backward, n * op.backward_bytes, copy));
      if (op.name == "layer_norm") layer = t.forward + t.backward;
      if (op.name == "rms_norm") rms = t.forward + t.backward;
    }
    beside += fmt::format("{:<22} {:>12.3f} {:>10.3f} {:>13.0f}%\n", shape, 1e3 * layer, 1e3 * rms,
                          100 * (1 - rms / layer));
  }
  text += fmt::format(
      "Share: of the {:.1f} GB/s of a copy, for the bytes that must move; >= {:.0f}%.\n", copy,
      100 * kAim);
  return text + beside + norms_in_a_step(seconds);
}

}  // namespace norma::bench
