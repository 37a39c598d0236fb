#include "core/recompute.h"

#include <utility>

namespace norma {
namespace {

thread_local bool t_recomputing = false;

class Recomputing {
 public:
  Recomputing() : before_(std::exchange(t_recomputing, true)) {}
  ~Recomputing() { t_recomputing = before_; }
  Recomputing(const Recomputing&) = delete;
  Recomputing& operator=(const Recomputing&) = delete;

 private:
  bool before_;
};

struct Attrs {
  int inputs;  // how many of the saved tensors f takes; the others are read by it
};

void recompute_backward(BackwardContext& ctx) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Tensor x = ctx.saved_input(i);  // checks that it was not changed
    if (i < ctx.attrs<Attrs>().inputs) inputs.push_back(x);
  }
  std::vector<Tensor> outputs;
  {
    const EnableGrad on;
    const Recomputing again;
    outputs = ctx.replay()(inputs);
  }
  ctx.replace_by(outputs);
}

const OpInfo recompute_op{"recompute", recompute_backward};

}  // namespace

bool recomputing() { return t_recomputing; }

std::vector<Tensor> recompute(Replay f, std::span<const Tensor> inputs,
                              std::span<const Tensor> also) {
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  all.insert(all.end(), also.begin(), also.end());
  if (!detail::should_record(all)) return f(inputs);
  std::vector<Tensor> outputs;
  {
    const NoGrad off;
    outputs = f(inputs);
  }
  // A result that is an input must not be given a place in the graph that it has already.
  for (Tensor& y : outputs) y = y.detach();
  Node* node = detail::record_node(recompute_op, outputs, all, all);
  node->replay = std::make_unique<Replay>(std::move(f));
  const Attrs attrs{static_cast<int>(inputs.size())};
  std::memcpy(node->attrs, &attrs, sizeof(attrs));
  return outputs;
}

}  // namespace norma
