#include "apps/training/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "apps/training/build.h"
#include "apps/training/first_step.h"
#include "apps/training/rounding.h"
#include "apps/training/sees.h"
#include "apps/training/sharpness.h"
#include "core/autograd.h"

namespace norma {
namespace {

using Vector = std::vector<double>;

constexpr double kAdamBeta1 = 0.9;
constexpr std::int64_t kMostJudges = 4;  // batches up to which a first step is judged
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Puts mode and running statistics back when it ends.
class Untouched {
 public:
  explicit Untouched(Model& model) : model_(model), training_(model.training()) {
    for (const NamedTensor& b : model.named_buffers())
      buffers_.push_back({b.tensor, b.tensor.clone()});
  }
  ~Untouched() {
    const NoGrad off;
    for (auto& [buffer, before] : buffers_) buffer.copy_(before);
    model_.train(training_);
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

 private:
  Model& model_;
  bool training_;
  std::vector<std::pair<Tensor, Tensor>> buffers_;
};

// Mean and mean square of some numbers, added up one by one.
struct Moments {
  double count = 0, sum = 0, squares = 0;
  void add(double x) {
    count += 1;
    sum += x;
    squares += x * x;
  }
  [[nodiscard]] double mean() const { return sum / count; }
  [[nodiscard]] double rms() const { return std::sqrt(squares / count); }
};

// A NaN if one of the two is: std::max passes over it or not, by their order.
double larger(double a, double b) { return std::isnan(b) ? b : std::max(a, b); }

double deviation(const Vector& x, double mean) {
  double sum = 0;
  for (const double v : x) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// Writes down what passes by: everything of the first batch, the features' means of all.
class Recorder final : public Observer {
 public:
  explicit Recorder(ProbeValues& values) : values_(values) {}

  void next_batch() { ++batch_; }

  void stream(std::string_view path, const Tensor& x) override {
    const Vector all = x.to_vector();
    add_feature_means(std::string(path), x, all);
    if (batch_ > 0 || all.empty()) return;
    Moments m;
    for (const double v : all) m.add(v);
    put("stream.mean", path, m.mean());
    put("stream.std", path, deviation(all, m.mean()));
    put("stream.rms", path, m.rms());
    for (const auto& [branch, rms] : branches_) put("branch.share", branch, rms / m.rms());
    branches_.clear();
  }

  void branch(std::string_view path, const Tensor& update) override {
    if (batch_ > 0) return;
    Moments m;
    for (const double v : update.to_vector()) m.add(v);
    put("branch.rms", path, m.rms());
    branches_.emplace_back(path, m.rms());
  }

  void largest_logit(std::string_view path, const Tensor& largest) override {
    if (batch_ > 0) return;
    const Vector heads = largest.to_vector();
    const double most = std::accumulate(heads.begin(), heads.end(), -kInfinity, larger);
    put("logit", path, most);
    largest_ = larger(largest_.value_or(-kInfinity), most);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      put("logit", fmt::format("{}.{}", path, h), heads[h]);
    }
  }

  [[nodiscard]] bool wants_logits() const override { return batch_ == 0; }

  // Over the batches: how far a feature's mean over a batch moves, by its deviation over all of
  // them. The variance over all is that inside a batch and that of the means together, so that it
  // is right at any size of a batch, even 1.
  void finish() {
    if (largest_) values_.emplace_back("logit.largest", *largest_);
    for (const std::string& path : paths_) {
      const std::vector<Features>& batches = features_[path];
      if (batches.size() < 2) continue;
      double moved = 0, all = 0;
      const std::size_t features = batches[0].mean.size();
      for (std::size_t f = 0; f < features; ++f) {
        Vector means;
        for (const Features& b : batches) means.push_back(b.mean[f]);
        Moments m;
        for (const double v : means) m.add(v);
        const double n = m.count;
        const double of_means = std::pow(deviation(means, m.mean()), 2) * n / (n - 1);
        moved += of_means;
        all += of_means;
        for (const Features& b : batches) all += b.variance[f] / n;
      }
      put("stream.spread", path, std::sqrt(moved / all));
    }
  }

 private:
  struct Features {
    Vector mean, variance;
  };

  void put(std::string_view what, std::string_view path, double value) {
    values_.emplace_back(fmt::format("{}.{}", what, path), value);
  }

  // Features are the last axis of sequences and vectors, and the channels of images.
  void add_feature_means(const std::string& path, const Tensor& x, const Vector& all) {
    const int axis = x.rank() == 4 ? 1 : x.rank() - 1;
    if (axis < 1 || all.empty()) return;
    const std::int64_t outer = x.shape().numel(0, axis), count = x.size(axis);
    const std::int64_t inner = x.shape().numel(axis + 1, x.rank());
    const auto each = [&](auto&& f) {
      for (std::int64_t o = 0; o < outer; ++o) {
        for (std::int64_t k = 0; k < count; ++k) {
          for (std::int64_t i = 0; i < inner; ++i) {
            f(static_cast<std::size_t>(k),
              all[static_cast<std::size_t>((o * count + k) * inner + i)]);
          }
        }
      }
    };
    const double n = static_cast<double>(outer * inner);
    const auto size = static_cast<std::size_t>(count);
    Features features{Vector(size), Vector(size)};
    each([&](std::size_t k, double v) { features.mean[k] += v / n; });
    each([&](std::size_t k, double v) {
      features.variance[k] += (v - features.mean[k]) * (v - features.mean[k]) / n;
    });
    if (!features_.contains(path)) paths_.push_back(path);
    features_[path].push_back(std::move(features));
  }

  ProbeValues& values_;
  std::int64_t batch_ = 0;
  std::optional<double> largest_;                         // attention logit of all layers
  std::vector<std::pair<std::string, double>> branches_;  // of the block that runs now
  std::vector<std::string> paths_;
  std::map<std::string, std::vector<Features>> features_;
};

Tensor output_of(Model& model, const Batch& batch, const ProbeOptions& options, std::int64_t index,
                 Observer* observer) {
  Forward pass = forward_of(batch);
  pass.seed = options.seed;
  pass.stream = fmt::format("probe/{}", index);
  pass.observer = observer;
  return model.forward(batch.inputs, pass);
}

// Mean |log Z| over the targets that count, Z being the sum of exp of a target's logits.
double mean_log_z(const Tensor& logits, const Tensor& targets, std::int64_t ignore) {
  const Vector x = logits.to_vector(), target = targets.to_vector();
  const std::size_t classes = x.size() / target.size();
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == static_cast<double>(ignore)) continue;
    const auto row = x.begin() + static_cast<std::ptrdiff_t>(i * classes);
    const auto end = row + static_cast<std::ptrdiff_t>(classes);
    const double largest = *std::max_element(row, end);
    double z = 0;
    for (auto v = row; v != end; ++v) z += std::exp(*v - largest);
    sum += std::abs(largest + std::log(z));
    count += 1;
  }
  return sum / count;
}

// "blocks.3" of "blocks.3.ffn.up.weight", "encoder.blocks.0" of an encoder's, "layers.2" of
// "2.weight", as a sequential model names it; empty outside.
std::string part_of(std::string_view name) {
  if (name[0] >= '0' && name[0] <= '9') {
    return fmt::format("layers.{}", name.substr(0, name.find('.')));
  }
  const std::size_t at = name.find("blocks.");
  if (at == std::string_view::npos) return "";
  const std::size_t end = name.find('.', at + 7);
  return std::string(name.substr(0, end));
}

// The norms of the parameters' gradients, of the blocks' or layers' and of the whole one.
void put_norms(ProbeValues& values, std::string_view prefix,
               const std::vector<NamedParameter>& parameters,
               const std::vector<Vector>& gradients) {
  double whole = 0;
  std::vector<std::pair<std::string, double>> parts;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    double squares = 0;
    for (const double g : gradients[i]) squares += g * g;
    values.emplace_back(fmt::format("{}.{}", prefix, parameters[i].name), std::sqrt(squares));
    whole += squares;
    const std::string part = part_of(parameters[i].name);
    if (part.empty()) continue;
    if (parts.empty() || parts.back().first != part) parts.emplace_back(part, 0);
    parts.back().second += squares;
  }
  for (const auto& [part, squares] : parts) {
    values.emplace_back(fmt::format("{}.{}", prefix, part), std::sqrt(squares));
  }
  values.emplace_back(fmt::format("{}.whole", prefix), std::sqrt(whole));
}

