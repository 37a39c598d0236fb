// Layer: a module with one input and one output.
#pragma once

#include <memory>

#include "layers/module.h"

namespace norma {

// What a layer gets, without the batch axis.
struct Signature {
  Shape shape;             // of one sample: (784), (1, 28, 28), (T, C); for ids (T)
  std::int64_t vocab = 0;  // above 0: ids in 0..vocab-1
  Shape source = {};       // (S) where an encoder-decoder also reads a source of ids below vocab
  // True iff the last axis holds the features (inside a transformer). Otherwise channels come
  // first, as in images.
  bool features_last = false;
};

// Whether passes over new tokens alone can go on from a Forward::cache.
enum class Continues : std::uint8_t {
  no,              // a later token changes what stands at earlier ones
  within_context,  // up to the length that the model was made for
  endlessly,       // its state has one size, however long the text
};

class Layer : public Module {
 public:
  Layer(const Scope& scope, Signature output) : Module(scope), output_(std::move(output)) {}

  // Shapes: x (N, *input), result (N, *output().shape).
  [[nodiscard]] virtual Tensor forward(const Tensor& x, const Forward& pass) = 0;
  // residual + forward(x, pass); a layer that ends with a product adds in its tiles.
  // Shapes: residual and result (N, *output().shape). Throws: if the residual has another shape.
  [[nodiscard]] virtual Tensor forward_onto(const Tensor& residual, const Tensor& x,
                                            const Forward& pass);
  // Sets what the first batch of a run tells (the omega of the placement `admin`), in one forward
  // without gradient. Called before the first step. False where there is nothing to set, as in
  // most.
  virtual bool profile(const Tensor& /*x*/, const Forward& /*pass*/) { return false; }
  [[nodiscard]] Tensor operator()(const Tensor& x) { return forward(x, Forward{}); }
  [[nodiscard]] const Signature& output() const { return output_; }
  // In evaluation.
  [[nodiscard]] virtual Continues continues() const { return Continues::no; }
  // True iff it is a part large enough to be worth recomputed().
  [[nodiscard]] virtual bool is_block() const { return false; }

 private:
  Signature output_;
};

using LayerPtr = std::unique_ptr<Layer>;

// Throws the error of a layer that takes numbers and was given ids.
void require_numbers(const char* layer, const Signature& in);
// Likewise, and that of a layer over the last axis that was given a single number.
void require_features(const char* layer, const Signature& in);

}  // namespace norma
