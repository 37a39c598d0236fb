// Arrays with a label a sample (images, rows of features): what the data sets of files share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/data/data_set.h"
#include "apps/data/scaling.h"

namespace norma {

struct ArrayOptions : SampleOptions {
  bool normalize = true;
  [[nodiscard]] static config::Fields array_fields();
};

struct ImageOptions : ArrayOptions {
  Augment augment;
  [[nodiscard]] static config::Fields image_fields();
};

// The files' content: inputs (N, ...) of u8, i32, f32 or f64, and labels (N) of u8, i32 or i64, or,
// to regress, of f32. The test part may be undefined.
struct LabelledArrays {
  Tensor inputs = {}, labels = {}, test_inputs = {}, test_labels = {};
  bool regression = false;
  // For what a run keeps; empty where there are no names.
  std::vector<std::string> class_names = {}, columns = {};
  std::string target_column = {};
};

// Batches of inputs as f32 (B, C, H, W), or (B, F) for a feature vector a sample; (N, H, W) is one
// channel. With `normalize`, each channel (feature) is (x - mean) / deviation, both taken over the
// training part, the deviation being 1 where it would be 0; otherwise u8 is x / 255. Targets are
// labels (B), or numbers (B, 1). How an image is varied is a function of (seed, epoch, image).
class LabelledArraysDataSet final : public DataSet {
 public:
  // Throws Error if the numbers of inputs and labels differ, a label is negative, the test part has
  // another shape, a part would be empty, or `augment` meets samples that are no images.
  LabelledArraysDataSet(std::string_view name, LabelledArrays arrays, const ArrayOptions& options,
                        std::uint64_t seed, const Augment& augment = {});

  [[nodiscard]] std::int64_t size(Part part) const override;

 protected:
  [[nodiscard]] Batch gather(Part part, std::span<const std::int64_t> samples,
                             std::int64_t epoch) const override;

 private:
  void keep_record();

  LabelledArrays arrays_;
  std::vector<std::int64_t> labels_, test_labels_;
  Augment augment_;
  std::uint64_t seed_;
  Split split_;
  Scaling scaling_;
};

}  // namespace norma
