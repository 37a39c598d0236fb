#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/dropout.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include <algorithm>

#include "core/kernels/dropout.h"
#include "core/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// Philox 4x32-10 (Salmon et al. 2011): multipliers and key increments.
[[maybe_unused]] constexpr std::uint32_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
[[maybe_unused]] constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;

// for (b < count) words[4 b ..] = random_block(key, first + b);
void blocks(RandomKey key, std::uint64_t first, std::size_t count, std::uint32_t* words) {
  std::size_t b = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  // A word in the lower half of each 64-bit lane; what is in the upper half never counts, since the
  // product of two lower halves is all that is taken. Four chains hide the latency of a round.
  const hn::ScalableTag<std::uint64_t> d;
  const hn::RebindToUnsigned<hn::Repartition<std::uint32_t, decltype(d)>> d32;
  using V = hn::Vec<decltype(d)>;
  constexpr int kChains = 4;
  const std::size_t lanes = hn::Lanes(d);
  const auto multiply = [&](V x, V m) HWY_ATTR {
    return hn::MulEven(hn::BitCast(d32, x), hn::BitCast(d32, m));
  };
  const V m0 = hn::Set(d, kM0), m1 = hn::Set(d, kM1);
  const V low = hn::Set(d, 0xffffffffu);
  for (; b + kChains * lanes <= count; b += kChains * lanes) {
    V c0[kChains], c1[kChains], c2[kChains], c3[kChains];
    for (int k = 0; k < kChains; ++k) {
      c0[k] = hn::Add(hn::Iota(d, 0), hn::Set(d, first + b + static_cast<std::size_t>(k) * lanes));
      c1[k] = hn::ShiftRight<32>(c0[k]);
      c2[k] = hn::Set(d, key.stream);
      c3[k] = hn::Set(d, key.stream >> 32);
    }
    auto k0 = static_cast<std::uint32_t>(key.seed);
    auto k1 = static_cast<std::uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += kW0, k1 += kW1) {
      const V v0 = hn::Set(d, k0), v1 = hn::Set(d, k1);
      for (int k = 0; k < kChains; ++k) {
        const V p0 = multiply(c0[k], m0), p1 = multiply(c2[k], m1);
        c0[k] = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1[k]), v0);
        c2[k] = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3[k]), v1);
        c1[k] = p1;
        c3[k] = p0;
      }
    }
    for (int k = 0; k < kChains; ++k) {
      const V first_two = hn::Or(hn::And(c0[k], low), hn::ShiftLeft<32>(c1[k]));
      const V last_two = hn::Or(hn::And(c2[k], low), hn::ShiftLeft<32>(c3[k]));
      hn::StoreInterleaved2(
          first_two, last_two, d,
          reinterpret_cast<std::uint64_t*>(words + 4 * (b + static_cast<std::size_t>(k) * lanes)));
    }
  }
#endif
  for (; b < count; ++b) {
    const auto block = random_block(key, first + b);
    std::copy(block.begin(), block.end(), words + 4 * b);
  }
}

// for (i < n) y[i] = words[i] < threshold ? 0 : x[i] * scale;
void mask_f32(const std::uint32_t* words, std::uint32_t threshold, float scale, const float* x,
              float* y, std::size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const std::size_t lanes = hn::Lanes(d);
  const auto t = hn::Set(du, threshold);
  const auto s = hn::Set(d, scale);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto drop = hn::RebindMask(d, hn::Lt(hn::LoadU(du, words + i), t));
    hn::StoreU(hn::IfThenZeroElse(drop, hn::Mul(hn::LoadU(d, x + i), s)), d, y + i);
  }
  for (; i < n; ++i) y[i] = words[i] < threshold ? 0.0f : x[i] * scale;
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/kernels/pointwise.h"
#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(blocks);
HWY_EXPORT(mask_f32);

namespace {

// Blocks that are made at a time: 8 KiB of words, which stay in the first-level cache.
constexpr std::int64_t kTile = 512;

void mask(const std::uint32_t* words, std::uint32_t threshold, double scale, const float* x,
          float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(mask_f32)
  (words, threshold, static_cast<float>(scale), x, y, static_cast<std::size_t>(n));
}
void mask(const std::uint32_t* words, std::uint32_t threshold, double scale, const double* x,
          double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = words[i] < threshold ? 0.0 : x[i] * scale;
}

template <class T>
void dropout_any(RandomKey key, double p, const T* x, T* y, std::int64_t n) {
  const auto threshold = static_cast<std::uint32_t>(p * 0x1p32);
  const double scale = 1.0 / (1.0 - p);
  parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::uint32_t words[4 * kTile];
    for (std::int64_t i = begin; i < end; i += 4 * kTile) {
      const std::int64_t count = std::min(4 * kTile, end - i);
      HWY_DYNAMIC_DISPATCH(blocks)
      (key, static_cast<std::uint64_t>(i / 4), static_cast<std::size_t>((count + 3) / 4), words);
      mask(words, threshold, scale, x + i, y + i, count);
    }
  });
}

}  // namespace

void random_blocks(RandomKey key, std::uint64_t first, std::int64_t count, std::uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(blocks)(key, first, static_cast<std::size_t>(count), words);
}
void dropout(RandomKey key, double p, const float* x, float* y, std::int64_t n) {
  dropout_any(key, p, x, y, n);
}
void dropout(RandomKey key, double p, const double* x, double* y, std::int64_t n) {
  dropout_any(key, p, x, y, n);
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
