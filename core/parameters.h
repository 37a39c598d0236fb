// Named tensors: how parameters, buffers and optimizer state travel between the folders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace norma {

// A tensor with its dotted path: "blocks.0.attention.q.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// A parameter is a named tensor that training changes.
using NamedParameter = NamedTensor;

// The one called `name`, or null.
[[nodiscard]] const NamedTensor* find_tensor(const std::vector<NamedTensor>& tensors,
                                             std::string_view name);

// True iff `name` matches `glob` as a whole: `*` stands for any run of characters (dots included),
// `?` for one character, everything else for itself.
[[nodiscard]] bool matches_glob(std::string_view name, std::string_view glob);

}  // namespace norma
