// Generated sequences: what tasks like `shift` share.
#pragma once

#include <string>
#include <string_view>

#include "apps/data/data_set.h"
#include "core/random.h"

namespace norma {

struct SequenceOptions : SampleOptions {
  std::int64_t vocab = 64;
  std::int64_t length = 24;
  [[nodiscard]] static config::Fields sequence_fields();
};

// Sample k of the training part is a function of (seed, k); there is no end to them unless `limit`
// is given. The validation part has 128 samples, the same for every seed; none where `validation`
// is 0.
class SequenceTask : public DataSet {
 public:
  [[nodiscard]] std::int64_t size(Part part) const override;

 protected:
  SequenceTask(std::string_view name, const SequenceOptions& options, std::uint64_t seed);
  // Fills inputs and targets, of spec().input[0] ids each, from the stream.
  virtual void make_sample(RandomStream& stream, std::span<std::int64_t> inputs,
                           std::span<std::int64_t> targets) const = 0;
  [[nodiscard]] Batch gather(Part part, std::span<const std::int64_t> samples) const override;

 private:
  std::string name_;
  std::uint64_t seed_;
  std::int64_t train_samples_, validation_samples_;
};

}  // namespace norma
