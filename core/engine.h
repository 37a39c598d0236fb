// The engine behind backward() and grad(). Internal to core/autograd.cpp.
#pragma once

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/autograd.h"

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

// Where the gradient of a tensor goes; not wanted if it is undefined or takes part in no graph.
[[nodiscard]] Edge edge_to(const Tensor& x);

// One backward pass. With targets (grad()) only the nodes that lead to one are run and nothing is
// written to grad(); without (backward()) every leaf gets its gradient.
class Engine {
 public:
  Engine(bool create_graph, bool retain_graph);

  ~Engine();

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Whether an input may lie below another one. If not, the search for paths ends at the inputs.
  enum class Below { anything, nothing };
  void set_targets(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                   Below below = Below::anything);
  void seed(const Tensor& output, Tensor grad) { deliver(edge_to(output), std::move(grad)); }
  // Takes the graph of y into this pass: its nodes above number `after`, which did not exist when
  // the pass began.
  void adopt(const Tensor& y, std::uint64_t after);
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
  // The output of a node, computed again or still there. See Note [Recomputed].
  [[nodiscard]] Tensor recomputed(Node& node);
  // True iff a part of the gradient of the node's output has come, or another pass has the node.
  [[nodiscard]] bool has_gradient(const Edge& e) const {
    const std::uint64_t pass = e.node->pass.load(std::memory_order_acquire);
    if (pass != pass_) return pass != 0;
    return !e.node->pending.empty() &&
           e.node->pending[static_cast<std::size_t>(e.output)].defined();
  }
  // True iff this pass runs the node and releases it.
  [[nodiscard]] bool releases(const Node& node) const {
    return !retain_graph_ && (!has_targets_ || node.needed);
  }
  // True iff, besides, one reader alone relies on it.
  [[nodiscard]] bool last_use(const Node& node) const {
    return releases(node) && node.readers.load(std::memory_order_relaxed) == 1;
  }

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
  // Says of the nodes, in ascending order of their numbers, which lead to a target.
  void mark_needed(std::vector<Node*> nodes, Below below);
  void enqueue(Node* node);
  void run_node(Node& node);
  void run_composed(Node& node, BackwardContext& ctx);
  void add_to(Tensor& sum, Tensor grad);
  void add_to_leaf(TensorImpl& leaf, Tensor grad);
  // Ends what destination() lent: the buffers of leaves, and the gradients of nodes.
  void end_loans();

  bool create_graph_;
  bool retain_graph_;
  std::uint64_t pass_;
  bool has_targets_ = false;
  std::unordered_map<Key, std::vector<std::size_t>, KeyHash> targets_;
  std::vector<Tensor> results_;
  std::vector<Ref<Node>> adopted_;  // freed after those below, which point to them
  std::vector<Node*> claimed_;
  std::vector<Node*> heap_;  // by id, highest first
  // Leaves with hooks get theirs at the end, when the whole gradient is there.
  std::vector<std::pair<TensorImpl*, Tensor>> hooked_;
  // Note [Loans]. Until the running node is done, its backward may still write to what
  // destination() gave out. So that memory is handed out once, nothing is added to it, and
  // gradients that arrive meanwhile wait. Waiting for the lock of another leaf, while one is held,
  // could never end.
  struct LentLeaf {
    TensorImpl* leaf;
    bool fresh;  // it had no gradient before
  };
  std::vector<LentLeaf> lent_leaves_;
  std::vector<Tensor> lent_sums_;
  std::vector<std::pair<Edge, Tensor>> deferred_;
  std::vector<Ref<Node>> recomputed_;
};

}  // namespace norma
