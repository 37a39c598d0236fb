#include "core/autograd.h"

#include <algorithm>
#include <unordered_map>

#include "core/kernels/pointwise.h"
#include "core/ops/alias.h"
#include "core/ops/arithmetic.h"

namespace norma {

// Hooks of a leaf, or of the outputs of a node.
struct Hooks {
  struct Entry {
    int id;
    int output;
    Hook hook;
  };
  int next_id = 0;
  std::vector<Entry> entries;
};

namespace {

thread_local bool t_grad_enabled = true;
std::atomic<std::uint64_t> g_next_node{1};
std::atomic<std::uint64_t> g_next_pass{1};
std::atomic<std::int64_t> g_live_nodes{0};

Tensor run_hooks(const Hooks* hooks, int output, Tensor grad) {
  if (!hooks) return grad;
  for (const Hooks::Entry& e : hooks->entries) {
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
    into.copy_(add(into, g));
    return;
  }
  dispatch_compute(into.dtype(), "backward", [&]<class T>() {
    kernels::add_inplace(into.mutable_data<T>(), g.data<T>(), g.numel());
  });
}

class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~SpinLock() { flag_.clear(std::memory_order_release); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

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
  }
  return e;
}

}  // namespace

// --- Gradient mode. ----------------------------------------------------------------------------
bool grad_enabled() { return t_grad_enabled; }
NoGrad::NoGrad() : before_(t_grad_enabled) { t_grad_enabled = false; }
NoGrad::~NoGrad() { t_grad_enabled = before_; }
EnableGrad::EnableGrad() : before_(t_grad_enabled) { t_grad_enabled = true; }
EnableGrad::~EnableGrad() { t_grad_enabled = before_; }

// --- Nodes. ------------------------------------------------------------------------------------
TensorImpl::TensorImpl() = default;
TensorImpl::~TensorImpl() = default;

Node::Node() { g_live_nodes.fetch_add(1, std::memory_order_relaxed); }
Node::~Node() { g_live_nodes.fetch_sub(1, std::memory_order_relaxed); }

// Note [Freeing a graph]. Deleting a node drops its inputs, whose last reference this may be, and
// so on down the graph. A list takes the place of the recursion: a graph a million nodes deep must
// not overflow the stack.
void Node::destroy(Node* node) {
  thread_local std::vector<Node*> waiting;
  thread_local bool draining = false;
  waiting.push_back(node);
  if (draining) return;
  draining = true;
  while (!waiting.empty()) {
    Node* next = waiting.back();
    waiting.pop_back();
    delete next;
  }
  draining = false;
}

std::int64_t live_nodes() { return g_live_nodes.load(std::memory_order_relaxed); }

namespace detail {

bool should_record(std::span<const Tensor> inputs) {
  return t_grad_enabled && std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) {
           return x.defined() && x.requires_grad();
         });
}

Node* record_node(const OpInfo& op, std::span<Tensor> outputs, std::span<const Tensor> inputs,
                  std::span<const Tensor> saved) {
  if (!should_record(inputs)) return nullptr;
  require(op.backward != nullptr,
          "{}: has no gradient; detach() its input, or compute it under NoGrad", op.name);
  Ref<Node> node = make_ref<Node>();
  node->id = g_next_node.fetch_add(1, std::memory_order_relaxed);
  node->op = &op;
  node->num_outputs = static_cast<int>(outputs.size());
  node->inputs.reserve(inputs.size());
  for (const Tensor& x : inputs) node->inputs.push_back(edge_to(x));
  node->saved.reserve(saved.size());
  for (const Tensor& x : saved) {
    Saved s{x, x.defined() ? x.version() : 0, -1};
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      // An output kept as it is would own its node, which owns it: neither would ever be freed.
      if (x.defined() && x.same(outputs[k])) {
        s.tensor = x.detach();
        s.own_output = static_cast<int>(k);
      }
    }
    node->saved.push_back(std::move(s));
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!is_floating(outputs[k].dtype())) continue;
    outputs[k].impl()->node = node;
    outputs[k].impl()->output = static_cast<int>(k);
  }
  return node.get();
}

}  // namespace detail

