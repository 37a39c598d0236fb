// Every op that autograd knows but that of core/recompute.cpp, which runs other ops again. Tests go
// through this list: an op without a test row fails.
#pragma once

#include <span>

#include "core/autograd.h"

namespace norma {

[[nodiscard]] std::span<const OpInfo* const> all_ops();

}  // namespace norma
