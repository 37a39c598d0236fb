// Attention on queries, keys and values of one memory.
#include "core/ops/arithmetic.h"
#include "core/ops/attention.h"
#include "core/ops/cast.h"
#include "core/ops/linear.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"
#include "tests/core/ops/attention_reference.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

// Inputs: qkv (3, B, T, C) and, if there are two, the bias.
NORMA_OP_CASE(attention_stack, plain) {
  const auto split = [](const Tensor& qkv) {
    std::vector<Tensor> parts;
    const Shape heads{qkv.size(1), qkv.size(2), 2, qkv.size(3) / 2};
    for (std::int64_t i = 0; i < 3; ++i) {
      parts.push_back(reshape(slice(qkv, 0, i, i + 1), heads));
    }
    return parts;
  };
  const AttentionOptions options{.causal = true};
  OpCase row{.run =
                 [=](const auto& in) {
                   AttentionOptions o = options;
                   if (in.size() > 1) o.bias = in[1];
                   return attention_stack(in[0], 2, o);
                 },
             .reference =
                 [=](const auto& in) {
                   std::vector<Tensor> parts = split(in[0]);
                   if (in.size() > 1) parts.push_back(in[1]);
                   return naive_attention(parts, options);
                 },
             .samples = {{{3, 2, 3, 4}},
                         {{3, 2, 5, 6}, {2, 5, 5}},
                         {{3, 1, 37, 34}},
                         {{3, 0, 2, 4}},
                         {{3, 4, 64, 64}}},
             .low = -1.5,
             .high = 1.5};
  row.errors = {{[=] {
                   (void)attention_stack(Tensor::zeros({2, 1, 3, 4}), 2);
                 },
                 "attention_stack: expected q, k and v as (3, B, T, C), with C a multiple of the 2 "
                 "heads; got (2, 1, 3, 4)"},
                {[=] {
                   (void)attention_stack(Tensor::zeros({3, 1, 3, 5}), 2);
                 },
                 "of the 2 heads"},
                {[=] {
                   (void)attention_stack(Tensor::zeros({3, 1, 3, 4}), 0);
                 },
                 "attention_stack: heads must be at least 1; got 0"},
                {[=] { (void)attention_stack(Tensor(), 1); }, "got none"},
                {[=] {
                   (void)attention_stack(Tensor::zeros({3, 1, 3, 4}), 2, {.dropout = 2});
                 },
                 "attention_stack: dropout must lie in [0, 1]; got 2"}};
  return row;
}

TEST_CASE("attention_stack: mask, dropout, largest logits and half types as attention()") {
  const Tensor qkv = random_tensor({3, 2, 21, 12}, 3, DType::f32);
  std::vector<double> mask(2 * 21, 1.0);
  for (std::size_t j = 0; j < 21; j += 4) mask[j] = 0;
  Tensor largest[2];
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Tensor in = to(qkv, dtype);
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < 3; ++i) {
      parts.push_back(reshape(slice(in, 0, i, i + 1), {2, 21, 3, 4}));
    }
    AttentionOptions o{.mask = Tensor::from({2, 21}, mask, DType::u8),
                       .dropout = 0.2,
                       .dropout_key = {1, 2},
                       .largest_logit = &largest[0]};
    const Tensor whole = attention(parts[0], parts[1], parts[2], o);
    o.largest_logit = &largest[1];
    const Tensor stacked = attention_stack(in, 3, o);
    CHECK(stacked.shape() == Shape{2, 21, 12});
    CHECK(same_bits(reshape(whole, {2, 21, 12}), stacked));
    CHECK(same_bits(largest[0], largest[1]));
  }
}

TEST_CASE("attention_stack: the gradient stands in the memory of qkv where nobody else sees that") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor x = random_tensor({2, 33, 8}, 1, dtype);
    x.set_requires_grad();
    std::vector<Tensor> weights;
    for (std::uint64_t i = 0; i < 3; ++i) weights.push_back(random_tensor({8, 8}, 2 + i, dtype));
    const Tensor dy = random_tensor({2, 33, 8}, 7, dtype);
    for (const bool shared : {false, true}) {
      INFO(name_of(dtype) << (shared ? " shared" : " alone"));
      const auto run = [&] {
        const Tensor qkv = linear_stack(x, weights);
        const Tensor y = attention_stack(qkv, 2, {.causal = true});
        // The square's backward comes first, and leaves a gradient for qkv.
        return shared ? y + sum(qkv * qkv, {0}) : y;
      };
      const Tensor y = run();
      x.clear_grad();
      backward(y, dy, {.retain_graph = true});  // keeps qkv
      const Tensor kept = x.grad();
      x.clear_grad();
      backward(y, dy);
      CHECK(same_bits(x.grad(), kept));
      NORMA_CHECK_ERROR(backward(y, dy), "was released by an earlier backward");
    }
    for (const bool seen : {false, true}) {
      Tensor qkv = linear_stack(x, weights);
      const Tensor values = qkv.clone().detach();
      const std::byte *memory = qkv.raw(), *gradient = nullptr;
      register_hook(qkv, [&](const Tensor& g) {
        gradient = g.raw();
        return Tensor();
      });
      const Tensor last = attention_stack(qkv, 2);
      if (!seen) qkv = Tensor();
      backward(last, dy);
      CHECK((gradient == memory) == !seen);
      if (seen) CHECK(same_bits(qkv.detach(), values));
    }
  }
}

TEST_CASE("attention_stack: several blocks of keys in place, as out of place") {
  Tensor x = random_tensor({1, 300, 10}, 1, DType::f32),
         bias = random_tensor({2, 300, 300}, 2, DType::f32);
  x.set_requires_grad();
  bias.set_requires_grad();
  std::vector<Tensor> weights;
  for (std::uint64_t i = 0; i < 3; ++i)
    weights.push_back(random_tensor({10, 10}, 3 + i, DType::f32));
  const Tensor dy = random_tensor({1, 300, 10}, 7, DType::f32);
  const Tensor y = attention_stack(
      linear_stack(x, weights), 2,
      {.causal = true, .window = 270, .bias = bias, .dropout = 0.1, .dropout_key = {1, 2}});
  backward(y, dy, {.retain_graph = true});
  const Tensor dx = x.grad(), dbias = bias.grad();
  x.clear_grad();
  bias.clear_grad();
  backward(y, dy);
  CHECK(same_bits(x.grad(), dx));
  CHECK(same_bits(bias.grad(), dbias));
}

TEST_CASE("attention_stack: a refused backward says the same again") {
  Tensor x = random_tensor({1, 4, 4}, 1), bias = Tensor::zeros({1, 4, 4}, DType::f64);
  x.set_requires_grad();
  const std::vector<Tensor> weights(3, random_tensor({4, 4}, 2));
  const Tensor y = attention_stack(linear_stack(x, weights), 1, {.bias = bias});
  bias.fill_(1);
  for (int i = 0; i < 2; ++i) {
    NORMA_CHECK_ERROR(backward(y, Tensor::ones({1, 4, 4}, DType::f64)),
                      "attention_stack: a tensor of shape (1, 4, 4) that its gradient needs was "
                      "changed in place");
  }
}

}  // namespace
}  // namespace norma::test
