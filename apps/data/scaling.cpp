#include "apps/data/scaling.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/parallel.h"

namespace norma {
namespace {

// Elements that one task copies, about.
constexpr std::int64_t kGrain = 1 << 16;

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

Scaling plain_scaling(DType dtype, std::int64_t channels) {
  const auto n = static_cast<std::size_t>(channels);
  return {std::vector<double>(n, 0), std::vector<double>(n, dtype == DType::u8 ? 255 : 1)};
}

Scaling measured_scaling(const Tensor& inputs, std::span<const std::int64_t> places,
                         std::int64_t channels) {
  const std::int64_t inner = inputs.numel() / inputs.size(0) / channels;
  const double count = static_cast<double>(places.size()) * static_cast<double>(inner);
  return dispatch_stored(inputs.dtype(), [&]<class T>() {
    const T* data = inputs.data<T>();
    std::vector<double> mean =
        sum_by_channel(data, places, channels, inner, [](double x, std::int64_t) { return x; });
    for (double& m : mean) m /= count;
    std::vector<double> deviation =
        sum_by_channel(data, places, channels, inner, [&](double x, std::int64_t c) {
          const double d = x - mean[static_cast<std::size_t>(c)];
          return d * d;
        });
    for (double& d : deviation) {
      d = std::sqrt(d / count);
      if (d == 0) d = 1;
    }
    return Scaling{std::move(mean), std::move(deviation)};
  });
}

void check_numbers(const std::string& source, const Tensor& inputs) {
  if (!is_floating(inputs.dtype())) return;
  dispatch_stored(inputs.dtype(), [&]<class T>() {
    const T* x = inputs.data<T>();
    const std::int64_t each = inputs.numel() / std::max<std::int64_t>(1, inputs.size(0));
    for (std::int64_t i = 0; i < inputs.numel(); ++i) {
      require(std::isfinite(static_cast<float>(x[i])),
              "{}: expected finite numbers within the range of f32; sample {} has {}", source,
              i / each + 1, static_cast<double>(x[i]));
    }
  });
}

config::Fields Augment::fields() {
  using namespace config;
  return {
      field("flip", &Augment::flip, "Mirror half of the images, left to right."),
      field("crop", &Augment::crop,
            "Move images by up to so many pixels each way; what comes in is 0.", between(0, 1e4))};
}

ImageView draw_view(const Augment& augment, RandomStream& stream) {
  ImageView view;
  if (augment.flip) view.mirrored = stream.below(2) == 1;
  if (augment.crop > 0) {
    view.down = stream.below(2 * augment.crop + 1) - augment.crop;
    view.right = stream.below(2 * augment.crop + 1) - augment.crop;
  }
  return view;
}

void write_samples(const Tensor& inputs, std::span<const std::int64_t> places,
                   const Scaling& scaling, float* out, std::span<const ImageView> views) {
  const auto channels = static_cast<std::int64_t>(scaling.mean.size());
  const std::int64_t size = inputs.numel() / inputs.size(0);
  const std::int64_t inner = size / channels;
  const std::int64_t height = views.empty() ? 1 : inputs.size(-2);
  const std::int64_t width = views.empty() ? 1 : inputs.size(-1);
  dispatch_stored(inputs.dtype(), [&]<class T>() {
    const T* data = inputs.data<T>();
    const auto write_channel = [&](const T* x, float* y, float mean, float factor) {
      for (std::int64_t i = 0; i < inner; ++i) y[i] = (static_cast<float>(x[i]) - mean) * factor;
    };
    const auto write_image = [&](const T* x, float* y, float mean, float factor,
                                 const ImageView& view) {
      for (std::int64_t i = 0; i < height; ++i) {
        const std::int64_t row = i + view.down;
        for (std::int64_t j = 0; j < width; ++j, ++y) {
          const std::int64_t seen = j + view.right;
          const std::int64_t column = view.mirrored ? width - 1 - seen : seen;
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          const float value = inside ? static_cast<float>(x[row * width + column]) : 0.0f;
          *y = (value - mean) * factor;
        }
      }
    };
    const auto n = static_cast<std::int64_t>(places.size());
    parallel_for(n, std::max<std::int64_t>(1, kGrain / size), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t s = b; s < e; ++s) {
        const T* x = data + places[static_cast<std::size_t>(s)] * size;
        float* y = out + s * size;
        for (std::int64_t c = 0; c < channels; ++c, x += inner, y += inner) {
          const auto at = static_cast<std::size_t>(c);
          const auto mean = static_cast<float>(scaling.mean[at]);
          const auto factor = static_cast<float>(1 / scaling.deviation[at]);
          if (views.empty()) {
            write_channel(x, y, mean, factor);
          } else {
            write_image(x, y, mean, factor, views[static_cast<std::size_t>(s)]);
          }
        }
      }
    });
  });
}

}  // namespace norma
