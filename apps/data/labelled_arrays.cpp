#include "apps/data/labelled_arrays.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "core/random.h"

namespace norma {
namespace {

// Elements that one task copies, about.
constexpr std::int64_t kGrain = 1 << 16;

// (N, H, W) is one channel; (N) is one feature.
Shape sample_shape(const Shape& shape) {
  if (shape.rank() == 1) return {1};
  if (shape.rank() == 3) return {1, shape[1], shape[2]};
  return shape.sub(1, shape.rank());
}

DataSpec make_spec(std::string_view name, const LabelledArrays& arrays) {
  const auto check = [&](const char* part, const Tensor& inputs, const Tensor& labels) {
    require(inputs.rank() >= 1 && inputs.numel() > 0, "{}: the {} inputs are empty: shape {}", name,
            part, inputs.shape().to_string());
    require(labels.rank() == 1 && labels.size(0) == inputs.size(0),
            "{}: expected a label for each of the {} {} inputs; got labels of shape {}", name,
            inputs.size(0), part, labels.shape().to_string());
    require(!is_floating(labels.dtype()), "{}: expected labels that are whole numbers; got {}",
            name, name_of(labels.dtype()));
  };
  check("train", arrays.inputs, arrays.labels);
  std::int64_t largest = 0;
  const auto look = [&](const Tensor& labels) {
    for (const std::int64_t label : labels.to_ids()) {
      require(label >= 0, "{}: expected labels from 0; got {}", name, label);
      largest = std::max(largest, label);
    }
  };
  look(arrays.labels);
  if (arrays.test_inputs.defined()) {
    check("test", arrays.test_inputs, arrays.test_labels);
    look(arrays.test_labels);
    const Shape a = arrays.inputs.shape(), b = arrays.test_inputs.shape();
    require(a.sub(1, a.rank()) == b.sub(1, b.rank()) &&
                arrays.inputs.dtype() == arrays.test_inputs.dtype(),
            "{}: expected test inputs like the training ones, {} {}; got {} {}", name,
            name_of(arrays.inputs.dtype()), a.to_string(), name_of(arrays.test_inputs.dtype()),
            b.to_string());
  }
  return {.input = sample_shape(arrays.inputs.shape()), .target = {}, .classes = largest + 1};
}

template <class F>
decltype(auto) dispatch_stored(DType dtype, F&& f) {
  switch (dtype) {
    case DType::u8:
      return f.template operator()<std::uint8_t>();
    case DType::i32:
      return f.template operator()<std::int32_t>();
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    default:
      throw Error::format("data: expected inputs of u8, i32, f32 or f64; got {}", name_of(dtype));
  }
}

// Sums by channel, so that parallel_sum can add them.
struct Sums {
  std::vector<double> values;
  Sums& operator+=(const Sums& other) {
    if (values.empty()) values.resize(other.values.size());
    for (std::size_t i = 0; i < other.values.size(); ++i) values[i] += other.values[i];
    return *this;
  }
};

// Sum over the samples of f(x, channel), by channel.
template <class T, class F>
std::vector<double> sum_by_channel(const T* data, std::span<const std::int64_t> samples,
                                   std::int64_t channels, std::int64_t inner, F f) {
  const std::int64_t size = channels * inner;
  const auto n = static_cast<std::int64_t>(samples.size());
  return parallel_sum<Sums>(n, std::max<std::int64_t>(1, 16 * kGrain / size),
                            [&](std::int64_t begin, std::int64_t end) {
                              Sums sums{std::vector<double>(static_cast<std::size_t>(channels))};
                              for (std::int64_t s = begin; s < end; ++s) {
                                const T* x = data + samples[static_cast<std::size_t>(s)] * size;
                                for (std::int64_t c = 0; c < channels; ++c) {
                                  double sum = 0;
                                  for (std::int64_t i = 0; i < inner; ++i) {
                                    sum += f(static_cast<double>(x[c * inner + i]), c);
                                  }
                                  sums.values[static_cast<std::size_t>(c)] += sum;
                                }
                              }
                              return sums;
                            })
      .values;
}

}  // namespace

config::Fields ArrayOptions::array_fields() {
  using namespace config;
  return Fields{
             field("normalize", &ArrayOptions::normalize,
                   "Subtract the training part's mean and divide by its deviation, by channel.")} +
         sample_fields();
}

LabelledArraysDataSet::LabelledArraysDataSet(std::string_view name, LabelledArrays arrays,
                                             const ArrayOptions& options, std::uint64_t seed)
    : DataSet(name, make_spec(name, arrays), options, seed, false), arrays_(std::move(arrays)) {
  labels_ = arrays_.labels.to_ids();
  if (arrays_.test_labels.defined()) test_labels_ = arrays_.test_labels.to_ids();
  channels_ = spec().input[0];
  inner_ = spec().input.numel() / channels_;

  std::int64_t n = arrays_.inputs.size(0);
  if (options.limit) n = std::min(n, *options.limit);
  const double share = options.validation_share(arrays_.test_labels.defined());
  auto set_aside = static_cast<std::int64_t>(static_cast<double>(n) * share);
  if (share > 0) set_aside = std::max<std::int64_t>(set_aside, 1);
  require(set_aside < n, "{}: {} samples leave none to train on beside the validation part of {}",
          name, n, set_aside);
  // At random, since files are often sorted by class; seed 0: see Note [Stream of samples].
  train_ = random_permutation(n, random_key(0, "data/validation"));
  validation_.assign(train_.end() - set_aside, train_.end());
  train_.resize(static_cast<std::size_t>(n - set_aside));
  std::sort(train_.begin(), train_.end());
  std::sort(validation_.begin(), validation_.end());

  mean_.assign(static_cast<std::size_t>(channels_), 0.0f);
  scale_.assign(static_cast<std::size_t>(channels_),
                arrays_.inputs.dtype() == DType::u8 ? 1.0f / 255 : 1.0f);
  if (options.normalize) measure();
}

void LabelledArraysDataSet::measure() {
  dispatch_stored(arrays_.inputs.dtype(), [&]<class T>() {
    const T* data = arrays_.inputs.data<T>();
    const double count = static_cast<double>(train_.size()) * static_cast<double>(inner_);
    std::vector<double> mean =
        sum_by_channel(data, train_, channels_, inner_, [](double x, std::int64_t) { return x; });
    for (double& m : mean) m /= count;
    const std::vector<double> squares =
        sum_by_channel(data, train_, channels_, inner_, [&](double x, std::int64_t c) {
          const double d = x - mean[static_cast<std::size_t>(c)];
          return d * d;
        });
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double deviation = std::sqrt(squares[c] / count);
      mean_[c] = static_cast<float>(mean[c]);
      scale_[c] = deviation > 0 ? static_cast<float>(1 / deviation) : 1.0f;
    }
  });
}

