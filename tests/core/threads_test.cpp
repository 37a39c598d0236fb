// Loops on several threads: the same bits at any number, errors, and the pool. See
// pytorch/pytorch#2201. These are also what runs under ThreadSanitizer.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "core/autograd.h"
#include "core/ops/activations.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention.h"
#include "core/ops/conv.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/linear.h"
#include "core/ops/movement.h"
#include "core/ops/norm_channels.h"
#include "core/ops/norm_rows.h"
#include "core/ops/reduce.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace norma {
namespace {

using test::random_tensor;

// Sets the number of threads for a scope.
class Threads {
 public:
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_ = num_threads();
};

// The values of f at one thread, and how many of the other numbers of threads differ from it.
template <class F>
int differing(F f) {
  std::vector<Tensor> expected;
  {
    const Threads one(1);
    expected = f();
  }
  int count = 0;
  for (const int n : {2, 3, 8}) {
    const Threads some(n);
    const std::vector<Tensor> got = f();
    for (std::size_t i = 0; i < got.size(); ++i) count += !test::same_bits(got[i], expected[i]);
  }
  return count;
}

TEST_CASE("the comparison of threads finds what depends on their number", "[threads]") {
  CHECK(differing([] { return std::vector<Tensor>{Tensor::scalar(num_threads())}; }) == 3);
}

TEST_CASE("parallel_for visits every index once", "[threads]") {
  const Threads some(4);
  for (const std::int64_t n : {0, 1, 7, 1000}) {
    for (const std::int64_t grain : {-1, 1, 3, 999, 1000, 5000}) {
      std::vector<int> visits(static_cast<std::size_t>(n));
      parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      CHECK(visits == std::vector<int>(static_cast<std::size_t>(n), 1));
    }
  }
}

TEST_CASE("even_grain: an even number of chunks, no larger than asked for", "[threads]") {
  CHECK(even_grain(768, 256) == 192);
  CHECK(even_grain(512, 256) == 256);
  CHECK(even_grain(200, 256) == 256);
  for (std::int64_t n = 400; n < 900; ++n) {
    for (const std::int64_t grain : {30, 64, 100, 256}) {
      const std::int64_t even = even_grain(n, grain), chunks = (n + even - 1) / even;
      INFO(n << " by " << grain << " gives " << even);
      CHECK(even <= grain);
      CHECK((chunks % 2 == 0 || n <= grain));
    }
  }
  CHECK(even_grain(15, 3) == 2);
  CHECK(even_grain(272, 16) == 14);
  CHECK(even_grain(9, 3) == 3);  // neither 3 nor 2 cuts 9 evenly
  for (const std::int64_t n : {0, 1, 5}) CHECK(even_grain(n, 3) >= 1);
  CHECK(row_grain(768, 128, 32768) == 192);
}

TEST_CASE("parallel_for: who has none left takes what another leaves", "[threads]") {
  cpu_set_t mine;  // a program that may use one core has one thread
  if (!has_threads() || sched_getaffinity(0, sizeof mine, &mine) != 0 || CPU_COUNT(&mine) < 2)
    return;
  // Chunk 4 is the second thread's first, and waits for all others, three of which are that
  // thread's too: they would never run if each kept to its own. (It gives up after a minute.)
  const Threads some(2);
  std::atomic<int> done{0};
  std::atomic<bool> taken{false};
  std::vector<int> visits(8);
  parallel_for(8, 1, [&](std::int64_t i, std::int64_t) {
    ++visits[static_cast<std::size_t>(i)];
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (i == 4 && done < 7 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (i == 4) taken = done == 7;
    ++done;
  });
  CHECK(taken);
  CHECK(visits == std::vector<int>(8, 1));
}

TEST_CASE("parallel_for: an error in a task comes to the caller, and the next loop runs",
          "[threads]") {
  const Threads some(4);
  NORMA_CHECK_ERROR(parallel_for(100, 1,
                                 [](std::int64_t begin, std::int64_t) {
                                   require(begin != 63, "task {} failed", begin);
                                 }),
                    "task 63 failed");
  CHECK(parallel_sum<std::int64_t>(100, 1, [](std::int64_t b, std::int64_t) { return b; }) == 4950);
  CHECK_FALSE(in_parallel());
}

TEST_CASE("parallel_for: a loop inside a loop runs on its own thread", "[threads]") {
  const Threads some(4);
  std::vector<std::int64_t> sums(64);
  parallel_for(64, 1, [&](std::int64_t begin, std::int64_t) {
    sums[static_cast<std::size_t>(begin)] =
        parallel_sum<std::int64_t>(1000, 10, [](std::int64_t b, std::int64_t e) { return e - b; });
  });
  CHECK(sums == std::vector<std::int64_t>(64, 1000));
}

TEST_CASE("parallel_sum of numbers of all sizes has the same bits at any number of threads",
          "[threads]") {
  RandomStream stream(random_key(0, "test"));
  std::vector<double> x(1000000);
  for (double& v : x) v = std::ldexp(stream.uniform() - 0.5, static_cast<int>(stream.below(60)));
  CHECK(differing([&] {
          return std::vector<Tensor>{
              Tensor::scalar(parallel_sum<double>(1000000, 1000,
                                                  [&](std::int64_t b, std::int64_t e) {
                                                    double sum = 0;
                                                    for (std::int64_t i = b; i < e; ++i) {
                                                      sum += x[static_cast<std::size_t>(i)];
                                                    }
                                                    return sum;
                                                  }),
                             DType::f64)};
        }) == 0);
}

TEST_CASE("values and gradients have the same bits at any number of threads", "[threads]") {
  // Large enough to be cut up: batch 4, 32 places, 4 heads of 32.
  const auto run = [] {
    const auto leaf = [](const Shape& shape, std::uint64_t seed) {
      return random_tensor(shape, seed, DType::f32, -0.2, 0.2).set_requires_grad();
    };
    Tensor x = leaf({4, 32, 128}, 1), wide = leaf({512, 128}, 2), narrow = leaf({128, 512}, 3);
    Tensor bias = leaf({512}, 4), gain = leaf({128}, 5), shift = leaf({128}, 6);
    const Tensor heads = reshape(layer_norm(x, gain, shift), {4, 32, 4, 32});
    const Tensor mixed = reshape(attention(heads, heads, heads, {.causal = true}), {4, 32, 128});
    const Tensor hidden = dropout(gelu(linear(x + mixed, wide, bias)), 0.1, random_key(0, "drop"));
    const Tensor logits = reshape(linear(hidden, narrow), {128, 128});
    const Tensor loss = cross_entropy(logits, Tensor::arange(128));
    loss.backward();
    return std::vector<Tensor>{loss.detach(), x.grad(),    wide.grad(), narrow.grad(),
                               bias.grad(),   gain.grad(), shift.grad()};
  };
  CHECK(differing(run) == 0);
}

TEST_CASE("images have the same bits at any number of threads", "[threads]") {
  const auto run = [] {
    const auto leaf = [](const Shape& shape, std::uint64_t seed) {
      return random_tensor(shape, seed, DType::f32, -0.5, 0.5).set_requires_grad();
    };
    Tensor x = leaf({8, 3, 20, 20}, 1), w = leaf({16, 3, 3, 3}, 2);
    Tensor gain = leaf({16}, 3), shift = leaf({16}, 4);
    const Tensor y = relu(batch_norm(conv2d(x, w, {}, {.padding = 1}), gain, shift, {}));
    const Tensor loss = mean(y * y);
    loss.backward();
    return std::vector<Tensor>{loss.detach(), x.grad(), w.grad(), gain.grad(), shift.grad()};
  };
  CHECK(differing(run) == 0);
}

TEST_CASE("threads of the caller's own each compute on tensors of their own", "[threads]") {
  std::vector<double> results(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Tensor x = Tensor::full({100, 7}, static_cast<double>(t));
        x.set_requires_grad();
        sum(x * x).backward();
        results[t] = x.grad().to_vector()[699];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results == std::vector<double>{0, 2, 4, 6});
}

}  // namespace
}  // namespace norma
