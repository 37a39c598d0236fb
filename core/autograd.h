// Reverse-mode automatic differentiation, recorded as the program runs.
//
// Note [Order of backward]. Nodes are numbered as they are made, so an input's node always has a
// lower number than its consumers. Backward keeps a heap of the nodes that have a gradient and runs
// the highest number first: every node runs once, after all its consumers, without recursion and
// without a search for an order.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "core/tensor.h"

namespace norma {

class BackwardContext;

// What autograd knows of an op. One constant an op, in core/ops/<op>.cpp, listed in ops/list.cpp.
struct OpInfo {
  const char* name;
  // Computes the gradients of the inputs. A primitive op writes it with ops, so that it can be
  // differentiated again; a fused op calls a kernel.
  void (*backward)(BackwardContext&);
  // Fused ops alone: the same function built from primitives. `attrs` are the node's. It is the
  // test oracle, and is differentiated in the op's place when a graph of the gradient is wanted.
  // A fused op saves all its inputs, in order, before anything else.
  Tensor (*composed)(std::span<const Tensor> inputs, const void* attrs) = nullptr;
  // Computes the output again from what the op saved, to the same bits; see Note [Recomputed]. An
  // op of one output alone; used where the op calls allow_recompute().
  void (*recompute)(BackwardContext&) = nullptr;
};

// --- Gradient mode. ----------------------------------------------------------------------------
[[nodiscard]] bool grad_enabled();

// No recording within its scope, on this thread.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// Recording (again) within its scope, on this thread.
class EnableGrad {
 public:
  EnableGrad();
  ~EnableGrad();
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool before_;
};

// --- Running backward. -------------------------------------------------------------------------
struct BackwardOptions {
  bool retain_graph = false;  // keep what the graph saved, to run it again
};

// Adds d(sum outputs . grad_outputs) / d leaf to the grad() of every leaf below the outputs.
// An undefined grad_output means 1 for an output of one element. Throws Error if an output is not
// part of a graph, if the graph was released, or if a saved tensor was changed in place.
void backward(std::span<const Tensor> outputs, std::span<const Tensor> grad_outputs = {},
              BackwardOptions options = {});
void backward(const Tensor& output, const Tensor& grad_output = {}, BackwardOptions options = {});

struct GradOptions {
  bool create_graph = false;  // record the gradient, so that it can be differentiated again
  bool retain_graph = false;  // implied by create_graph
  bool allow_unused =
      false;  // an input that the outputs do not depend on gives an undefined Tensor
};

// The gradients of the outputs with respect to `inputs` (leaves or results), without touching
// grad(). Throws Error as backward() does, and for an unused input unless allowed.
[[nodiscard]] std::vector<Tensor> grad(std::span<const Tensor> outputs,
                                       std::span<const Tensor> inputs, GradOptions options = {},
                                       std::span<const Tensor> grad_outputs = {});
[[nodiscard]] std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> inputs,
                                       GradOptions options = {});

// Calls `hook` with the whole gradient of `tensor` in every backward() and grad(); what it returns
// takes the gradient's place (an undefined Tensor leaves it). Returns an id for remove_hook.
using Hook = std::function<Tensor(const Tensor& grad)>;
int register_hook(const Tensor& tensor, Hook hook);
void remove_hook(const Tensor& tensor, int id);

// Nodes that exist now, in all threads.
[[nodiscard]] std::int64_t live_nodes();

// --- Recording an op. --------------------------------------------------------------------------
// One input of a node: the node that made it, or a leaf, or nothing where no gradient is wanted.
struct Edge {
  Ref<Node> node;
  int output = 0;
  Ref<TensorImpl> leaf;
  Shape shape;
  DType dtype = DType::f32;  // of the gradient: the tensor's, or that of a leaf's grad_buffer
  [[nodiscard]] bool wanted() const { return node || leaf; }
};

// Note [Recomputed]. The result of a norm or of an activation costs little next to the memory that
// it takes until backward. An op that is cheap to run again calls allow_recompute(); whoever wants
// to save its result then keeps the node that made it in its place, and the result is computed
// again when backward first asks for it. It stays until the node's own backward, which runs after
// that of all consumers. What the node saved is kept as long as anybody relies on it.

// A node that can compute its output again, counted as one of its readers.
class Source {
 public:
  Source() = default;
  explicit Source(Ref<Node> node);
  Source(Source&&) noexcept = default;
  Source& operator=(Source&& other) noexcept;
  ~Source();
  [[nodiscard]] Node* node() const { return node_.get(); }

 private:
  Ref<Node> node_;
};

// A tensor that a node keeps for its backward, with the version it had.
struct Saved {
  Tensor tensor;  // outside of the graph if it is the node's own output
  std::uint64_t version = 0;
  int own_output = -1;  // its index if it is an output of the node itself
  Source source{};      // in the tensor's place; see Note [Recomputed]
  // Kept in its half type where the op saved it in f32; its place in the graph is output
  // `made_output` of `made_by`. See Note [Saved halves].
  bool widen = false;
  Ref<Node> made_by{};
  int made_output = 0;
};

// What a node of recompute() runs again; see core/recompute.h.
using Replay = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;

class Node : public RefCounted<Node>, public Recycled {
 public:
  static constexpr std::size_t kAttrBytes = 160;

  std::uint64_t id = 0;
  const OpInfo* op = nullptr;
  template <class T>
  using List = std::vector<T, RecyclingAllocator<T>>;
  List<Edge> inputs;
  List<Saved> saved;
  std::unique_ptr<Replay> replay;
  int num_outputs = 1;
  bool released = false;
  bool recomputable = false;
  std::atomic<int> readers{0};  // that keep this node in the place of its output
  alignas(16) std::byte attrs[kAttrBytes];

