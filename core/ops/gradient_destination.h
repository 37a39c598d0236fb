// How a backward kernel gets its destinations.
#pragma once

#include "core/autograd.h"

namespace norma {

// Where the gradient of `input` goes: `data` stays null if it is not wanted; `accumulate` says
// whether to add to what stands there. Call it once an input.
template <class T>
void gradient_destination(BackwardContext& ctx, int input, T*& data, bool& accumulate) {
  if (!ctx.needs(input)) return;
  Destination d = ctx.destination(input);
  data = d.tensor.mutable_data<T>();
  accumulate = d.accumulate;
}

}  // namespace norma
