#include "apps/training/first_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/autograd.h"
#include "core/ops/cast.h"
#include "core/ops/movement.h"

namespace norma {
namespace {

// "blocks.0.attention.query.weight" -> "blocks.0.attention.query"
std::string layer_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

// What the paths have in common: "blocks.0.attention" of "blocks.0.attention.q" and "....v".
std::string common_path(const std::vector<std::string>& paths) {
  std::string common = paths.empty() ? "" : paths[0];
  const auto holds = [&](const std::string& path) {
    return (path + ".").starts_with(common + ".");
  };
  while (!common.empty() && !std::all_of(paths.begin(), paths.end(), holds)) {
    const std::size_t dot = common.rfind('.');
    common.resize(dot == std::string::npos ? 0 : dot);
  }
  return common;
}

// Of the layers that an op uses, the one whose part of y is not finite, where y has a part for each
// along its first axis; else what they have in common.
std::string layer_of_output(const Tensor& y, const std::vector<std::string>& layers) {
  const auto parts = static_cast<std::int64_t>(layers.size());
  if (parts > 1 && y.rank() > 1 && y.size(0) == parts) {
    const NoGrad off;
    for (std::int64_t i = 0; i < parts; ++i) {
      if (!all_finite(slice(y, 0, i, i + 1))) return layers[static_cast<std::size_t>(i)];
    }
  }
  return common_path(layers);
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
  std::vector<std::string> layers;
  for (const Edge& e : node.inputs) {
    const auto at = names_.find(e.leaf.get());
    if (!e.leaf || at == names_.end()) continue;
    const std::string layer = layer_of(at->second);
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
    place.uses_parameter = true;
    // Leaves of a graph hold their values.
    if (culprit.empty() && !failure_ && !all_finite(Tensor(e.leaf))) culprit = at->second;
  }
  if (place.uses_parameter) layer_ = common_path(layers);
  place.layer = layer_;
  places_.emplace(node.id, place);
  if (failure_) return;
  for (const Tensor& y : outputs) {
    if (all_finite(y)) continue;
    const std::string layer = place.uses_parameter ? layer_of_output(y, layers) : place.layer;
    failure_ = {false, op_name(node), layer, place.uses_parameter, culprit};
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
    const auto leaf = names_.find(e.leaf.get());
    const std::string layer = e.leaf && leaf != names_.end() ? layer_of(leaf->second) : place.layer;
    failure_ = {true, op_name(node), layer, place.uses_parameter, ""};
    return;
  }
}

}  // namespace norma
