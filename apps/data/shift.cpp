#include "apps/data/shift.h"

#include <algorithm>

namespace norma {
namespace {

class Shift final : public SequenceTask {
 public:
  Shift(const ShiftConfig& config, const DataContext& context)
      : SequenceTask(ShiftConfig::type, config,
                     {.vocab = config.vocab,
                      .source = config.length,
                      .answer = config.length,
                      .in_place = true,
                      .validation_samples = 128},
                     context),
        vocab_(config.vocab) {}

 protected:
  void make_sample(Part, RandomStream& stream, std::vector<std::int64_t>& source,
                   std::span<std::int64_t> answer) const override {
    for (std::int64_t& id : source) id = stream.below(vocab_);
    std::rotate_copy(source.begin(), source.end() - 1, source.end(), answer.begin());
  }

 private:
  std::int64_t vocab_;
};

}  // namespace

std::unique_ptr<DataSet> ShiftConfig::make(const DataContext& run) const {
  return std::make_unique<Shift>(*this, run);
}

}  // namespace norma
