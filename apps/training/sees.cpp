#include "apps/training/sees.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "apps/training/build.h"
#include "core/autograd.h"
#include "core/ops/arithmetic.h"
#include "core/ops/movement.h"

namespace norma {
namespace {

// The first sample of `first`, and the others of `others`.
Tensor with_mates(const Tensor& first, const Tensor& others) {
  if (!first.defined()) return first;
  Tensor mixed = others.clone();
  const auto sample_bytes =
      static_cast<std::size_t>(first.numel() / first.size(0) * size_of(first.dtype()));
  std::memcpy(mixed.mutable_raw(), first.raw(), sample_bytes);
  return mixed;
}

bool same_shapes(const Batch& a, const Batch& b) {
  const auto same = [](const Tensor& x, const Tensor& y) {
    return x.defined() == y.defined() && (!x.defined() || x.shape() == y.shape());
  };
  return same(a.inputs, b.inputs) && same(a.mask, b.mask) && same(a.source, b.source) &&
         same(a.source_mask, b.source_mask);
}

// The ids (B, T) from place `from` on, each one higher, around the vocabulary.
Tensor other_ids(const Tensor& ids, std::int64_t from, std::int64_t vocab) {
  Tensor changed = ids.clone();
  std::int64_t* id = changed.mutable_data<std::int64_t>();
  const std::int64_t length = ids.size(1);
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    if (i % length >= from) id[i] = (id[i] + 1) % vocab;
  }
  return changed;
}

// The batch cut to its first `length` places.
Batch cut(const Batch& batch, std::int64_t length) {
  Batch shorter = batch;
  shorter.inputs = slice(batch.inputs, 1, 0, length);
  shorter.mask = batch.mask.defined() ? slice(batch.mask, 1, 0, length)
                                      : Tensor::ones(shorter.inputs.shape(), DType::u8);
  return shorter;
}

// The batch with `more` places of the last id behind it, that count for nothing.
Batch padded(const Batch& batch, std::int64_t more, std::int64_t vocab) {
  const Shape shape{batch.samples(), more};
  Batch longer = batch;
  longer.inputs = concatenate(
      {batch.inputs, Tensor::full(shape, static_cast<double>(vocab - 1), DType::i64)}, 1);
  longer.mask = concatenate({batch.mask, Tensor::zeros(shape, DType::u8)}, 1);
  return longer;
}

// Which outputs are compared: of the first `samples`, and of the first `places` of a sequence.
struct Compared {
  std::int64_t samples;
  std::int64_t places;
  Tensor mask = {};  // (B, T) u8; 0 where an output does not count
};

// |b - a| / |a|. Shapes: a, b (B, V) or (B, T, V), T of each at least the compared places.
double change(const Tensor& a, const Tensor& b, const Compared& compared) {
  const bool sequence = a.rank() == 3;
  const std::int64_t places = sequence ? compared.places : 1;
  const std::int64_t values = a.numel() / a.size(0) / (sequence ? a.size(1) : 1);
  const std::vector<double> before = a.to_vector(), after = b.to_vector();
  const auto at = [&](const std::vector<double>& y, const Tensor& shape, std::int64_t n,
                      std::int64_t t, std::int64_t v) {
    const std::int64_t length = sequence ? shape.size(1) : 1;
    return y[static_cast<std::size_t>((n * length + t) * values + v)];
  };
  double moved = 0, size = 0;
  for (std::int64_t n = 0; n < compared.samples; ++n) {
    for (std::int64_t t = 0; t < places; ++t) {
      if (sequence && compared.mask.defined() &&
          compared.mask.data<std::uint8_t>()[n * compared.mask.size(1) + t] == 0) {
        continue;
      }
      for (std::int64_t v = 0; v < values; ++v) {
        const double y = at(before, a, n, t, v);
        moved += std::pow(at(after, b, n, t, v) - y, 2);
        size += y * y;
      }
    }
  }
  return moved == 0 ? 0 : std::sqrt(moved / size);
}

Tensor outputs_of(Model& model, const Batch& batch) {
  Forward pass = forward_of(batch);
  pass.dropout = false;
  return model.forward(batch.inputs, pass);
}

// Nothing for a model that takes sequences of one length alone.
std::optional<double> change_by_padding(Model& model, const Batch& batch, std::int64_t vocab) {
  const std::int64_t length = batch.inputs.size(1), kept = (length + 1) / 2;
  const Batch shorter = cut(batch, kept);
  try {
    const Tensor alone = outputs_of(model, shorter);
    const Tensor y = outputs_of(model, padded(shorter, length - kept, vocab));
    return change(alone, y, {.samples = batch.samples(), .places = kept, .mask = shorter.mask});
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::pair<std::string, double>> sees(Model& model, const DataSet& data,
                                                 std::int64_t batch_size) {
  const NoGrad off;
  const Batch batch = data.train_batch(0, batch_size);
  const Tensor y = outputs_of(model, batch);
  const std::int64_t samples = batch.samples(), vocab = data.spec().vocab;
  std::vector<std::pair<std::string, double>> seen;
  const auto changed = [&](const Tensor& inputs, const Compared& compared) {
    Batch other = batch;
    other.inputs = inputs;
    return change(y, outputs_of(model, other), compared);
  };
  const std::int64_t length = y.rank() == 3 ? y.size(1) : 1;
  const Compared all{.samples = samples, .places = length, .mask = batch.mask};

  const Batch next = data.train_batch(1, batch_size);
  if (samples > 1 && same_shapes(batch, next)) {
    const Batch other{.inputs = with_mates(batch.inputs, next.inputs),
                      .targets = batch.targets,
                      .mask = with_mates(batch.mask, next.mask),
                      .source = with_mates(batch.source, next.source),
                      .source_mask = with_mates(batch.source_mask, next.source_mask)};
    const Compared first{.samples = 1, .places = length, .mask = batch.mask};
    seen.emplace_back("sees.batch", change(y, outputs_of(model, other), first));
  }
  if (vocab > 1 && batch.inputs.rank() == 2 && batch.inputs.size(1) > 1) {
    if (const auto padding = change_by_padding(model, batch, vocab)) {
      seen.emplace_back("sees.padding", *padding);
    }
    if (length == batch.inputs.size(1)) {
      const std::int64_t half = (length + 1) / 2;
      seen.emplace_back("sees.later",
                        changed(other_ids(batch.inputs, half, vocab),
                                {.samples = samples, .places = half, .mask = batch.mask}));
    }
  }
  if (vocab == 0) {
    seen.emplace_back("sees.scale", changed(batch.inputs * 2.0, all));
    seen.emplace_back("sees.shift", changed(batch.inputs + 1.0, all));
    seen.emplace_back("sees.contrast", changed(with_mates(batch.inputs * 2.0, batch.inputs),
                                               {.samples = 1, .places = length}));
  }
  return seen;
}

}  // namespace norma