int register_hook(const Tensor& tensor, Hook hook) {
  require(tensor.requires_grad(), "register_hook: no gradient flows to this tensor");
  TensorImpl* impl = tensor.impl();
  std::unique_ptr<Hooks>& hooks = impl->node ? impl->node->hooks : impl->hooks;
  if (!hooks) hooks = std::make_unique<Hooks>();
  const int id = hooks->next_id++;
  hooks->entries.push_back({id, impl->node ? impl->output : 0, std::move(hook)});
  return id;
}

void remove_hook(const Tensor& tensor, int id) {
  TensorImpl* impl = tensor.impl();
  std::unique_ptr<Hooks>& hooks = impl->node ? impl->node->hooks : impl->hooks;
  if (!hooks) return;
  std::erase_if(hooks->entries, [&](const Hooks::Entry& e) { return e.id == id; });
  if (hooks->entries.empty()) hooks.reset();
}

// --- The engine. -------------------------------------------------------------------------------
// One backward pass. With targets (grad()) only the nodes that lead to one are run and nothing is
// written to grad(); without (backward()) every leaf gets its gradient.
class Engine {
 public:
  Engine(bool create_graph, bool retain_graph)
      : create_graph_(create_graph),
        retain_graph_(retain_graph || create_graph),
        pass_(g_next_pass.fetch_add(1, std::memory_order_relaxed)) {}

  ~Engine() {
    for (Node* node : claimed_) {
      node->pending.clear();
      node->queued = false;
      node->needed = false;
      node->pass.store(0, std::memory_order_release);
    }
    release_leaves();
  }

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Whether an input may lie below another one. If not, the search for paths ends at the inputs.
  enum class Below { anything, nothing };
  void set_targets(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                   Below below = Below::anything);
  void seed(const Tensor& output, Tensor grad) { deliver(edge_to(output), std::move(grad)); }
  void run();
  [[nodiscard]] std::vector<Tensor>& results() { return results_; }

  [[nodiscard]] bool wants(const Edge& e) const {
    if (!e.wanted()) return false;
    if (!has_targets_) return true;
    if (e.leaf) return targets_.contains({e.leaf.get(), 0});
    return e.node->needed || targets_.contains({e.node.get(), e.output});
  }
  void deliver(const Edge& e, Tensor grad);
  [[nodiscard]] Destination destination(const Edge& e);

