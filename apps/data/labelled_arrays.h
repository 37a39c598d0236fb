// Arrays with a label a sample (images, rows of features): what the data sets of files share.
#pragma once

#include <string_view>
#include <vector>

#include "apps/data/data_set.h"

namespace norma {

struct ArrayOptions : SampleOptions {
  bool normalize = true;
  [[nodiscard]] static config::Fields array_fields();
};

// The files' content: inputs (N, ...) of u8, i32, f32 or f64, and labels (N) of u8, i32 or i64.
// The test part may be undefined.
struct LabelledArrays {
  Tensor inputs, labels, test_inputs, test_labels;
};

// Batches of inputs as f32 (B, C, H, W), or (B, F) for a feature vector a sample; (N, H, W) is one
// channel. With `normalize`, each channel (feature) is (x - mean) / deviation, both taken over the
// training part, the deviation being 1 where it would be 0; otherwise u8 is x / 255.
class LabelledArraysDataSet final : public DataSet {
 public:
  // Throws Error if the numbers of inputs and labels differ, a label is negative, the test part has
  // another shape, or a part would be empty.
  LabelledArraysDataSet(std::string_view name, LabelledArrays arrays, const ArrayOptions& options,
                        std::uint64_t seed);

  [[nodiscard]] std::int64_t size(Part part) const override;

 protected:
  [[nodiscard]] Batch gather(Part part, std::span<const std::int64_t> samples) const override;

 private:
  void measure();

  LabelledArrays arrays_;
  std::vector<std::int64_t> labels_, test_labels_;
  std::vector<std::int64_t> train_, validation_;  // places in the arrays
  std::int64_t channels_ = 1, inner_ = 1;         // of a sample: channels_ runs of inner_ elements
  std::vector<float> mean_, scale_;               // a channel each
};

}  // namespace norma
