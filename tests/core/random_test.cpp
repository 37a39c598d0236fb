#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "core/parallel.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Source: Random123 1.14, examples/kat_vectors, the three lines "philox4x32 10". The counter's
// words are counter (low, high) and stream (low, high), the key's words are the seed's.
TEST_CASE("random: philox4x32-10 gives the published vectors") {
  CHECK(random_block({0, 0}, 0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint64_t ones = std::numeric_limits<std::uint64_t>::max();
  CHECK(random_block({ones, ones}, ones) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(random_block({0x299f31d0a4093822, 0x0370734413198a2e}, 0x85a308d3243f6a88) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: seed and path each choose the stream") {
  const RandomKey a = random_key(1, "init/blocks.0.attention.q.weight");
  CHECK(random_block(a, 0) == random_block(random_key(1, "init/blocks.0.attention.q.weight"), 0));
  CHECK(random_block(a, 0) != random_block(random_key(2, "init/blocks.0.attention.q.weight"), 0));
  CHECK(random_block(a, 0) != random_block(random_key(1, "init/blocks.1.attention.q.weight"), 0));
  std::set<std::uint64_t> streams;
  for (int i = 0; i < 1000; ++i) {
    streams.insert(random_key(0, "dropout/step " + std::to_string(i)).stream);
  }
  CHECK(streams.size() == 1000);
  // FNV-1a of "" is the offset basis, cbf29ce484222325; SplitMix64's finalizer of it, by hand.
  std::uint64_t x = 0xcbf29ce484222325u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  CHECK(random_key(0, "").stream == (x ^ (x >> 31)));
}

TEST_CASE("random: uniform numbers lie in [0, 1)") {
  CHECK(uniform_f32(0) == 0.0f);
  CHECK(uniform_f32(0xffffffff) == 1.0f - 0x1p-24f);
  CHECK(uniform_f64(0, 0) == 0.0);
  CHECK(uniform_f64(0xffffffff, 0xffffffff) == 1.0 - 0x1p-53);
  CHECK(uniform_f64(0x80000000, 0) == 0.5);
}

TEST_CASE("random: a stream read in order") {
  RandomStream s(random_key(7, "data"));
  const Block first = random_block(random_key(7, "data"), 0);
  for (std::uint32_t word : first) CHECK(s.next_u32() == word);
  CHECK(s.next_u32() == random_block(random_key(7, "data"), 1)[0]);
  RandomStream late(random_key(7, "data"), 1);
  CHECK(late.next_u32() == random_block(random_key(7, "data"), 1)[0]);
}

TEST_CASE("random: below is uniform over 0..n-1") {
  RandomStream s(random_key(3, "below"));
  std::array<int, 6> counts{};
  for (int i = 0; i < 60000; ++i) ++counts.at(static_cast<std::size_t>(s.below(6)));
  double chi2 = 0;
  for (int c : counts) chi2 += (c - 10000.0) * (c - 10000.0) / 10000.0;
  CHECK(chi2 < 20.5);  // 99.9 % of a chi-squared variable with 5 degrees of freedom
  CHECK(s.below(1) == 0);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 100; ++i) {
    const std::int64_t x = s.below(most);
    CHECK((x >= 0 && x < most));
  }
  CHECK_THROWS_WITH(s.below(0), "random: below(n) expects n of at least 1; got 0");
}

TEST_CASE("random: a stream's normal numbers") {
  RandomStream s(random_key(11, "normal"));
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double z = s.normal();
    sum += z;
    squares += z * z;
  }
  CHECK(std::abs(sum / n) < 0.012);          // 4 deviations of 1 / sqrt(n)
  CHECK(std::abs(squares / n - 1) < 0.018);  // 4 deviations of sqrt(2 / n)
}

TEST_CASE("random: a permutation holds every number once") {
  const auto order = random_permutation(1000, random_key(5, "data/epoch 3"));
  CHECK(order == random_permutation(1000, random_key(5, "data/epoch 3")));
  CHECK(order != random_permutation(1000, random_key(5, "data/epoch 4")));
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool all = true, moved = false;
  for (std::int64_t i = 0; i < 1000; ++i) {
    all = all && sorted[static_cast<std::size_t>(i)] == i;
    moved = moved || order[static_cast<std::size_t>(i)] != i;
  }
  CHECK(all);
  CHECK(moved);
  CHECK(random_permutation(0, random_key(5, "x")).empty());
}

TEST_CASE("random: fills have the asked moments") {
  const std::int64_t n = 200001;
  Tensor x = Tensor::empty({n});
  fill_normal(x, 1.0, 0.5, random_key(1, "init/w"));
  double sum = 0, squares = 0;
  for (double v : x.to_vector()) {
    sum += v;
    squares += (v - 1) * (v - 1);
  }
  CHECK(std::abs(sum / n - 1.0) < 0.0045);
  CHECK(std::abs(std::sqrt(squares / n) - 0.5) < 0.0032);
  fill_uniform(x, -2.0, 3.0, random_key(1, "init/w"));
  double low = 9, high = -9;
  sum = 0;
  for (double v : x.to_vector()) {
    sum += v;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  CHECK(std::abs(sum / n - 0.5) < 0.013);
  CHECK((low >= -2.0 && low < -1.999));
  CHECK((high < 3.0 && high > 2.999));
  CHECK_THROWS_WITH(fill_uniform(x, 1, 0, {}), "fill_uniform: expected low <= high; got 1 and 0");
}

TEST_CASE("random: an element depends on the key and its index alone") {
  Tensor a = Tensor::empty({100003}), b = Tensor::empty({100003}, DType::f64);
  Tensor c = Tensor::empty({101});
  const int before = num_threads();
  fill_normal(a, 0, 1, random_key(9, "p"));
  set_num_threads(3);
  fill_normal(b, 0, 1, random_key(9, "p"));
  fill_normal(c, 0, 1, random_key(9, "p"));
  set_num_threads(before);
  const auto va = a.to_vector(), vb = b.to_vector(), vc = c.to_vector();
  bool rounded = true;
  for (std::size_t i = 0; i < va.size(); ++i) {
    rounded = rounded && va[i] == static_cast<double>(static_cast<float>(vb[i]));
  }
  CHECK(rounded);
  CHECK(std::equal(vc.begin(), vc.end(), va.begin()));
}

}  // namespace
}  // namespace norma
