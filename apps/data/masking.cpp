#include "apps/data/masking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "apps/data/data_set.h"

namespace norma {
namespace {

constexpr double kDrawn = 0.15;
constexpr double kBlank = 0.8;   // of what is drawn
constexpr double kRandom = 0.1;  // likewise

}  // namespace

RandomKey masking_key(Part part, std::uint64_t seed, std::int64_t epoch, std::int64_t sample) {
  if (part != Part::train) return random_key(0, fmt::format("data/mask/validation {}", sample));
  return random_key(seed, fmt::format("data/mask/epoch {}/{}", epoch, sample));
}

void mask_tokens(RandomStream& stream, std::span<std::int64_t> ids, std::span<std::int64_t> targets,
                 std::int64_t vocab, std::int64_t blank) {
  std::fill(targets.begin(), targets.end(), kIgnored);
  if (ids.empty()) return;
  std::vector<std::size_t> places(ids.size());
  std::iota(places.begin(), places.end(), 0);
  const auto n =
      static_cast<std::size_t>(std::max(1.0, std::round(kDrawn * static_cast<double>(ids.size()))));
  for (std::size_t k = 0; k < n; ++k) {  // the first n places of a random order (Fisher-Yates)
    const auto left = static_cast<std::int64_t>(places.size() - k);
    std::swap(places[k], places[k + static_cast<std::size_t>(stream.below(left))]);
    std::int64_t& id = ids[places[k]];
    targets[places[k]] = id;
    const double u = stream.uniform();
    if (u < kBlank) {
      id = blank;
    } else if (u < kBlank + kRandom) {
      id = stream.below(vocab);
    }
  }
}

}  // namespace norma
