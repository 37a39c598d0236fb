#include "core/autograd.h"

#include <algorithm>
#include <utility>

#include "core/engine.h"
#include "core/op_watcher.h"
#include "core/ops/cast.h"

namespace norma {

namespace {

thread_local bool t_grad_enabled = true;
thread_local OpWatcher* t_op_watcher = nullptr;
std::atomic<std::uint64_t> g_next_node{1};
std::atomic<std::int64_t> g_live_nodes{0};

}  // namespace

// --- Gradient mode. ----------------------------------------------------------------------------
bool grad_enabled() { return t_grad_enabled; }
NoGrad::NoGrad() : before_(t_grad_enabled) { t_grad_enabled = false; }
NoGrad::~NoGrad() { t_grad_enabled = before_; }
EnableGrad::EnableGrad() : before_(t_grad_enabled) { t_grad_enabled = true; }
EnableGrad::~EnableGrad() { t_grad_enabled = before_; }

WatchOps::WatchOps(OpWatcher& watcher) : before_(t_op_watcher) { t_op_watcher = &watcher; }
WatchOps::~WatchOps() { t_op_watcher = before_; }
OpWatcher* op_watcher() { return t_op_watcher; }

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

// The node that computes x again where it is asked for; null if x must be kept.
Node* recomputable(const Tensor& x) {
  Node* made = x.impl()->node.get();
  return made && made->recomputable && !made->released ? made : nullptr;
}

// Note [Saved halves]. An op on half types computes in f32: it widens its inputs, and what it saves
// would be those f32 copies, twice the size of what they were made from. Widening loses nothing, so
// the node keeps the half tensor in the place of its copy, and saved() widens it again.
Saved save(const Tensor& x) {
  if (!x.defined()) return {x, 0};
  const TensorImpl& impl = *x.impl();
  const bool same_values = impl.narrow.defined() && impl.narrow_version == x.version();
  if (!same_values || impl.requires_grad) return {x, x.version()};
  Saved half;
  half.widen = true;
  half.made_by = impl.node;
  half.made_output = impl.output;
  if (Node* made = recomputable(impl.narrow)) {
    half.source = Source(Ref<Node>(made));
  } else {
    half.tensor = impl.narrow.detach();
    half.version = impl.narrow.version();
  }
  return half;
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
    if (Node* made = x.defined() ? recomputable(x) : nullptr) {
      node->saved.emplace_back().source = Source(Ref<Node>(made));
      continue;
    }
    Saved s = save(x);
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
  if (t_op_watcher) t_op_watcher->recorded(*node, outputs);
  return node.get();
}

}  // namespace detail

Source::Source(Ref<Node> node) : node_(std::move(node)) {
  node_->readers.fetch_add(1, std::memory_order_relaxed);
}
Source& Source::operator=(Source&& other) noexcept {
  std::swap(node_, other.node_);
  return *this;
}
Source::~Source() {
  if (node_) node_->readers.fetch_sub(1, std::memory_order_relaxed);
}

void allow_recompute(const Tensor& output) {
  Node* node = output.impl()->node.get();
  if (!node) return;
  require(node->op->recompute && node->num_outputs == 1,
          "{}: allow_recompute needs an op with OpInfo::recompute and one output", node->op->name);
  node->recomputable = true;
}

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
  if (!impl) return;
  std::unique_ptr<Hooks>& hooks = impl->node ? impl->node->hooks : impl->hooks;
  if (!hooks) return;
  std::erase_if(hooks->entries, [&](const Hooks::Entry& e) { return e.id == id; });
}

// --- BackwardContext. --------------------------------------------------------------------------
const Tensor& BackwardContext::grad_output(int output) const {
  return node_.pending[static_cast<std::size_t>(output)];
}

Tensor BackwardContext::take_grad_output(int output) {
  return std::move(node_.pending[static_cast<std::size_t>(output)]);
}

namespace {
bool one_handle(const Tensor& tensor) {
  return tensor.impl()->use_count() == 1 && tensor.storage()->use_count() == 1;
}
}  // namespace

bool BackwardContext::exclusive(const Tensor& tensor) {
  return one_handle(tensor) && !tensor.requires_grad();
}

bool BackwardContext::needs(int input) const { return engine_.wants(edge(input)); }

