// Images or feature vectors and their labels from idx files.
#pragma once

#include <memory>
#include <string>

#include "apps/data/labelled_arrays.h"

namespace norma {

struct IdxConfig : ImageOptions {
  static constexpr const char* type = "idx";
  static constexpr const char* doc = "Arrays and their labels from idx files, plain or gzipped.";
  static constexpr const char* source = "the format of MNIST, LeCun et al. 1998";

  std::string images, labels, test_images, test_labels;

  [[nodiscard]] static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

}  // namespace norma
