// Probe: a model seen from inside, on real batches, without a step taken.
//
// Note [Names of probe values]. A probe is a list of named numbers, the same for `norma probe`, for
// the records of `train.probe_every` and for the claims of studies:
//
//   loss                        of the first batch, per target
//   stream.mean|std|rms.PATH    of what passes at PATH: "embedding", "blocks.3"; in sequential
//                               models "input" and "layers.2", what leaves that layer
//   stream.spread.PATH          deviation, over the batches, of a feature's mean over a batch,
//                               by its deviation over all: 1/sqrt(B) for independent samples
//   branch.rms.PATH             of what a residual branch adds: "blocks.3.attention"
//   branch.share.PATH           that, by the RMS of what leaves its block
//   logit.PATH                  largest attention logit of all heads: "blocks.3.attention"
//   logit.PATH.H                of head H
//   logit.largest               of all layers
//   log_z                       mean |log Z| over the targets, Z = sum_j exp(logit_j); of
//                               cross-entropy alone
//   grad.NAME                   norm of the gradient of a parameter, on the first batch
//   grad.blocks.3               of a block's parameters together; grad.layers.2 of a layer's
//   grad.whole                  of all
//   mean_grad.(the same)        norm of the gradient averaged over the batches
//   sees.batch|padding|later|scale|shift|contrast, rounding.output|grad: see sees.h and rounding.h
//   sharpness                   largest eigenvalue of the loss's Hessian; sharpness.smallest
//   sharpness.adam              of P^-1/2 H P^-1/2, as Adam sees it at its first step
//   stable_lr.sgd|adam          the rate up to which these predict a stable step
//   stable_lr.first_step        the rate up to which Adam's first step, taken from the first batch,
//                               lowers the loss of the others
//
// What cannot be told since a number is not finite is NaN, and no other's number in its place.
//
// In a name that is looked up, `first`, `middle` and `last` stand for a block's number: 0, L/2,
// L-1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/data/data_set.h"
#include "layers/losses.h"
#include "models/model.h"

namespace norma {

struct ProbeOptions {
  std::int64_t batch = 32;   // samples
  std::int64_t batches = 4;  // that gradients and statistics are averaged over
  bool curvature = true;     // sharpness: some tens of products with the Hessian
  int most_products = 60;    // with each of the two matrices
  std::uint64_t seed = 0;    // of dropout and of the start of Lanczos
  // The same model built in f64, for `rounding`; its state is overwritten. Null: no such values.
  Model* exact = nullptr;
};

using ProbeValues = std::vector<std::pair<std::string, double>>;

// Probes the model on training batches 0..batches-1. The model is as it was before: parameters,
// their gradients, running statistics and mode. Throws Error if a pass fails.
[[nodiscard]] ProbeValues probe(Model& model, const DataSet& data, const LossConfig& loss,
                                const ProbeOptions& options);

// The value called `name`, see Note [Names of probe values]; nothing if there is none.
[[nodiscard]] std::optional<double> find_probe_value(const ProbeValues& values,
                                                     std::string_view name);
// The same, but NaN if there is none.
[[nodiscard]] double probe_value(const ProbeValues& values, std::string_view name);

// The number of blocks whose gradients are there, below `prefix` ("blocks." or "encoder.blocks.").
[[nodiscard]] std::int64_t count_blocks(const ProbeValues& values, std::string_view prefix);

// By path, a word beside it: "layers.2" is a "batch_norm".
using ProbeLabels = std::map<std::string, std::string>;

// Tables by depth, for the terminal.
[[nodiscard]] std::string probe_text(const ProbeValues& values, const ProbeLabels& labels = {});

}  // namespace norma
