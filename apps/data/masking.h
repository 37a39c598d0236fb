// Masked language modelling, as in BERT (Devlin et al. 2019, arXiv 1810.04805, section 3.1).
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"

namespace norma {

enum class Part : std::uint8_t;

// The stream for one sample: of (seed, epoch, sample) in training, else of the sample alone.
[[nodiscard]] RandomKey masking_key(Part part, std::uint64_t seed, std::int64_t epoch,
                                    std::int64_t sample);

// Of n ids, max(1, round(0.15 n)) places are drawn. Their ids become the targets there, and the
// target is kIgnored elsewhere; of what was drawn, 80 % become `blank`, 10 % a random id below
// `vocab`, and 10 % stay as they are. `targets` has n elements, too.
void mask_tokens(RandomStream& stream, std::span<std::int64_t> ids, std::span<std::int64_t> targets,
                 std::int64_t vocab, std::int64_t blank);

}  // namespace norma
