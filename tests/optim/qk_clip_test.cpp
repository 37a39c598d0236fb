// QK-Clip against numbers worked out by hand.
#include "optim/qk_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/attention.h"
#include "core/ops/linear.h"
#include "core/ops/movement.h"
#include "core/random.h"
#include "tests/optim/support.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using test::parameter;
using Values = std::vector<double>;

TEST_CASE("a head above tau has queries and keys scaled by the root, biases too", "[optim]") {
  Tensor q = parameter({2, 2}, {1, 2, 3, 4}), k = parameter({2, 2}, {5, 6, 7, 8});
  Tensor bq = parameter({2}, {1, 2}), bk = parameter({2}, {3, 4}),
         v = parameter({2, 2}, {1, 1, 1, 1});
  QkClip clip({.tau = 2}, flatten({{"a.q.weight", q},
                                   {"a.q.bias", bq},
                                   {"a.k.weight", k},
                                   {"a.k.bias", bk},
                                   {"a.v.weight", v}}));
  clip.see("a", Tensor::from({2}, {8, 2}));  // gamma = 2/8 for the first, whose root is 1/2
  clip.see("a", Tensor::from({2}, {3, 1}));  // another micro-batch: the larger counts
  const auto version = q.version();
  clip.apply();
  CHECK(q.version() > version);
  CHECK(q.to_vector() == Values{0.5, 1, 3, 4});
  CHECK(k.to_vector() == Values{2.5, 3, 7, 8});
  CHECK(bq.to_vector() == Values{0.5, 2});
  CHECK(bk.to_vector() == Values{1.5, 4});
  CHECK(v.to_vector() == Values{1, 1, 1, 1});
  clip.reset();
  clip.apply();  // nothing was seen
  CHECK(q.to_vector() == Values{0.5, 1, 3, 4});
}

TEST_CASE("with shared keys the queries take the whole factor", "[optim]") {
  Tensor q = parameter({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), bq = parameter({4}, {1, 2, 3, 4});
  Tensor k = parameter({2, 2}, {5, 6, 7, 8}), bk = parameter({2}, {1, 1});
  // Two query heads of width 2 share one key head.
  QkClip clip({.tau = 2},
              flatten({{"a.q.weight", q}, {"a.q.bias", bq}, {"a.k.weight", k}, {"a.k.bias", bk}}));
  clip.see("a", Tensor::from({2}, {1, 8}));
  clip.apply();
  CHECK(q.to_vector() == Values{1, 2, 3, 4, 1.25, 1.5, 1.75, 2});
  CHECK(bq.to_vector() == Values{1, 2, 0.75, 1});
  CHECK(k.to_vector() == Values{5, 6, 7, 8});
  CHECK(bk.to_vector() == Values{1, 1});
}

// The largest logits of attention over x with the weights q and k, of `heads` and `kv` heads.
Tensor largest_logits(const Tensor& x, const Tensor& q, const Tensor& k, std::int64_t heads,
                      std::int64_t kv) {
  const auto split = [&](const Tensor& w, std::int64_t n) {
    return reshape(linear(x, w, {}), {x.size(0), x.size(1), n, w.size(0) / n});
  };
  Tensor largest;
  AttentionOptions options;
  options.largest_logit = &largest;
  (void)attention(split(q, heads), split(k, kv), split(k, kv), options);
  return largest;
}

TEST_CASE("after the clip the largest logit of every head is at most tau", "[optim]") {
  for (const std::int64_t kv : {4, 2, 1}) {
    Tensor x = Tensor::empty({2, 5, 6}, DType::f64), q = Tensor::empty({12, 6}, DType::f64),
           k = Tensor::empty({kv * 3, 6}, DType::f64);
    for (Tensor* t : {&x, &q, &k}) {
      fill_normal(*t, 0, 1, random_key(1, std::to_string(t->numel())));
    }
    q.set_requires_grad();
    k.set_requires_grad();
    const NoGrad off;
    const Values before = largest_logits(x, q, k, 4, kv).to_vector();
    Values sorted = before;
    std::sort(sorted.begin(), sorted.end());
    const double tau = (sorted[1] + sorted[2]) / 2;  // between the heads: two are clipped
    QkClip clip({.tau = tau}, flatten({{"a.q.weight", q}, {"a.k.weight", k}}));
    clip.see("a", largest_logits(x, q, k, 4, kv));
    clip.apply();
    const Values after = largest_logits(x, q, k, 4, kv).to_vector();
    for (std::size_t h = 0; h < 4; ++h) {
      CHECK(after[h] == Approx(std::min(tau, before[h])).epsilon(1e-12));
    }
  }
}

TEST_CASE("QK-Clip leaves frozen weights alone, and tells what it does not find", "[optim]") {
  Tensor q = parameter({2, 2}, {1, 2, 3, 4}), k = parameter({2, 2}, {5, 6, 7, 8});
  QkClip clip({.tau = 2}, flatten({{"a.q.weight", q}, {"a.k.weight", k}}));
  k.set_requires_grad(false);
  clip.see("a", Tensor::from({2}, {8, 2}));
  clip.apply();
  CHECK(q.to_vector() == Values{0.5, 1, 3, 4});
  CHECK(k.to_vector() == Values{5, 6, 7, 8});
  clip.see("b", Tensor::from({2}, {8, 2}));
  NORMA_CHECK_ERROR(clip.apply(), "the attention at b has no b.q.weight and b.k.weight");
}

TEST_CASE("a head with a logit that is not finite is left alone, whichever micro-batch had it",
          "[optim]") {
  for (const double fault : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const bool first : {true, false}) {
      INFO(fault << (first ? " first" : " last"));
      Tensor q = parameter({2, 2}, {1, 2, 3, 4}), k = parameter({2, 2}, {5, 6, 7, 8});
      QkClip clip({.tau = 2}, flatten({{"a.q.weight", q}, {"a.k.weight", k}}));
      const Tensor with = Tensor::from({2}, {fault, 1}), without = Tensor::from({2}, {8, 8});
      clip.see("a", first ? with : without);
      clip.see("a", first ? without : with);
      clip.apply();
      CHECK(q.to_vector() == Values{1, 2, 1.5, 2});
      CHECK(k.to_vector() == Values{5, 6, 3.5, 4});
    }
  }
}

}  // namespace
}  // namespace norma
