// Comparison and selection kernels.
#pragma once

#include "core/kernels/pointwise.h"

namespace norma::kernels {

enum class Comparison { eq, ne, lt, le, gt, ge };

// y = a op b as 1 or 0, with operands 0 and 1 of the plan; any element type but half ones.
void compare(Comparison op, const BroadcastPlan& plan, DType dtype, const void* a, const void* b,
             std::uint8_t* y);

// y = condition ? a : b, with operands 0, 1 and 2 of the plan.
template <class T>  // float or double
void select(const BroadcastPlan& plan, const std::uint8_t* condition, const T* a, const T* b, T* y);

}  // namespace norma::kernels
