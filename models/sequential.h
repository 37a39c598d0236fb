// Sequential: the layers of a list, one behind the other (MLP, CNN, ResNet).
#pragma once

#include "layers/layers.h"
#include "models/model.h"

namespace norma {

struct SequentialConfig {
  static constexpr const char* type = "sequential";
  static constexpr const char* doc = "A list of layers, one behind the other.";
  static constexpr const char* source = "torch.nn.Sequential";
  std::vector<LayerConfig> layers;
  InitConfig init = TorchInit{};
  static config::Fields fields();
  // Names: "0.weight", "3.running_mean", ...: the layer's place in the list.
  [[nodiscard]] ModelPtr build(std::uint64_t seed, const Signature& in,
                               DType dtype = DType::f32) const;
};

}  // namespace norma
