// The range of fields that are sizes of arrays.
#pragma once

#include "core/config/type.h"

namespace norma::config {

// Products of two sizes, and a few more, stay within 64 bits; no memory holds this many.
constexpr double kLargestSize = 1e9;
[[nodiscard]] inline Limits a_size() { return between(1, kLargestSize); }

}  // namespace norma::config
