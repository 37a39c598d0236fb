#include "apps/training/translation.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/reduce.h"

namespace norma {

std::vector<std::int64_t> translate(Model& model, const DataSpec& data,
                                    std::span<const std::int64_t> source) {
  require(data.source.rank() == 1, "translate: the data have no source to translate from");
  const std::int64_t longest = data.source[0];
  const auto used = static_cast<std::int64_t>(source.size());
  require(used >= 1 && used <= longest, "translate: expected 1 to {} tokens; got {}", longest,
          used);
  const NoGrad off;
  model.eval();
  Forward pass;
  pass.source = Tensor::from_ids(Shape{1, used}, source);
  Cache cache;
  if (model.continues() != Continues::no) pass.cache = &cache;
  std::vector<std::int64_t> ids = {data.edge};
  while (static_cast<std::int64_t>(ids.size()) <= data.input[0]) {
    const auto unread = std::span(ids).subspan(static_cast<std::size_t>(cache.length));
    const Shape shape{1, static_cast<std::int64_t>(unread.size())};
    const Tensor logits = model.forward(Tensor::from_ids(shape, unread), pass);
    const std::int64_t next = argmax(logits, -1).to_ids().back();
    if (next == data.edge) break;
    ids.push_back(next);
  }
  return {ids.begin() + 1, ids.end()};
}

}  // namespace norma
