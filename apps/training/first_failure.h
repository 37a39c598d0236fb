// Which op, of which layer, was the first to give something that is not finite.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/op_watcher.h"
#include "core/parameters.h"

namespace norma {

// The first op whose result (forward), or whose inputs' gradients (backward), are not finite.
struct OpFailure {
  bool backward = false;
  std::string op;     // OpInfo's name; "cast of add" for the rounding of a result to a half type
  std::string layer;  // of the parameter that it uses, or of the last op before it that used one
  bool uses_parameter = false;
  std::string culprit;  // a parameter that held such a value already; else empty
};
// `the op layer_norm of layers.1`, `backward of the op exp, behind layers.0`.
[[nodiscard]] std::string to_text(const OpFailure& failure);

// Watches one forward and backward pass, which the model's parameters must be the leaves of.
class FirstFailure final : public OpWatcher {
 public:
  explicit FirstFailure(const std::vector<NamedParameter>& parameters);

  void recorded(const Node& node, std::span<const Tensor> outputs) override;
  void differentiated(const Node& node) override;

  // What was found; nothing if all was finite.
  [[nodiscard]] const std::optional<OpFailure>& failure() const { return failure_; }

 private:
  struct Place {
    std::string layer;
    bool uses_parameter = false;
  };
  std::map<const TensorImpl*, std::string> names_;
  std::map<std::uint64_t, Place> places_;  // of the nodes of the forward pass, by id
  std::string layer_;                      // the last one of which a parameter was used
  std::optional<OpFailure> failure_;
};

// True iff every element is finite.
[[nodiscard]] bool all_finite(const Tensor& x);

}  // namespace norma