std::int64_t LabelledArraysDataSet::size(Part part) const {
  switch (part) {
    case Part::train:
      return static_cast<std::int64_t>(train_.size());
    case Part::validation:
      return static_cast<std::int64_t>(validation_.size());
    default:
      return static_cast<std::int64_t>(test_labels_.size());
  }
}

Batch LabelledArraysDataSet::gather(Part part, std::span<const std::int64_t> samples) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t size = channels_ * inner_;
  Shape shape{n};
  for (const std::int64_t axis : spec().input) shape.push_back(axis);
  Batch batch{Tensor::empty(shape), Tensor::empty({n}, DType::i64)};
  std::int64_t* labels = batch.targets.mutable_data<std::int64_t>();
  float* out = batch.inputs.mutable_data<float>();
  const Tensor& inputs = part == Part::test ? arrays_.test_inputs : arrays_.inputs;
  const auto place = [&](std::int64_t s) {
    const auto sample = static_cast<std::size_t>(samples[static_cast<std::size_t>(s)]);
    if (part == Part::test) return sample;
    return static_cast<std::size_t>(part == Part::train ? train_[sample] : validation_[sample]);
  };
  dispatch_stored(inputs.dtype(), [&]<class T>() {
    const T* data = inputs.data<T>();
    parallel_for(n, std::max<std::int64_t>(1, kGrain / size), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t s = b; s < e; ++s) {
        const T* x = data + static_cast<std::int64_t>(place(s)) * size;
        float* y = out + s * size;
        for (std::int64_t c = 0; c < channels_; ++c) {
          const float mean = mean_[static_cast<std::size_t>(c)];
          const float scale = scale_[static_cast<std::size_t>(c)];
          for (std::int64_t i = 0; i < inner_; ++i, ++x, ++y) {
            *y = (static_cast<float>(*x) - mean) * scale;
          }
        }
      }
    });
  });
  for (std::int64_t s = 0; s < n; ++s) {
    labels[s] = (part == Part::test ? test_labels_ : labels_)[place(s)];
  }
  return batch;
}

}  // namespace norma