// Curvature on the first batch. `squares` holds each parameter's mean squared gradient.
void put_curvature(ProbeValues& values, const Tensor& loss, const std::vector<Tensor>& parameters,
                   const Vector& squares, const ProbeOptions& options) {
  const Hessian hessian(loss, parameters);
  const Extremes plain =
      lanczos([&](const Vector& v) { return hessian.product(v); }, hessian.size(),
              options.most_products, random_key(options.seed, "probe/lanczos"));
  Vector root(squares.size());  // P^-1/2
  std::transform(squares.begin(), squares.end(), root.begin(),
                 [](double s) { return 1 / std::sqrt(std::sqrt(s) + kAdamEps); });
  const auto scaled = [&](Vector v) {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] *= root[i];
    return v;
  };
  const Extremes adam =
      lanczos([&](const Vector& v) { return scaled(hessian.product(scaled(v))); }, hessian.size(),
              options.most_products, random_key(options.seed, "probe/lanczos"));
  values.emplace_back("sharpness", plain.largest);
  values.emplace_back("sharpness.smallest", plain.smallest);
  values.emplace_back("sharpness.adam", adam.largest);
  const auto stable = [](double factor, double largest) {
    if (std::isnan(largest)) return kNothing;
    return largest > 0 ? factor / largest : kInfinity;
  };
  values.emplace_back("stable_lr.sgd", stable(2, plain.largest));
  values.emplace_back("stable_lr.adam",
                      stable((2 + 2 * kAdamBeta1) / (1 - kAdamBeta1), adam.largest));
}

}  // namespace