namespace {
// `x` as output `output` of `node`, sharing its memory.
Tensor in_graph(const Tensor& x, Node* node, int output) {
  Tensor y = x.detach();
  y.impl()->node = Ref<Node>(node);
  y.impl()->output = output;
  return y;
}

// What the op saved, from the half tensor that is kept for it.
Tensor widened(const Tensor& half, const Saved& saved) {
  const Tensor wide = to(half.detach(), DType::f32);
  return saved.made_by ? in_graph(wide, saved.made_by.get(), saved.made_output) : wide;
}
}  // namespace

Tensor BackwardContext::saved(int index) const {
  const Saved& s = node_.saved[static_cast<std::size_t>(index)];
  if (Node* source = s.source.node()) {
    const Tensor x = engine_.recomputed(*source);
    if (s.widen) return widened(x, s);
    return create_graph_ ? in_graph(x, source, 0) : x;
  }
  if (!s.tensor.defined()) return {};
  require(
      s.tensor.version() == s.version,
      "{}: a tensor of shape {} that its gradient needs was changed in place since (version {}, "
      "saved at {}); change a clone() instead",
      node_.op->name, s.tensor.shape(), s.tensor.version(), s.version);
  if (s.own_output >= 0 && create_graph_) {
    return in_graph(s.tensor, &node_, s.own_output);
  }
  return s.widen ? widened(s.tensor, s) : s.tensor;
}

Tensor BackwardContext::saved_input(int input) const {
  const Tensor x = saved(input);
  const Edge& e = edge(input);
  if (e.leaf) return Tensor(e.leaf);
  return e.node ? in_graph(x, e.node.get(), e.output) : x;
}

void BackwardContext::set_recomputed(Tensor output, Tensor beside) {
  node_.recomputed.clear();
  node_.recomputed.push_back(std::move(output));
  node_.recomputed.push_back(std::move(beside));
}

Tensor BackwardContext::recomputed_beside() const {
  return node_.recomputed.size() > 1 ? node_.recomputed[1] : Tensor();
}

Tensor BackwardContext::take_saved(int index) {
  Saved& s = node_.saved[static_cast<std::size_t>(index)];
  if (!s.tensor.defined() || s.widen || s.tensor.version() != s.version || !exclusive(s.tensor) ||
      !engine_.last_use(node_)) {
    return {};
  }
  return std::move(s.tensor);
}

Tensor BackwardContext::take_input(int input) {
  Saved& s = node_.saved[static_cast<std::size_t>(input)];
  const Edge& e = edge(input);
  const bool last = !create_graph_ && engine_.releases(node_) &&
                    node_.readers.load(std::memory_order_relaxed) == 0;
  if (!last || !e.node || !engine_.wants(e) || engine_.has_gradient(e) || !s.tensor.defined() ||
      s.widen || !one_handle(s.tensor) || s.tensor.version() != s.version) {
    return {};
  }
  return std::exchange(s.tensor, Tensor()).detach();
}

void BackwardContext::set_grad(int input, Tensor grad) {
  const Edge& e = edge(input);
  if (!grad.defined() || !engine_.wants(e)) return;
  if (e.leaf && e.dtype == DType::f32 && is_half(grad.dtype())) grad = to(grad, DType::f32);
  require(grad.shape() == e.shape && grad.dtype() == e.dtype,
          "{}: the gradient of input {} must have shape {} of {}; backward gave {} of {}",
          node_.op->name, input, e.shape, name_of(e.dtype), grad.shape(), name_of(grad.dtype()));
  engine_.deliver(e, std::move(grad));
}

void BackwardContext::replace_by(std::span<const Tensor> outputs) {
  require(static_cast<int>(outputs.size()) == node_.num_outputs,
          "{}: the second call gave {} tensors; the first one {}; it must give the same",
          node_.op->name, outputs.size(), node_.num_outputs);
  for (int k = 0; k < node_.num_outputs; ++k) {
    const Tensor& y = outputs[static_cast<std::size_t>(k)];
    const Tensor& grad = grad_output(k);
    if (!grad.defined()) continue;
    require(y.shape() == grad.shape() && y.dtype() == grad.dtype(),
            "{}: the second call gave {} of {}; the first one {} of {}; it must give the same",
            node_.op->name, y.shape(), name_of(y.dtype()), grad.shape(), name_of(grad.dtype()));
    engine_.adopt(y, node_.id);
  }
  for (int k = 0; k < node_.num_outputs; ++k) {
    if (!grad_output(k).defined()) continue;
    engine_.seed(outputs[static_cast<std::size_t>(k)], take_grad_output(k));
  }
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
