// Fashion-MNIST (Xiao et al. 2017): 70,000 grey images of clothes, 28 x 28, in ten classes.
#pragma once

#include <memory>
#include <string>

#include "apps/data/labelled_arrays.h"

namespace norma {

struct FashionMnistConfig : ImageOptions {
  static constexpr const char* type = "fashion_mnist";
  static constexpr const char* doc = "Grey images of clothes, 28 x 28, in ten classes.";
  static constexpr const char* source = "Xiao et al. 2017, arXiv 1708.07747";

  // Where the Debian package dataset-fashion-mnist puts them.
  std::string path = "/usr/share/datasets/fashion-mnist";

  [[nodiscard]] static config::Fields fields();
  // Throws Error if a file is missing (any folder with MNIST's file names will do) or damaged.
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

}  // namespace norma
