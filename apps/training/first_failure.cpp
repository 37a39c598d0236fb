#include "apps/training/first_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/autograd.h"
#include "core/ops/cast.h"

namespace norma {
namespace {

// "blocks.0.attention.query.weight" -> "blocks.0.attention.query"
std::string layer_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

// An op on half types computes in f32, and its result is rounded by a cast: then the op is named.
std::string op_name(const Node& node) {
  const Node* source = &node;
  while (std::string_view(source->op->name) == "cast" && !source->inputs.empty() &&
         source->inputs[0].node) {
    source = source->inputs[0].node.get();
  }
  if (source == &node) return node.op->name;
  return fmt::format("{} of {}", node.op->name, source->op->name);
}

}  // namespace

bool all_finite(const Tensor& x) {
  if (!x.defined() || !is_floating(x.dtype())) return true;
  if (is_half(x.dtype())) {
    const NoGrad off;
    return all_finite(to(x, DType::f32));
  }
  return dispatch_compute(x.dtype(), "all_finite", [&]<class T>() {
    const T* values = x.data<T>();
    return std::all_of(values, values + x.numel(), [](T v) { return std::isfinite(v); });
  });
}

std::string to_text(const OpFailure& f) {
  std::string text = fmt::format("{}the op {}", f.backward ? "backward of " : "", f.op);
  if (!f.layer.empty()) text += (f.uses_parameter ? " of " : ", behind ") + f.layer;
  if (!f.culprit.empty()) text += fmt::format("; {} was not finite before", f.culprit);
  return text;
}

FirstFailure::FirstFailure(const std::vector<NamedParameter>& parameters) {
  for (const auto& [name, tensor] : parameters) names_.emplace(tensor.impl(), name);
}

void FirstFailure::recorded(const Node& node, std::span<const Tensor> outputs) {
  Place place;
  std::string culprit;
  for (const Edge& e : node.inputs) {
    const auto at = names_.find(e.leaf.get());
    if (!e.leaf || at == names_.end()) continue;
    layer_ = layer_of(at->second);
    place.uses_parameter = true;
    // Leaves of a graph hold their values.
    if (culprit.empty() && !failure_ && !all_finite(Tensor(e.leaf))) culprit = at->second;
  }
  place.layer = layer_;
  places_.emplace(node.id, place);
  if (failure_) return;
  for (const Tensor& y : outputs) {
    if (all_finite(y)) continue;
    failure_ = {false, op_name(node), place.layer, place.uses_parameter, culprit};
    return;
  }
}

void FirstFailure::differentiated(const Node& node) {
  if (failure_) return;
  for (const Edge& e : node.inputs) {
    Tensor gradient;
    if (e.node) {
      if (static_cast<std::size_t>(e.output) >= e.node->pending.size()) continue;
      gradient = e.node->pending[static_cast<std::size_t>(e.output)];
    } else if (e.leaf) {
      gradient = Tensor(e.leaf).grad();
    }
    if (all_finite(gradient)) continue;
    const auto at = places_.find(node.id);
    const Place place = at == places_.end() ? Place{} : at->second;
    failure_ = {true, op_name(node), place.layer, place.uses_parameter, ""};
    return;
  }
}

}  // namespace norma