 private:
  struct Key {
    const void* object;
    int output;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& k) const {
      return std::hash<const void*>()(k.object) * 31 + static_cast<std::size_t>(k.output);
    }
  };

  void claim(Node* node);
  void enqueue(Node* node);
  void run_node(Node& node);
  void run_composed(Node& node, BackwardContext& ctx);
  void add_to(Tensor& sum, Tensor grad);
  void add_to_leaf(TensorImpl& leaf, Tensor grad);
  void release_leaves();

  bool create_graph_;
  bool retain_graph_;
  std::uint64_t pass_;
  bool has_targets_ = false;
  std::unordered_map<Key, std::vector<std::size_t>, KeyHash> targets_;
  std::vector<Tensor> results_;
  std::vector<Node*> claimed_;
  std::vector<Node*> heap_;  // by id, highest first
  // Leaves with hooks get theirs at the end, when the whole gradient is there.
  std::unordered_map<TensorImpl*, Tensor> hooked_;
  // Leaves whose buffer the running node writes to, and gradients that wait until it is done.
  std::vector<TensorImpl*> locked_;
  std::vector<std::pair<Edge, Tensor>> deferred_;
};

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
  std::vector<Node*> ordered = claimed_;
  std::sort(ordered.begin(), ordered.end(), [](Node* a, Node* b) { return a->id < b->id; });
  for (Node* node : ordered) {
    if (below == Below::nothing && is_target(node)) continue;
    node->needed = std::any_of(node->inputs.begin(), node->inputs.end(),
                               [&](const Edge& e) { return wants(e); });
  }
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
  if (e.node) {
    enqueue(e.node.get());
    add_to(e.node->pending[static_cast<std::size_t>(e.output)], std::move(grad));
  } else if (has_targets_) {
    const auto& indices = targets_.at({e.leaf.get(), 0});
    add_to(results_[indices[0]], std::move(grad));
    for (std::size_t k = 1; k < indices.size(); ++k) results_[indices[k]] = results_[indices[0]];
  } else if (e.leaf->hooks) {
    add_to(hooked_[e.leaf.get()], std::move(grad));
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
      return {sum, false};
    }
    if (BackwardContext::exclusive(sum)) return {sum, true};
  } else if (!has_targets_ && !e.leaf->hooks &&
             !e.leaf->lock.test_and_set(std::memory_order_acquire)) {
    TensorImpl& leaf = *e.leaf;
    locked_.push_back(&leaf);
    const bool accumulate = leaf.grad.defined();
    if (!accumulate) {
      leaf.grad =
          leaf.grad_buffer.defined() ? leaf.grad_buffer : Tensor::empty(leaf.shape, leaf.dtype);
    }
    return {leaf.grad, accumulate};
  }
  // Somebody else sees the memory: write beside it, and add when the node is done.
  Tensor beside = Tensor::empty(e.shape, e.dtype);
  deferred_.emplace_back(e, beside);
  return {beside, false};
}

void Engine::release_leaves() {
  for (TensorImpl* leaf : locked_) leaf->lock.clear(std::memory_order_release);
  locked_.clear();
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
    add_to_leaf(*leaf, run_hooks(leaf->hooks.get(), 0, std::move(grad)));
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
    release_leaves();
    for (auto& [edge, grad] : std::exchange(deferred_, {})) deliver(edge, std::move(grad));
    if (!retain_graph_) {
      node.saved.clear();
      node.released = true;
    }
  }
  node.pending.clear();
  node.queued = false;
}

// Differentiates the op's composed form in its place. The inputs get new names (alias), so that the
// inner pass gives the partial derivative of each and stops there, even if one input was computed
// from another.
void Engine::run_composed(Node& node, BackwardContext& ctx) {
  const std::size_t n = node.inputs.size();
  require(node.saved.size() >= n, "{}: a fused op must save its inputs first", node.op->name);
  std::vector<Tensor> inputs(n), wanted;
  std::vector<int> index;
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor x = ctx.saved(static_cast<int>(i));
    inputs[i] = x;
    if (!ctx.needs(static_cast<int>(i))) continue;
    inputs[i] = alias(x);
    wanted.push_back(inputs[i]);
    index.push_back(static_cast<int>(i));
  }
  const Tensor y = node.op->composed(inputs, node.attrs);
  if (!y.requires_grad()) return;
  // The graph above the inputs belongs to the pass that runs now.
  Engine inner(true, true);
  inner.set_targets(std::span(&y, 1), wanted, Engine::Below::nothing);
  inner.seed(y, ctx.grad_output());
  inner.run();
  const std::vector<Tensor> grads = std::move(inner.results());
  for (std::size_t k = 0; k < grads.size(); ++k) {
    if (grads[k].defined()) ctx.set_grad(index[k], grads[k]);
  }
}

// --- BackwardContext. --------------------------------------------------------------------------
const Tensor& BackwardContext::grad_output(int output) const {
  return node_.pending[static_cast<std::size_t>(output)];
}

Tensor BackwardContext::take_grad_output(int output) {
  return std::move(node_.pending[static_cast<std::size_t>(output)]);
}

bool BackwardContext::exclusive(const Tensor& tensor) {
  return tensor.impl()->use_count() == 1 && tensor.storage()->use_count() == 1 &&
         !tensor.requires_grad();
}

