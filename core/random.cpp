#include "core/random.h"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/parallel.h"

namespace norma {
namespace {

// Blocks a chunk of a parallel fill: two elements each.
constexpr std::int64_t kBlocksPerChunk = 8192;

// FNV-1a over the bytes of the path (Fowler, Noll, Vo; 64-bit offset basis and prime).
std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

// The finalizer of SplitMix64 (Steele et al. 2014): FNV-1a leaves the upper bits of short paths
// alike, this spreads every input bit over all output bits.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Two independent N(0, 1) from four words (Box and Muller 1958). 1 - u lies in (0, 1], so that the
// logarithm is finite.
std::pair<double, double> box_muller(const std::array<std::uint32_t, 4>& w) {
  const double u = 1.0 - uniform_f64(w[0], w[1]);
  const double angle = 2.0 * std::numbers::pi * uniform_f64(w[2], w[3]);
  const double radius = std::sqrt(-2.0 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Element 2 b and 2 b + 1 are make(block b).first and .second.
template <class T, class Make>
void fill_pairs(T* out, std::int64_t n, RandomKey key, Make make) {
  parallel_for((n + 1) / 2, kBlocksPerChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const auto [first, second] = make(random_block(key, static_cast<std::uint64_t>(b)));
      out[2 * b] = first;
      if (2 * b + 1 < n) out[2 * b + 1] = second;
    }
  });
}

template <class T>
T narrow(double x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return T(static_cast<float>(x));
  }
}

// Calls f.template operator()<T>() for a floating type.
template <class F>
void dispatch_floating(DType dtype, const char* op, F&& f) {
  require(is_floating(dtype), "{}: expected a floating type; got {}", op, name_of(dtype));
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<bf16>();
    default:
      return f.template operator()<f16>();
  }
}

}  // namespace

RandomKey random_key(std::uint64_t seed, std::string_view path) { return {seed, mix(fnv1a(path))}; }

std::array<std::uint32_t, 4> random_block(RandomKey key, std::uint64_t counter) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const philox4x32_ctr_t ctr = {{low(counter), high(counter), low(key.stream), high(key.stream)}};
  const philox4x32_key_t k = {{low(key.seed), high(key.seed)}};
  const philox4x32_ctr_t r = philox4x32_R(10, ctr, k);
  return {r.v[0], r.v[1], r.v[2], r.v[3]};
}

std::uint32_t RandomStream::next_u32() {
  if (used_ == 4) {
    block_ = random_block(key_, counter_++);
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

double RandomStream::uniform() {
  const std::uint32_t high = next_u32();
  return uniform_f64(high, next_u32());
}

double RandomStream::normal() {
  std::array<std::uint32_t, 4> words;
  for (std::uint32_t& w : words) w = next_u32();
  return box_muller(words).first;
}

std::int64_t RandomStream::below(std::int64_t n) {
  require(n > 0, "random: below(n) expects n of at least 1; got {}", n);
  const auto bound = static_cast<std::uint64_t>(n);
  // The numbers from `first` up are a whole multiple of n; smaller ones would favour the low
  // values.
  const std::uint64_t first = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t high = next_u32();
    const std::uint64_t x = high << 32 | next_u32();
    if (x >= first) return static_cast<std::int64_t>(x % bound);
  }
}

void fill_uniform(Tensor& x, double low, double high, RandomKey key) {
  require(low <= high, "fill_uniform: expected low <= high; got {} and {}", low, high);
  dispatch_floating(x.dtype(), "fill_uniform", [&]<class T>() {
    // Rounding to a narrower type may give `high` itself, which the range does not include. Only
    // half types may still round up to it: their steps are too wide to promise more.
    const double limit = std::is_same_v<T, double>
                             ? std::nextafter(high, low)
                             : static_cast<double>(std::nextafter(static_cast<float>(high),
                                                                  static_cast<float>(low)));
    const auto value = [&](std::uint32_t h, std::uint32_t l) {
      return narrow<T>(std::min(low + (high - low) * uniform_f64(h, l), limit));
    };
    fill_pairs(x.mutable_data<T>(), x.numel(), key, [&](const std::array<std::uint32_t, 4>& w) {
      return std::pair<T, T>(value(w[0], w[1]), value(w[2], w[3]));
    });
  });
}

void fill_normal(Tensor& x, double mean, double std, RandomKey key) {
  require(std >= 0, "fill_normal: expected std of at least 0; got {}", std);
  dispatch_floating(x.dtype(), "fill_normal", [&]<class T>() {
    fill_pairs(x.mutable_data<T>(), x.numel(), key, [&](const std::array<std::uint32_t, 4>& w) {
      const auto [a, b] = box_muller(w);
      return std::pair<T, T>(narrow<T>(mean + std * a), narrow<T>(mean + std * b));
    });
  });
}

std::vector<std::int64_t> random_permutation(std::int64_t n, RandomKey key) {
  require(n >= 0, "random_permutation: expected n of at least 0; got {}", n);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  RandomStream stream(key);
  for (std::int64_t i = n - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(stream.below(i + 1))]);
  }
  return order;
}

}  // namespace norma
