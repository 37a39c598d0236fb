// From what a file holds to what a model reads: scaled numbers, images moved and mirrored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/random.h"
#include "core/tensor.h"

namespace norma {

// x becomes (x - mean) / deviation, with a number for each channel: of an image (C, H, W) the first
// axis, of a feature vector the feature.
struct Scaling {
  std::vector<double> mean, deviation;
};
// u8 is x / 255, everything else stays.
[[nodiscard]] Scaling plain_scaling(DType dtype, std::int64_t channels);
// Mean and deviation over the samples at `places` of inputs (N, ...), each of `channels` runs; the
// deviation is 1 where it would be 0.
[[nodiscard]] Scaling measured_scaling(const Tensor& inputs, std::span<const std::int64_t> places,
                                       std::int64_t channels);

// Throws Error, naming `source`, for a number that is not finite or beyond the range of f32.
void check_numbers(const std::string& source, const Tensor& inputs);

// How training images are varied.
struct Augment {
  bool flip = false;
  std::int64_t crop = 0;
  [[nodiscard]] static config::Fields fields();
  [[nodiscard]] bool any() const { return flip || crop > 0; }
};
// Where pixel (i, j) of an image is taken from: (i + down, j + right) of the original, mirrored
// before; 0 outside of it.
struct ImageView {
  std::int64_t down = 0, right = 0;
  bool mirrored = false;
};
// Mirrored in half of the cases; moved by up to `crop` pixels each way.
[[nodiscard]] ImageView draw_view(const Augment& augment, RandomStream& stream);

// Writes the samples at `places` of inputs (N, ...) of u8, i32, f32 or f64 as f32, one after the
// other. `views`, if any, has one a sample, which are images (..., H, W) then.
void write_samples(const Tensor& inputs, std::span<const std::int64_t> places,
                   const Scaling& scaling, float* out, std::span<const ImageView> views = {});

}  // namespace norma