bool BackwardContext::needs(int input) const { return engine_.wants(edge(input)); }

Tensor BackwardContext::saved(int index) const {
  const Saved& s = node_.saved[static_cast<std::size_t>(index)];
  if (!s.tensor.defined()) return {};
  require(
      s.tensor.version() == s.version,
      "{}: a tensor of shape {} that its gradient needs was changed in place since (version {}, "
      "saved at {}); change a clone() instead",
      node_.op->name, s.tensor.shape(), s.tensor.version(), s.version);
  if (s.own_output >= 0 && create_graph_) {
    Tensor y = s.tensor.detach();
    y.impl()->node = Ref<Node>(&node_);
    y.impl()->output = s.own_output;
    return y;
  }
  return s.tensor;
}

void BackwardContext::set_grad(int input, Tensor grad) {
  const Edge& e = edge(input);
  if (!grad.defined() || !engine_.wants(e)) return;
  require(grad.shape() == e.shape && grad.dtype() == e.dtype,
          "{}: the gradient of input {} must have shape {} of {}; backward gave {} of {}",
          node_.op->name, input, e.shape, name_of(e.dtype), grad.shape(), name_of(grad.dtype()));
  engine_.deliver(e, std::move(grad));
}

Destination BackwardContext::destination(int input) { return engine_.destination(edge(input)); }

// --- Entry points. -----------------------------------------------------------------------------
namespace {

Tensor seed_of(const Tensor& output, std::span<const Tensor> grad_outputs, std::size_t i) {
  require(
      output.defined() && output.requires_grad(),
      "backward: output {} is not part of a graph: none of its inputs requires a gradient, or it "
      "was computed under NoGrad",
      i);
  if (i < grad_outputs.size() && grad_outputs[i].defined()) {
    const Tensor& g = grad_outputs[i];
    require(g.shape() == output.shape() && g.dtype() == output.dtype(),
            "backward: the gradient of output {} must have shape {} of {}; got {} of {}", i,
            output.shape(), name_of(output.dtype()), g.shape(), name_of(g.dtype()));
    return g;
  }
  require(
      output.numel() == 1,
      "backward: an output of shape {} needs a gradient of that shape; only one element means 1",
      output.shape());
  return Tensor::ones(output.shape(), output.dtype());
}

}  // namespace

void backward(std::span<const Tensor> outputs, std::span<const Tensor> grad_outputs,
              BackwardOptions options) {
  Engine engine(false, options.retain_graph);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    engine.seed(outputs[i], seed_of(outputs[i], grad_outputs, i));
  }
  engine.run();
}

void backward(const Tensor& output, const Tensor& grad_output, BackwardOptions options) {
  backward(std::span(&output, 1), std::span(&grad_output, 1), options);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         GradOptions options, std::span<const Tensor> grad_outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i].defined() && inputs[i].requires_grad(),
            "grad: input {} does not require a gradient; call set_requires_grad() before using it",
            i);
  }
  std::vector<Tensor> seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (options.allow_unused && outputs[i].defined() && !outputs[i].requires_grad()) {
      seeds.emplace_back();
    } else {
      seeds.push_back(seed_of(outputs[i], grad_outputs, i));
    }
  }
  Engine engine(options.create_graph, options.retain_graph);
  engine.set_targets(outputs, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (seeds[i].defined()) engine.seed(outputs[i], seeds[i]);
  }
  engine.run();
  std::vector<Tensor> results = std::move(engine.results());
  for (std::size_t i = 0; i < results.size(); ++i) {
    require(
        options.allow_unused || results[i].defined(),
        "grad: the outputs do not depend on input {}; pass allow_unused = true if that is meant",
        i);
  }
  return results;
}

std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> inputs,
                         GradOptions options) {
  return grad(std::span(&output, 1), std::span<const Tensor>(inputs.begin(), inputs.size()),
              options);
}

}  // namespace norma
