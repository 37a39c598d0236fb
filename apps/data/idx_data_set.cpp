#include "apps/data/idx_data_set.h"

#include "apps/data/idx.h"

namespace norma {

config::Fields IdxConfig::fields() {
  using namespace config;
  return Fields{field("images", &IdxConfig::images,
                      "The training inputs: (N, H, W), (N, C, H, W) "
                      "or (N, F).",
                      required() & not_empty()),
                field("labels", &IdxConfig::labels, "Their labels: (N).", required() & not_empty()),
                field("test_images", &IdxConfig::test_images, "The test inputs."),
                field("test_labels", &IdxConfig::test_labels, "Their labels.")} +
         image_fields();
}

void IdxConfig::check(config::Problems& problems, const std::string& path) const {
  if (test_images.empty() == test_labels.empty()) return;
  const bool first = test_images.empty();
  problems.add(config::join(path, first ? "test_images" : "test_labels"), "is needed with {}",
               first ? "test_labels" : "test_images");
}

std::unique_ptr<DataSet> IdxConfig::make(const DataContext& run) const {
  LabelledArrays arrays{read_idx(images), read_idx(labels), Tensor(), Tensor()};
  if (!test_images.empty()) {
    arrays.test_inputs = read_idx(test_images);
    arrays.test_labels = read_idx(test_labels);
  }
  return std::make_unique<LabelledArraysDataSet>(type, std::move(arrays), *this, run.seed, augment);
}

}  // namespace norma
