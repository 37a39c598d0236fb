#include "apps/data/fashion_mnist.h"

#include <filesystem>

#include "apps/data/idx.h"

namespace norma {
namespace {

Tensor read_part(const std::string& folder, const char* name) {
  const std::string plain = (std::filesystem::path(folder) / name).string();
  const std::string packed = plain + ".gz";
  if (std::filesystem::exists(packed)) return read_idx(packed);
  require(std::filesystem::exists(plain),
          "fashion_mnist: expected {} or {}.gz in {}; neither is there; install the package "
          "dataset-fashion-mnist, or give the folder as data.path",
          name, name, folder);
  return read_idx(plain);
}

}  // namespace

config::Fields FashionMnistConfig::fields() {
  using namespace config;
  return Fields{field("path", &FashionMnistConfig::path, "The folder of the four idx files.",
                      not_empty())} +
         image_fields();
}

std::unique_ptr<DataSet> FashionMnistConfig::make(const DataContext& run) const {
  LabelledArrays arrays{
      read_part(path, "train-images-idx3-ubyte"), read_part(path, "train-labels-idx1-ubyte"),
      read_part(path, "t10k-images-idx3-ubyte"), read_part(path, "t10k-labels-idx1-ubyte")};
  arrays.class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                        "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return std::make_unique<LabelledArraysDataSet>(type, std::move(arrays), *this, run.seed, augment);
}

}  // namespace norma
