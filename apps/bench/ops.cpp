#include "apps/bench/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <span>
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
  Medians forward, backward;  // beside a copy
};

Times time_op(const OpBench& op, double seconds, Copies& copies) {
  const auto copy = [&] { copies.next(); };
  const std::int64_t n = op.shape.numel();
  const std::int64_t sets =
      std::max<std::int64_t>(3, sets_past_cache(static_cast<std::int64_t>(op.forward_bytes) * n));
  const auto count = static_cast<std::size_t>(sets);
  std::vector<Tensor> x(count), y(count), dy(count);
  const Tensor values = random(op.shape);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = values.clone().set_requires_grad();
    x[i].set_grad_buffer(Tensor::zeros(op.shape));
  }
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  Times t;
  t.forward = median_seconds(
      sets, seconds, [&](std::int64_t i) { y[at(i)] = op.run(x[at(i)]); }, {}, copy);
  for (std::size_t i = 0; i < count; ++i) {
    dy[i] = y[i].numel() == 1 ? Tensor::ones(y[i].shape()) : values.clone();
  }
  t.backward = median_seconds(
      sets, seconds, [&](std::int64_t i) { backward(y[at(i)], dy[at(i)], {.retain_graph = true}); },
      [&](std::int64_t i) { x[at(i)].clear_grad(); }, copy);
  return t;
}

Times time_adamw(const Shape& shape, double seconds, Copies& copies) {
  const std::int64_t sets = sets_past_cache(16 * shape.numel());
  std::vector<OptimizerPtr> optimizers;
  const Tensor values = random(shape);
  for (std::int64_t i = 0; i < sets; ++i) {
    Tensor w = values.clone().set_requires_grad();
    optimizers.push_back(make_optimizer(AdamWConfig(), flatten({{"w", w}})));
    w.set_grad(w.grad_buffer());
    w.grad().copy_(values);
  }
  return {median_seconds(
              sets, seconds,
              [&](std::int64_t i) { optimizers[static_cast<std::size_t>(i)]->step(1e-4); }, {},
              [&] { copies.next(); }),
          {}};
}

// Bytes a second, by those of the copy beside it.
std::string cell(const Medians& m, double bytes) {
  if (m.call == 0) return fmt::format(" {:>8} {:>6} {:<7}", "", "", "");
  const double share = bytes / m.call / (Copies::kBytes / m.beside);
  return fmt::format(" {:>8.3f} {:>5.0f}% {:<7}", 1e3 * m.call, 100 * share,
                     verdict(share >= kAim));
}

std::string norms_in_a_step(double seconds) {
  std::string text =
      fmt::format("\n{:<22} {:>9} {:>9} {:>9} {:>16} {:>14}\n", "a step, ms", "LayerNorm",
                  "RMSNorm", "no norm", "RMSNorm saves", "norms' share");
  constexpr const char* kNorms[] = {"layer_norm", "rms_norm", "none"};
  for (const char* workload : {"gpt-nano", "gpt-baby", "deep"}) {
    const std::vector<double> ms = least_in_turns(std::size(kNorms), [&](std::size_t i) {
      const std::string variant = fmt::format("{}:norm={}", workload, kNorms[i]);
      return run_workload(variant, {.seconds = seconds}, std::nullopt).own.ms_median;
    });
    text += fmt::format("{:<22} {:>9.3f} {:>9.3f} {:>9.3f} {:>15.1f}% {:>13.1f}%\n", workload,
                        ms[0], ms[1], ms[2], 100 * (1 - ms[1] / ms[0]), 100 * (1 - ms[2] / ms[0]));
  }
  return text;
}

}  // namespace

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpBench& op : ops_at({1, 1})) names.push_back(op.name);
  return names;
}

std::string op_table(double seconds, std::span<const std::string> only) {
  Copies copies;
  double slowest = 0, fastest = std::numeric_limits<double>::infinity();
  std::string text = fmt::format("{:<14} {:<18} {:>8} {:>6} {:<7} {:>8} {:>6}\n", "op", "shape",
                                 "fwd ms", "share", "", "bwd ms", "share");
  std::string beside = fmt::format("\n{:<22} {:>10} {:>10} {:>14}\n", "forward and backward",
                                   "LayerNorm ms", "RMSNorm ms", "RMSNorm saves");
  for (const Shape& shape : {Shape{2048, 768}, Shape{4096, 1024}, Shape{64, 64, 28, 28}}) {
    double layer = 0, rms = 0;
    for (const OpBench& op : ops_at(shape)) {
      if (!only.empty() && std::find(only.begin(), only.end(), op.name) == only.end()) continue;
      const double n = static_cast<double>(op.shape.numel());
      const Times t = op.run ? time_op(op, seconds, copies) : time_adamw(op.shape, seconds, copies);
      text += fmt::format("{:<14} {:<18}{}{}\n", op.name, op.shape,
                          cell(t.forward, n * op.forward_bytes),
                          cell(t.backward, n * op.backward_bytes));
      for (const Medians& m : {t.forward, t.backward}) {
        if (m.call == 0) continue;  // AdamW has no backward
        slowest = std::max(slowest, m.beside);
        fastest = std::min(fastest, m.beside);
      }
      if (op.name == "layer_norm") layer = t.forward.call + t.backward.call;
      if (op.name == "rms_norm") rms = t.forward.call + t.backward.call;
    }
    beside += fmt::format("{:<22} {:>12.3f} {:>10.3f} {:>13.0f}%\n", shape, 1e3 * layer, 1e3 * rms,
                          100 * (1 - rms / layer));
  }
  text += fmt::format(
      "Share: bytes that must move a second, by those of a copy in turns with the op ({:.1f} to "
      "{:.1f} GB/s); >= {:.0f}%.\n",
      Copies::kBytes / slowest / 1e9, Copies::kBytes / fastest / 1e9, 100 * kAim);
  return only.empty() ? text + beside + norms_in_a_step(seconds) : text;
}

}  // namespace norma::bench
