// Model: the whole network, from a batch's inputs to its outputs.
#pragma once

#include <memory>

#include "layers/layer.h"

namespace norma {

// Shapes: inputs (N, *input) or ids (B, T); outputs (N, classes), or logits (B, T, vocab).
using Model = Layer;
using ModelPtr = LayerPtr;

}  // namespace norma
