#include "core/engine.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/kernels/convert.h"
#include "core/kernels/pointwise.h"
#include "core/op_watcher.h"
#include "core/ops/alias.h"
#include "core/ops/arithmetic.h"

namespace norma {
namespace {

std::atomic<std::uint64_t> g_next_pass{1};

Tensor run_hooks(const Hooks* hooks, int output, Tensor grad) {
  if (!hooks) return grad;
  const std::vector<Hooks::Entry> entries = hooks->entries;  // a hook may remove itself
  for (const Hooks::Entry& e : entries) {
    if (e.output != output) continue;
    Tensor replaced = e.hook(grad);
    if (!replaced.defined()) continue;
    require(replaced.shape() == grad.shape() && replaced.dtype() == grad.dtype(),
            "hook: expected a gradient of shape {} and type {}; got {} and {}", grad.shape(),
            name_of(grad.dtype()), replaced.shape(), name_of(replaced.dtype()));
    grad = std::move(replaced);
  }
  return grad;
}

// into += g, both floating and of one shape.
void add_in_place(Tensor& into, const Tensor& g) {
  if (is_half(into.dtype())) {
    std::byte* sum = into.mutable_raw();
    return kernels::add_halves(into.dtype(), sum, g.raw(), sum, g.numel());
  }
  dispatch_compute(into.dtype(), "backward", [&]<class T>() {
    kernels::add_inplace(into.mutable_data<T>(), g.data<T>(), g.numel());
  });
}

class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    // Whole kernels run under it: a thread that waits gives its core away.
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~SpinLock() { flag_.clear(std::memory_order_release); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

}  // namespace

Edge edge_to(const Tensor& x) {
  Edge e;
  if (!x.defined()) return e;
  TensorImpl* impl = x.impl();
  e.shape = impl->shape;
  e.dtype = impl->dtype;
  if (impl->node) {
    e.node = impl->node;
    e.output = impl->output;
  } else if (impl->requires_grad) {
    e.leaf = Ref<TensorImpl>(impl);
    if (impl->grad_buffer.defined()) e.dtype = impl->grad_buffer.dtype();
  }
  return e;
}

Engine::Engine(bool create_graph, bool retain_graph)
    : create_graph_(create_graph),
      retain_graph_(retain_graph || create_graph),
      pass_(g_next_pass.fetch_add(1, std::memory_order_relaxed)) {}

Engine::~Engine() {
  for (Node* node : claimed_) {
    node->pending.clear();
    node->queued = false;
    node->needed = false;
    node->pass.store(0, std::memory_order_release);
  }
  // A node that threw has left its part half written.
  for (const LentLeaf& lent : lent_leaves_) {
    if (lent.fresh) lent.leaf->grad = Tensor();
  }
  end_loans();
  for (const Ref<Node>& node : recomputed_) {
    const SpinLock lock(node->lock);
    node->recomputed.clear();
  }
}

void Engine::claim(Node* node) {
  std::uint64_t expected = 0;
  if (node->pass.compare_exchange_strong(expected, pass_, std::memory_order_acq_rel)) {
    claimed_.push_back(node);
    return;
  }
  require(expected == pass_,
          "backward: {} belongs to a graph on which another backward pass is running; give each "
          "thread a graph of its own",
          node->op->name);
}

void Engine::set_targets(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         Below below) {
  has_targets_ = true;
  results_.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TensorImpl* impl = inputs[i].impl();
    if (impl->node) {
      targets_[{impl->node.get(), impl->output}].push_back(i);
    } else {
      targets_[{impl, 0}].push_back(i);
    }
  }
  // The nodes below the outputs, then, from the inputs' side, which of them lead to a target.
  std::vector<Node*> stack;
  const auto is_target = [&](Node* node) { return targets_.contains({node, 0}); };
  const auto visit = [&](Node* node) {
    if (!node || node->pass.load(std::memory_order_acquire) == pass_) return;
    claim(node);
    stack.push_back(node);
  };
  for (const Tensor& y : outputs) visit(y.impl()->node.get());
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (below == Below::nothing && is_target(node)) continue;
    for (const Edge& e : node->inputs) visit(e.node.get());
  }
  mark_needed(claimed_, below);
}

