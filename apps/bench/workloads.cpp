#include "apps/bench/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/config/problems.h"
#include "core/error.h"

namespace norma::bench {
namespace {

// A product of (m, k) and (k, n), forward and backward: the gradient of the data (not needed for
// the first layer) and that of the weight cost the same again.
double product(double m, double k, double n, bool first = false) {
  return 2 * m * k * n * (first ? 2 : 3);
}

Workload mlp(const char* name, const char* doc, std::int64_t batch, std::int64_t hidden,
             const char* norm) {
  const double b = static_cast<double>(batch), h = static_cast<double>(hidden);
  const std::string block =
      fmt::format(R"({{"type":"linear","out":{}}},"{}","relu",)", hidden, norm);
  return {
      .name = name,
      .doc = doc,
      .model = fmt::format(R"({{"type":"sequential","layers":[{}{}{{"type":"linear","out":{}}}]}})",
                           block, block, kClasses),
      .batch = batch,
      .flat = true,
      .flops = product(b, kImageSide * kImageSide, h, true) + product(b, h, h) +
               product(b, h, kClasses)};
}

Workload cnn(const char* name, const char* doc, const char* norm) {
  constexpr std::int64_t kBatch = 64;
  std::string layers;
  double flops = 0, in = 1, side = kImageSide;
  for (const std::int64_t channels : {32, 64, 128}) {
    if (in > 1) {
      layers += R"({"type":"max_pool2d","kernel":2},)";
      side = static_cast<double>(static_cast<std::int64_t>(side) / 2);
    }
    for (int i = 0; i < 2; ++i) {
      layers += fmt::format(
          R"({{"type":"conv2d","out":{},"kernel":3,"padding":1,"bias":false}},{},"relu",)",
          channels, norm);
      const double out = static_cast<double>(channels);
      flops += product(kBatch * side * side, 9 * in, out, in == 1);
      in = out;
    }
  }
  layers += fmt::format(R"("global_avg_pool","flatten",{{"type":"linear","out":{}}})", kClasses);
  return {.name = name,
          .doc = doc,
          .model = fmt::format(R"({{"type":"sequential","layers":[{}]}})", layers),
          .batch = kBatch,
          .flops = flops + product(kBatch, in, kClasses)};
}

struct Gpt {
  std::int64_t batch, context, layers, heads, width;
  std::int64_t vocab = 65;
  bool llama = false;
  std::string norm{};  // empty: LayerNorm, or RMSNorm in the manner of LLaMA
};

Workload gpt(const std::string& name, const std::string& doc, const Gpt& g, const Target& target) {
  // LLaMA's hidden width is 8/3 of the width, rounded to a multiple of 64.
  const std::int64_t hidden = g.llama ? (8 * g.width + 96) / 192 * 64 : 4 * g.width;
  const double tokens = static_cast<double>(g.batch * g.context);
  const double d = static_cast<double>(g.width), h = static_cast<double>(hidden);
  const double t = static_cast<double>(g.context);
  // Scores and weighted sum are two products, of which a causal one needs half.
  const double attention = product(static_cast<double>(g.batch) * t, t, d);
  const double block = product(tokens, d, 4 * d) + product(tokens, d, (g.llama ? 3 : 2) * h);
  return {.name = name,
          .doc = doc,
          .model = fmt::format(
              R"({{"type":"transformer","kind":"decoder","layers":{},"heads":{},"width":{},)"
              R"("hidden":{},"placement":"pre","position":"learned","tied":true,"bias":{},)"
              R"("norm":"{}","activation":"{}"}})",
              g.layers, g.heads, g.width, hidden, !g.llama,
              !g.norm.empty() ? g.norm
              : g.llama       ? "rms_norm"
                              : "layer_norm",
              g.llama ? "swiglu" : "gelu"),
          .batch = g.batch,
          .context = g.context,
          .vocab = g.vocab,
          .clip = true,
          .flops = static_cast<double>(g.layers) * (block + attention) +
                   product(tokens, d, static_cast<double>(g.vocab)),
          .target = target};
}

struct NamedGpt {
  const char* name;
  const char* doc;
  Gpt sizes;
  Target target;
};

const std::vector<NamedGpt>& transformers() {
  static const std::vector<NamedGpt> all = {
      {"gpt-nano",
       "4 layers, width 128, context 64, batch 12",
       {.batch = 12, .context = 64, .layers = 4, .heads = 4, .width = 128},
       {.ratio = 0.5}},
      {"gpt-baby",
       "6 layers, width 384, context 256, batch 8",
       {.batch = 8, .context = 256, .layers = 6, .heads = 6, .width = 384},
       {.ratio = 0.6, .share = 0.75}},
      {"llama-baby",
       "the same with RMSNorm and SwiGLU",
       {.batch = 8, .context = 256, .layers = 6, .heads = 6, .width = 384, .llama = true},
       {.ratio = 0.6}},
      {"deep",
       "64 layers, width 64, context 64, batch 8",
       {.batch = 8, .context = 64, .layers = 64, .heads = 2, .width = 64},
       {.ratio = 0.33}},
      {"gpt2-124m",
       "GPT-2 of 124M parameters, context 64, batch 4",
       {.batch = 4, .context = 64, .layers = 12, .heads = 12, .width = 768, .vocab = 50257},
       {.ratio = 0.5, .share = 0.75, .memory_mib = 2.3 * 1024}},
  };
  return all;
}

// "layers=16" and the like.
void change(Gpt& sizes, std::string_view name, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  const std::string_view key = setting.substr(0, equals);
  const std::string value(equals == std::string_view::npos ? "" : setting.substr(equals + 1));
  if (key == "norm" && !value.empty()) {
    sizes.norm = value;
    return;
  }
  const std::int64_t n = std::strtoll(value.c_str(), nullptr, 10);
  require((key == "layers" || key == "batch") && n >= 1,
          "bench: expected layers=N, batch=N or norm=NAME behind the colon of \"{}\"; got \"{}\"",
          name, setting);
  (key == "layers" ? sizes.layers : sizes.batch) = n;
}

}  // namespace

std::span<const Workload> workloads() {
  static const std::vector<Workload> all = [] {
    std::vector<Workload> w = {
        mlp("mlp", "784-512-512-10, BatchNorm, batch 128", 128, 512, "batch_norm"),
        mlp("mlp-small", "784-64-64-10, LayerNorm, batch 32: overhead", 32, 64, "layer_norm"),
        cnn("cnn-bn", "six 3x3 convolutions of 32 to 128 channels, BatchNorm, batch 64",
            R"("batch_norm")"),
        cnn("cnn-gn", "the same with GroupNorm", R"({"type":"group_norm","groups":8})")};
    w[0].target = {.ratio = 0.65};
    w[1].target = {.ratio = 0.3};
    w[2].target = {.ratio = 0.65, .share = 0.6};
    w[3].target = {.ratio = 0.7};
    for (const NamedGpt& g : transformers()) w.push_back(gpt(g.name, g.doc, g.sizes, g.target));
    return w;
  }();
  return all;
}

Workload find_workload(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Workload& w : workloads()) {
    if (w.name == name) return w;
    known.push_back(w.name);
  }
  const std::size_t colon = name.find(':');
  for (const NamedGpt& g : transformers()) {
    if (colon == std::string_view::npos || name.substr(0, colon) != g.name) continue;
    Gpt sizes = g.sizes;
    std::string_view rest = name.substr(colon + 1);
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      change(sizes, name, rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return gpt(std::string(name), g.doc, sizes, {});
  }
  throw Error::format("unknown workload \"{}\"{} (and ops, ops:OP, scaling: see --help)", name,
                      config::name_hint(name, known));
}

}  // namespace norma::bench