  // State of the backward pass that runs now; see autograd.cpp.
  List<Tensor> pending;                // the gradient of each output, as far as it has come
  std::atomic<std::uint64_t> pass{0};  // the pass that uses this node, or 0
  bool queued = false;                 // waits in the heap
  bool needed = false;                 // a wanted gradient lies below it
  std::unique_ptr<Hooks> hooks;
  std::atomic_flag lock = ATOMIC_FLAG_INIT;  // guards what follows
  List<Tensor> recomputed;                   // the output, and what was computed beside it

  Node();
  ~Node();
  static void destroy(Node* node);  // iterative: see Note [Freeing a graph]
};

namespace detail {
// Makes the node; returns null if nothing is to be recorded.
Node* record_node(const OpInfo& op, std::span<Tensor> outputs, std::span<const Tensor> inputs,
                  std::span<const Tensor> saved);
[[nodiscard]] bool should_record(std::span<const Tensor> inputs);
}  // namespace detail

struct NoAttrs {};

// Links `outputs` to `inputs` through `op`, if gradients are on and an input wants one. `saved`
// lists what backward reads; an output may be among them. Throws Error if the op has no backward.
template <class Attrs = NoAttrs>
void record(const OpInfo& op, std::span<Tensor> outputs, std::span<const Tensor> inputs,
            std::span<const Tensor> saved, const Attrs& attrs = {}) {
  static_assert(std::is_trivially_copyable_v<Attrs> && sizeof(Attrs) <= Node::kAttrBytes);
  if (Node* node = detail::record_node(op, outputs, inputs, saved)) {
    std::memcpy(node->attrs, &attrs, sizeof(Attrs));
  }
}
template <class Attrs = NoAttrs>
void record(const OpInfo& op, Tensor& output, std::initializer_list<Tensor> inputs,
            std::initializer_list<Tensor> saved, const Attrs& attrs = {}) {
  record(op, std::span<Tensor>(&output, 1), std::span<const Tensor>(inputs.begin(), inputs.size()),
         std::span<const Tensor>(saved.begin(), saved.size()), attrs);
}

// See Note [Recomputed]. Nothing happens if `output` was not recorded. Throws Error for an op
// without OpInfo::recompute, or of more than one output.
void allow_recompute(const Tensor& output);

// Where a backward kernel may write the gradient of an input.
struct Destination {
  Tensor tensor;            // of the input's shape
  bool accumulate = false;  // true: add to what stands there; false: its content is undefined
};

// What a backward function reads and writes.
class BackwardContext {
 public:
  BackwardContext(Node& node, class Engine& engine, bool create_graph)
      : node_(node), engine_(engine), create_graph_(create_graph) {}

  // The gradient of an output; undefined if nothing flowed to it (ops with several outputs).
  [[nodiscard]] const Tensor& grad_output(int output = 0) const;
  // Moves it out: if `exclusive` holds for it, its memory may be reused for the result.
  [[nodiscard]] Tensor take_grad_output(int output = 0);
  // True iff no other handle sees this memory.
  [[nodiscard]] static bool exclusive(const Tensor& tensor);
  // True iff the gradient of this input is wanted.
  [[nodiscard]] bool needs(int input) const;
  [[nodiscard]] int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  [[nodiscard]] const Shape& input_shape(int input) const { return edge(input).shape; }
  // The type of its gradient.
  [[nodiscard]] DType input_dtype(int input) const { return edge(input).dtype; }
  // What the op saved. Throws Error if it was changed in place since.
  [[nodiscard]] Tensor saved(int index) const;
  // An input, of an op that saved its inputs first, at its place in the graph.
  [[nodiscard]] Tensor saved_input(int input) const;
  // For OpInfo::recompute: hands over the output, and what backward can use beside it.
  void set_recomputed(Tensor output, Tensor beside = {});
  // What set_recomputed() left beside the output in this pass; else undefined.
  [[nodiscard]] Tensor recomputed_beside() const;
  // For OpInfo::recompute: moves out what the op saved, if only the op's backward would read it
  // again in this pass, and nobody after it; else undefined.
  [[nodiscard]] Tensor take_saved(int index);
  // For a backward that reads each part of an input before it writes the gradient of that part, so
  // that the gradient may stand in the input's memory: moves the saved input out, for the kernel to
  // write to and set_grad() to hand over. Undefined if the gradient is not wanted or a part of it
  // stands elsewhere already, or if anybody else sees the memory or will read it again. For an op
  // that saved its inputs first; call it behind all that may throw.
  [[nodiscard]] Tensor take_input(int input);
  template <class Attrs>
  [[nodiscard]] const Attrs& attrs() const {
    return *reinterpret_cast<const Attrs*>(node_.attrs);
  }
  [[nodiscard]] bool create_graph() const { return create_graph_; }
  [[nodiscard]] const Replay& replay() const { return *node_.replay; }

  // Hands over the gradient of an input; its shape must be the input's. A half one is widened for a
  // parameter that takes its gradient in f32.
  void set_grad(int input, Tensor grad);
  // Memory for it, so that a kernel can write or add straight into a parameter's gradient. Only
  // for kernels (never with create_graph). Call it once an input that needs(), and write all of it.
  [[nodiscard]] Destination destination(int input);
  // Lets a graph recorded while this node runs take the node's place: the gradients of its outputs
  // go on to `outputs`.
  void replace_by(std::span<const Tensor> outputs);

 private:
  [[nodiscard]] const Edge& edge(int input) const {
    return node_.inputs[static_cast<std::size_t>(input)];
  }
  Node& node_;
  Engine& engine_;
  bool create_graph_;
};

}  // namespace norma