void Engine::mark_needed(std::vector<Node*> nodes, Below below) {
  std::sort(nodes.begin(), nodes.end(), [](Node* a, Node* b) { return a->id < b->id; });
  for (Node* node : nodes) {
    if (below == Below::nothing && targets_.contains({node, 0})) continue;
    node->needed = std::any_of(node->inputs.begin(), node->inputs.end(),
                               [&](const Edge& e) { return wants(e); });
  }
}

void Engine::adopt(const Tensor& y, std::uint64_t after) {
  if (!y.impl()->node) return;
  adopted_.push_back(y.impl()->node);
  std::vector<Node*> fresh, stack{y.impl()->node.get()};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node->id <= after || node->pass.load(std::memory_order_acquire) == pass_) continue;
    claim(node);
    fresh.push_back(node);
    for (const Edge& e : node->inputs) {
      if (e.node) stack.push_back(e.node.get());
    }
  }
  if (has_targets_) mark_needed(std::move(fresh), Below::anything);
}

void Engine::enqueue(Node* node) {
  if (node->queued) return;
  claim(node);
  node->queued = true;
  if (node->pending.empty()) node->pending.resize(static_cast<std::size_t>(node->num_outputs));
  heap_.push_back(node);
  std::push_heap(heap_.begin(), heap_.end(), [](Node* a, Node* b) { return a->id < b->id; });
}

void Engine::add_to(Tensor& sum, Tensor grad) {
  if (!sum.defined()) {
    sum = std::move(grad);
  } else if (!create_graph_ && BackwardContext::exclusive(sum)) {
    add_in_place(sum, grad);
  } else {
    sum = add(sum, grad);
  }
}

void Engine::add_to_leaf(TensorImpl& leaf, Tensor grad) {
  const SpinLock lock(leaf.lock);
  if (leaf.grad.defined()) {
    add_in_place(leaf.grad, grad);
  } else if (leaf.grad_buffer.defined()) {
    leaf.grad_buffer.copy_(grad);
    leaf.grad = leaf.grad_buffer;
  } else {
    leaf.grad = BackwardContext::exclusive(grad) ? std::move(grad) : grad.clone();
  }
}

void Engine::deliver(const Edge& e, Tensor grad) {
  if (!wants(e)) return;
  if (!lent_leaves_.empty() || !lent_sums_.empty()) {
    deferred_.emplace_back(e, std::move(grad));
  } else if (e.node) {
    enqueue(e.node.get());
    add_to(e.node->pending[static_cast<std::size_t>(e.output)], std::move(grad));
  } else if (e.leaf->hooks) {
    // Few leaves have hooks; in the order in which their gradients come.
    auto at = std::find_if(hooked_.begin(), hooked_.end(),
                           [&](const auto& entry) { return entry.first == e.leaf.get(); });
    if (at == hooked_.end()) at = hooked_.insert(hooked_.end(), {e.leaf.get(), Tensor()});
    add_to(at->second, std::move(grad));
  } else if (has_targets_) {
    const auto& indices = targets_.at({e.leaf.get(), 0});
    add_to(results_[indices[0]], std::move(grad));
    for (std::size_t k = 1; k < indices.size(); ++k) results_[indices[k]] = results_[indices[0]];
  } else {
    add_to_leaf(*e.leaf, std::move(grad));
  }
}

Destination Engine::destination(const Edge& e) {
  if (e.node) {
    enqueue(e.node.get());
    Tensor& sum = e.node->pending[static_cast<std::size_t>(e.output)];
    if (!sum.defined()) {
      sum = Tensor::empty(e.shape, e.dtype);
      lent_sums_.push_back(sum);
      return {sum, false};
    }
    if (BackwardContext::exclusive(sum)) {
      lent_sums_.push_back(sum);
      return {sum, true};
    }
  } else if (!has_targets_ && !e.leaf->hooks &&
             !e.leaf->lock.test_and_set(std::memory_order_acquire)) {
    TensorImpl& leaf = *e.leaf;
    const bool accumulate = leaf.grad.defined();
    lent_leaves_.push_back({&leaf, !accumulate});
    if (!accumulate) {
      leaf.grad = leaf.grad_buffer.defined() ? leaf.grad_buffer : Tensor::empty(e.shape, e.dtype);
    }
    return {leaf.grad, accumulate};
  }
  // Somebody else sees the memory: write beside it, and add when the node is done.
  Tensor beside = Tensor::empty(e.shape, e.dtype);
  deferred_.emplace_back(e, beside);
  return {beside, false};
}

