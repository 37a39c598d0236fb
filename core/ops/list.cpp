#include "core/ops/list.h"

namespace norma {

// One word an op: declared here, defined beside its forward and backward.
// clang-format off
#define NORMA_OPS(X) \
  X(abs) \
  X(add) \
  X(add_scalar) \
  X(alias) \
  X(attention) \
  X(attention_stack) \
  X(avg_pool2d) \
  X(bce_loss) \
  X(broadcast_to) \
  X(cast) \
  X(concatenate) \
  X(conv2d) \
  X(cos) \
  X(cross_entropy) \
  X(div) \
  X(dropout) \
  X(elu) \
  X(embedding) \
  X(erf) \
  X(exp) \
  X(gather) \
  X(geglu) \
  X(gelu) \
  X(global_avg_pool) \
  X(gru_cell) \
  X(huber_loss) \
  X(leaky_relu) \
  X(linear) \
  X(linear_stack) \
  X(log) \
  X(log_softmax) \
  X(logsumexp) \
  X(lstm_cell) \
  X(lstm_output) \
  X(mae_loss) \
  X(matmul) \
  X(max) \
  X(max_pool2d) \
  X(maximum) \
  X(min) \
  X(minimum) \
  X(mse_loss) \
  X(mul) \
  X(mul_scalar) \
  X(neg) \
  X(norm) \
  X(norm_channels) \
  X(norm_rows) \
  X(pad) \
  X(permute) \
  X(pow) \
  X(pow_tensor) \
  X(reglu) \
  X(relu) \
  X(reshape) \
  X(rope) \
  X(rsqrt) \
  X(scatter_add) \
  X(sigmoid) \
  X(silu) \
  X(sin) \
  X(slice) \
  X(softmax) \
  X(softplus) \
  X(sqrt) \
  X(square) \
  X(sub) \
  X(sum_to) \
  X(swiglu) \
  X(tanh) \
  X(var) \
  X(where)
// clang-format on

#define NORMA_DECLARE(name) extern const OpInfo name##_op;
NORMA_OPS(NORMA_DECLARE)
#undef NORMA_DECLARE

std::span<const OpInfo* const> all_ops() {
#define NORMA_ENTRY(name) &name##_op,
  static const OpInfo* const ops[] = {NORMA_OPS(NORMA_ENTRY)};
#undef NORMA_ENTRY
  return ops;
}

}  // namespace norma
