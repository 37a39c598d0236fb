#include "apps/data/shift.h"

#include <algorithm>

namespace norma {
namespace {

class Shift final : public SequenceTask {
 public:
  Shift(const ShiftConfig& config, std::uint64_t seed)
      : SequenceTask(ShiftConfig::type, config, seed) {}

 protected:
  void make_sample(RandomStream& stream, std::span<std::int64_t> inputs,
                   std::span<std::int64_t> targets) const override {
    for (std::int64_t& id : inputs) id = stream.below(spec().vocab);
    std::rotate_copy(inputs.begin(), inputs.end() - 1, inputs.end(), targets.begin());
  }
};

}  // namespace

std::unique_ptr<DataSet> ShiftConfig::make(std::uint64_t seed) const {
  return std::make_unique<Shift>(*this, seed);
}

}  // namespace norma