Tensor Engine::recomputed(Node& node) {
  const SpinLock lock(node.lock);
  if (node.recomputed.empty()) {
    const NoGrad off;
    BackwardContext ctx(node, *this, false);
    node.op->recompute(ctx);
    recomputed_.emplace_back(&node);
  }
  return node.recomputed[0];
}

void Engine::end_loans() {
  for (const LentLeaf& lent : lent_leaves_) lent.leaf->lock.clear(std::memory_order_release);
  lent_leaves_.clear();
  lent_sums_.clear();
}

void Engine::run() {
  const auto by_id = [](Node* a, Node* b) { return a->id < b->id; };
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), by_id);
    Node* node = heap_.back();
    heap_.pop_back();
    run_node(*node);
  }
  for (auto& [leaf, grad] : hooked_) {
    grad = run_hooks(leaf->hooks.get(), 0, std::move(grad));
    if (!has_targets_) {
      add_to_leaf(*leaf, std::move(grad));
      continue;
    }
    for (std::size_t i : targets_.at({leaf, 0})) results_[i] = grad;
  }
}

void Engine::run_node(Node& node) {
  for (int k = 0; k < node.num_outputs; ++k) {
    Tensor& grad = node.pending[static_cast<std::size_t>(k)];
    if (!grad.defined()) continue;
    if (node.hooks) grad = run_hooks(node.hooks.get(), k, std::move(grad));
    if (!has_targets_) continue;
    if (const auto it = targets_.find({&node, k}); it != targets_.end()) {
      for (std::size_t i : it->second) results_[i] = grad;
    }
  }
  if (!has_targets_ || node.needed) {
    require(!node.released,
            "backward: the graph of this result was released by an earlier backward ({} has run); "
            "pass retain_graph = true to the first one",
            node.op->name);
    BackwardContext ctx(node, *this, create_graph_);
    if (create_graph_) {
      const EnableGrad on;
      if (node.op->composed) {
        run_composed(node, ctx);
      } else {
        node.op->backward(ctx);
      }
    } else {
      const NoGrad off;
      node.op->backward(ctx);
    }
    end_loans();
    for (auto& [edge, grad] : std::exchange(deferred_, {})) deliver(edge, std::move(grad));
    if (!recomputed_.empty()) {
      const SpinLock lock(node.lock);
      node.recomputed.clear();
    }
    if (OpWatcher* watcher = op_watcher()) watcher->differentiated(node);
    if (!retain_graph_) {
      if (node.readers.load(std::memory_order_relaxed) == 0) node.saved.clear();
      node.replay.reset();
      node.released = true;
    }
  }
  node.pending.clear();
  node.queued = false;
}

// Differentiates the op's composed form in its place. The inputs get new names (alias), so that the
// inner pass gives the partial derivative of each and stops there, even if one input was computed
// from another. That goes for results whose gradient nobody wants too: the graph above them belongs
// to the pass that runs now.
void Engine::run_composed(Node& node, BackwardContext& ctx) {
  const std::size_t n = node.inputs.size();
  require(node.saved.size() >= n, "{}: a fused op must save its inputs first", node.op->name);
  std::vector<Tensor> inputs(n), wanted;
  std::vector<int> index;
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor x = ctx.saved(static_cast<int>(i));
    inputs[i] = x;
    const bool is_result = x.defined() && !x.is_leaf();
    if (!is_result && !ctx.needs(static_cast<int>(i))) continue;
    inputs[i] = alias(x);
    wanted.push_back(inputs[i]);
    index.push_back(static_cast<int>(i));
  }
  const Tensor y = node.op->composed(inputs, node.attrs);
  if (!y.requires_grad()) return;
  Engine inner(true, true);
  inner.set_targets(std::span(&y, 1), wanted, Engine::Below::nothing);
  inner.seed(y, ctx.grad_output());
  inner.run();
  const std::vector<Tensor> grads = std::move(inner.results());
  for (std::size_t k = 0; k < grads.size(); ++k) {
    if (grads[k].defined()) ctx.set_grad(index[k], grads[k]);
  }
}

}  // namespace norma
