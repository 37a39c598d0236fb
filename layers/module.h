// Module: a tree of layers with named parameters and buffers, as users of PyTorch know it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/parameters.h"
#include "core/random.h"
#include "core/tensor.h"
#include "layers/cache.h"
#include "layers/observer.h"
#include "layers/scope.h"

namespace norma {

// What a forward pass needs beside its input.
struct Forward {
  Tensor mask;             // (B, T) u8: 1 where a token counts, 0 where it is padding; may be empty
  Tensor source;           // (B, S) ids of what an encoder-decoder reads; else empty
  Tensor source_mask;      // (B, S) u8, as `mask`, of the source; may be empty
  Tensor memory;           // (B, S, C), what cross-attention reads: the encoded source
  Tensor attention_bias;   // (H, T, S), added to the logits of self-attention; may be empty
  Tensor visible;          // (B or 1, T, S) u8: 1 where query t of self-attention may look at key s
  Cache* cache = nullptr;  // the pass goes on from it; then S counts its tokens too, also in `mask`
  std::uint64_t seed = 0;  // the run's
  std::string stream;      // names this pass for dropout: "step 17/batch 0"
  Observer* observer = nullptr;  // is told of values on the way; see layers/observer.h
  bool recompute = false;        // blocks keep no values; see layers/recomputed.h
  bool dropout = true;           // false: nothing is dropped, in training either

  // The stream of the next draw of the layer at `path` in this pass.
  [[nodiscard]] RandomKey key(const std::string& path) const;

 private:
  mutable std::map<std::string, int> draws_;
};

// Copies values into the tensors of the same names. Throws Error listing every missing, extra and
// mis-shaped name, and then changes nothing.
void copy_state(std::vector<NamedTensor> own, const std::vector<NamedTensor>& state);

class Module {
 public:
  explicit Module(const Scope& scope) : path_(scope.path()) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Parameters of this module and all below it, with names relative to it, in the order of their
  // making. A shared (tied) parameter appears once, under its first name.
  [[nodiscard]] std::vector<NamedParameter> named_parameters() const;
  [[nodiscard]] std::vector<Tensor> parameters() const;
  // Running statistics and the like: part of the state, without gradient.
  [[nodiscard]] std::vector<NamedTensor> named_buffers() const;
  // Parameters and buffers. The tensors share memory with the module.
  [[nodiscard]] std::vector<NamedTensor> state_dict() const;
  // copy_state() into state_dict().
  void load_state_dict(const std::vector<NamedTensor>& state);
  // Elements of all parameters.
  [[nodiscard]] std::int64_t num_parameters() const;

  // Dropout and batch statistics are on while training; both recursive.
  void train(bool on = true);
  void eval() { train(false); }
  [[nodiscard]] bool training() const { return training_; }
  // Forgets all gradients: no gradient, not a gradient of zero.
  void clear_gradients();

  // Dotted path from the root: "blocks.0.attention".
  [[nodiscard]] const std::string& path() const { return path_; }

 protected:
  // Names, creates and initialises a parameter in one call. See Scope::make.
  Tensor parameter(const Scope& scope, std::string_view name, const Shape& shape,
                   const ParameterKind& kind);
  Tensor buffer(std::string_view name, Tensor tensor);
  // A child lives as a member of the derived class; this only makes it known. Without a name its
  // parts have the names of this module's own.
  template <class M>
  M& child(std::string_view name, M& module) {
    children_.push_back({std::string(name), &module});
    return module;
  }

 private:
  template <class Visit>
  void visit(const std::string& prefix, const Visit& f) const;

  struct Child {
    std::string name;
    Module* module;
  };
  std::string path_;
  bool training_ = true;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<Child> children_;
};

}  // namespace norma