ProbeValues probe(Model& model, const DataSet& data, const LossConfig& loss,
                  const ProbeOptions& options) {
  const Untouched untouched(model);
  const EnableGrad on;
  model.train();
  ProbeValues values;
  Recorder recorder(values);
  std::vector<NamedParameter> named;
  std::vector<Tensor> parameters;
  for (const NamedParameter& p : model.named_parameters()) {
    if (!p.tensor.requires_grad()) continue;
    named.push_back(p);
    parameters.push_back(p.tensor);
  }
  std::vector<Vector> first, mean(named.size());
  Vector squares;
  for (std::int64_t i = 0; i < options.batches; ++i) {
    const Batch batch = data.train_batch(i, options.batch);
    const Tensor output = output_of(model, batch, options, i, &recorder);
    const Tensor value = loss.apply(output, batch.targets);
    if (i == 0) {
      values.emplace_back("loss", value.item());
      if (const auto* entropy = loss.get_if<CrossEntropyConfig>()) {
        values.emplace_back("log_z", mean_log_z(output, batch.targets, entropy->ignore));
      }
    }
    const std::vector<Tensor> gradients =
        grad(std::span(&value, 1), parameters, {.allow_unused = true});
    std::size_t at = 0;
    for (std::size_t k = 0; k < named.size(); ++k) {
      Vector g = gradients[k].defined() ? gradients[k].to_vector()
                                        : Vector(static_cast<std::size_t>(parameters[k].numel()));
      if (i == 0) {
        mean[k].resize(g.size());
        squares.resize(squares.size() + g.size());
      }
      for (std::size_t j = 0; j < g.size(); ++j, ++at) {
        mean[k][j] += g[j] / static_cast<double>(options.batches);
        squares[at] += g[j] * g[j] / static_cast<double>(options.batches);
      }
      if (i == 0) first.push_back(std::move(g));
    }
    recorder.next_batch();
  }
  recorder.finish();
  put_norms(values, "grad", named, first);
  if (options.batches > 1) put_norms(values, "mean_grad", named, mean);
  for (auto& value : sees(model, data, options.batch)) values.push_back(std::move(value));
  if (options.exact) {
    const Batch batch = data.train_batch(0, options.batch);
    for (auto& value : rounding(model, *options.exact, batch, loss)) {
      values.push_back(std::move(value));
    }
  }
  if (options.curvature) {
    const Batch batch = data.train_batch(0, options.batch);
    const Tensor value = loss.apply(output_of(model, batch, options, 0, nullptr), batch.targets);
    put_curvature(values, value, parameters, squares, options);
    // The step is that of the first batch; what it does is judged on the others, as in training.
    const std::int64_t from = options.batches > 1 ? 1 : 0;
    std::vector<Batch> others;
    for (std::int64_t i = from; i < std::min(options.batches, kMostJudges); ++i) {
      others.push_back(data.train_batch(i, options.batch));
    }
    const auto fresh_loss = [&] {
      const NoGrad off;
      double sum = 0;
      std::int64_t index = from;
      for (const Batch& other : others) {
        sum += loss.apply(output_of(model, other, options, index++, nullptr), other.targets).item();
      }
      return sum;
    };
    values.emplace_back("stable_lr.first_step", first_step_limit(parameters, first, fresh_loss));
  }
  return values;
}

namespace {

const double* find(const ProbeValues& values, std::string_view name) {
  for (const auto& [key, value] : values) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

std::int64_t count_blocks(const ProbeValues& values, std::string_view prefix) {
  std::int64_t n = 0;
  while (find(values, fmt::format("grad.{}{}", prefix, n))) ++n;
  return n;
}

std::optional<double> find_probe_value(const ProbeValues& values, std::string_view name) {
  if (const double* value = find(values, name)) return *value;
  const std::size_t at = name.find("blocks.");
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t begin = at + 7, end = std::min(name.find('.', begin), name.size());
  const std::string_view word = name.substr(begin, end - begin);
  // "grad.encoder.blocks." is for the names below "encoder.blocks.".
  const std::size_t side = name.rfind("coder.", at);
  const std::string_view prefix =
      side == std::string_view::npos ? name.substr(at, 7) : name.substr(side - 2, begin - side + 2);
  const std::int64_t blocks = count_blocks(values, prefix);
  std::int64_t index = -1;
  if (word == "first") index = 0;
  if (word == "middle") index = blocks / 2;
  if (word == "last") index = blocks - 1;
  if (index < 0 || blocks == 0) return std::nullopt;
  const double* value =
      find(values, fmt::format("{}{}{}", name.substr(0, begin), index, name.substr(end)));
  return value ? std::optional(*value) : std::nullopt;
}

double probe_value(const ProbeValues& values, std::string_view name) {
  return find_probe_value(values, name).value_or(kNothing);
}

}  // namespace norma
