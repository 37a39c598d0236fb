#include "apps/data/reorder.h"

#include <algorithm>

namespace norma {
namespace {

// `order` puts the ids of an answer, which come as in the source, into the wanted order.
using Order = void (*)(std::span<std::int64_t> ids);

class Reorder final : public SequenceTask {
 public:
  Reorder(std::string_view name, const SequenceOptions& options, Order order,
          const DataContext& context)
      : SequenceTask(name, options,
                     {.vocab = options.vocab, .source = options.length, .answer = options.length},
                     context),
        vocab_(options.vocab),
        order_(order) {}

 protected:
  void make_sample(Part, RandomStream& stream, std::vector<std::int64_t>& source,
                   std::span<std::int64_t> answer) const override {
    for (std::int64_t& id : source) id = stream.below(vocab_);
    std::copy(source.begin(), source.end(), answer.begin());
    order_(answer);
  }

 private:
  std::int64_t vocab_;
  Order order_;
};

}  // namespace

std::unique_ptr<DataSet> CopyConfig::make(const DataContext& run) const {
  return std::make_unique<Reorder>(
      type, *this, [](std::span<std::int64_t>) {}, run);
}

std::unique_ptr<DataSet> ReverseConfig::make(const DataContext& run) const {
  return std::make_unique<Reorder>(
      type, *this, [](std::span<std::int64_t> ids) { std::reverse(ids.begin(), ids.end()); }, run);
}

std::unique_ptr<DataSet> SortConfig::make(const DataContext& run) const {
  return std::make_unique<Reorder>(
      type, *this, [](std::span<std::int64_t> ids) { std::sort(ids.begin(), ids.end()); }, run);
}

}  // namespace norma
