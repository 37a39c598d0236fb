#include "apps/training/explain.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/training/build.h"
#include "models/formula.h"

namespace norma {
namespace {

void add(std::string& text, std::string_view key, const std::string& value) {
  text += fmt::format("{:<12}{}\n", key, value);
}

// One line a formula.
void add_all(std::vector<std::string>& lines, const std::vector<Formula>& formulas) {
  for (const Formula& f : formulas) lines.push_back(f.text);
}

// The formulas of a stack, blocks that are alike together.
std::string explain_stack(const TransformerConfig& config, Side side, const char* name) {
  const auto block = [&](std::int64_t i) {
    std::vector<std::string> lines;
    add_all(lines, block_formulas(config, side, i));
    if (config.row(side, i, BranchKind::attention).norm_heads) {
      lines.push_back("with a norm on each head of the queries, keys and values");
    }
    if (config.norm.index() == 1) {
      lines.push_back(fmt::format("N is {}", config.norm_of(side, i).type()));
    }
    return lines;
  };
  std::vector<std::string> lines;
  add_all(lines, start_formulas(config, side));
  for (std::int64_t first = 0; first < config.blocks(side);) {
    std::int64_t last = first;
    while (last + 1 < config.blocks(side) && block(last + 1) == block(first)) ++last;
    lines.push_back(first == last ? fmt::format("block {}:", first)
                                  : fmt::format("blocks {} to {}:", first, last));
    for (const std::string& line : block(first)) lines.push_back("  " + line);
    first = last + 1;
  }
  for (const Formula& f : end_formulas(config, side)) lines.push_back("at the end: " + f.text);
  std::string text;
  for (const std::string& line : lines) {
    add(text, text.empty() ? name : "", line);
  }
  return text;
}

// The different members of a family that stand in all blocks, in order.
template <class F>
std::vector<std::string> told_once(const TransformerConfig& config, const F& text_of) {
  std::vector<std::string> texts;
  for (const Side side : config.sides()) {
    for (std::int64_t i = 0; i < config.blocks(side); ++i) {
      const std::string text = text_of(side, i);
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
  }
  return texts;
}

const char* sees(TransformerKind kind) {
  if (kind == TransformerKind::encoder) return "all tokens seen";
  return kind == TransformerKind::decoder ? "causal" : "causal in the decoder";
}

std::string explain_transformer(const TransformerConfig& c) {
  std::string text;
  add(text, "formula", "x <- N_post(alpha x + beta N_out(F(N_in(x))))");
  for (const std::string& placement : told_once(c, [&](Side side, std::int64_t i) {
         return c.placement_of(side, i).visit(
             [](const auto& p) { return fmt::format("{}: {} ({})", p.type, p.doc, p.source); });
       })) {
    add(text, "placement", placement);
  }
  for (const Side side : c.sides()) {
    constexpr const char* kNames[] = {"blocks", "encoder", "decoder"};
    text += explain_stack(c, side, kNames[static_cast<int>(side)]);
  }
  for (const std::string& norm : told_once(c, [&](Side side, std::int64_t i) {
         return c.norm_of(side, i).visit(
             [](const auto& n) { return fmt::format("{}: {}", n.type, n.doc); });
       })) {
    add(text, "N", norm);
  }
  const std::int64_t kv = c.kv_heads.value_or(c.heads);
  const std::int64_t head = c.head_width.value_or(c.width / c.heads);
  add(text, "attention",
      fmt::format("{} heads of {}, {} key-value heads, {}, position {}", c.heads, head, kv,
                  sees(c.kind), c.position.type()));
  if (c.qk_norm) {
    add(text, "",
        fmt::format("{} on queries and keys, over {}", c.qk_norm->norm.type(),
                    c.qk_norm->over == QkNormOver::head ? "each head" : "all heads together"));
  }
  if (c.window) {
    std::vector<std::string> windows;
    for (const Side side : c.sides()) {
      for (std::int64_t i = 0; i < c.blocks(side); ++i) {
        const auto window = c.window_of(side, i);
        windows.push_back(window ? std::to_string(*window) : "all");
      }
    }
    const auto other = [&](const std::string& w) { return w != windows[0]; };
    if (!windows.empty() && std::none_of(windows.begin(), windows.end(), other)) windows.resize(1);
    add(text, "", fmt::format("keys seen, at most: {}", fmt::join(windows, ", ")));
  }
  if (c.attention_softcap) {
    add(text, "", fmt::format("logits z become {0} tanh(z / {0})", *c.attention_softcap));
  }
  add(text, "ffn",
      fmt::format("{} -> {} -> {}, {}", c.width, c.hidden_width(), c.width, c.activation.type()));
  add(text, "head", c.tied ? "the transposed table of tokens" : "a product of its own");
  if (c.logit_softcap) {
    add(text, "", fmt::format("logits z become {0} tanh(z / {0})", *c.logit_softcap));
  }
  for (const std::string& init : told_once(c, [&](Side side, std::int64_t i) {
         const double gain = c.row(side, i, BranchKind::ffn).gain;
         std::string rule = c.resolved_init().type();
         if (gain != 1) rule += fmt::format(", gain {:.4g} on v, out and the feed-forward", gain);
         if (gain != 1 && side == Side::encoder) rule += " (encoder)";
         if (gain != 1 && side == Side::decoder) rule += " (decoder)";
         return rule;
       })) {
    add(text, "init", init);
  }
  for (const std::string& s : dead_switches(c)) add(text, "dead", s);
  return text;
}

// The layers with their shapes, as they follow from the data.
std::string explain_sequential(const SequentialConfig& config, const Signature& in) {
  std::string text;
  Signature at = in;
  const Scope root(0, config.init);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const LayerPtr layer = config.layers[i].build(root.child(std::to_string(i)), at);
    add(text, fmt::format("layer {}", i),
        fmt::format("{:<16} {:>16} -> {:<16} {:>9} parameters", config.layers[i].type(),
                    at.shape.to_string(), layer->output().shape.to_string(),
                    layer->num_parameters()));
    at = layer->output();
  }
  return text;
}

std::string explain_recurrent(const RecurrentConfig& c) {
  std::string text;
  add(text, "model",
      fmt::format("recurrent: {} x {}, width {}, hidden {}{}", c.layers,
                  c.cell == CellKind::lstm ? "lstm" : "gru", c.embedding_width(), c.hidden,
                  c.tied ? ", tied" : ""));
  const auto normed = [&](const std::string& x) { return c.norm ? "N(" + x + ")" : x; };
  const std::string from_x = normed("Wx x_t") + " + b", from_h = normed("Wh h") + " + b'";
  if (c.cell == CellKind::lstm) {
    add(text, "cell", fmt::format("i f g o = {} + {}", from_x, from_h));
    add(text, "", "c <- sigmoid(f) c + sigmoid(i) tanh(g)");
    add(text, "", fmt::format("h <- sigmoid(o) tanh({})", normed("c")));
  } else {
    add(text, "cell", fmt::format("a = {}, d = {}, each in three parts r z n", from_x, from_h));
    add(text, "", "r = sigmoid(a_r + d_r), z = sigmoid(a_z + d_z), n = tanh(a_n + r d_n)");
    add(text, "", "h <- (1 - z) n + z h");
  }
  if (c.norm) add(text, "norm", std::string(c.norm->type()));
  add(text, "init", std::string(c.init.type()));
  return text;
}

// The rate over the run, as a row of bars.
std::string rate_plot(const Schedule& schedule, std::int64_t steps) {
  constexpr int kColumns = 60;
  constexpr const char* kBars[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                   "\u2585", "\u2586", "\u2587", "\u2588"};
  double most = 0;
  std::vector<double> rates;
  for (int i = 0; i < kColumns; ++i) {
    rates.push_back(schedule.rate(i * std::max<std::int64_t>(0, steps - 1) / (kColumns - 1)));
    most = std::max(most, rates.back());
  }
  std::string plot;
  for (double r : rates) plot += kBars[most > 0 ? static_cast<int>(r / most * 8 + 0.5) : 0];
  return plot;
}

}  // namespace

std::vector<std::string> dead_switches(const TransformerConfig& c) {
  std::vector<std::string> dead;
  const auto add_once = [&](const std::string& text) {
    if (std::find(dead.begin(), dead.end(), text) == dead.end()) dead.push_back(text);
  };
  for (const Side side : c.sides()) {
    for (std::int64_t i = 0; i < c.blocks(side); ++i) {
      bool norms = false;
      for (const BranchKind kind : {BranchKind::attention, BranchKind::ffn}) {
        const PlacementRow row = c.row(side, i, kind);
        norms |= row.norm_in || row.norm_out || row.norm_post || row.norm_before;
      }
      const bool none = c.norm_of(side, i).get_if<NoNormConfig>() != nullptr;
      const char* norm = c.norm_of(side, i).type();
      const char* placement = c.placement_of(side, i).type();
      if (none && norms) {
        add_once(fmt::format("placement \"{}\": its norms are \"none\"", placement));
      }
      if (!none && !norms && !c.has_final_norm(side) && !c.embedding_norm) {
        add_once(fmt::format("norm \"{}\": the placement {} has no norm", norm, placement));
      }
    }
  }
  if (c.kv_heads && *c.kv_heads == c.heads) dead.push_back("kv_heads: as many as heads anyway");
  if (c.head_width && *c.head_width * c.heads == c.width) {
    dead.push_back("head_width: width / heads anyway");
  }
  if (c.hidden && *c.hidden == 4 * c.width) dead.push_back("hidden: 4 width anyway");
  for (const Side side : c.sides()) {
    if (c.blocks(side) == 0) add_once("everything of the blocks: there are 0 layers");
  }
  return dead;
}

std::string explain(const RunConfig& config) {
  const auto data = build_data(config);
  const ModelPtr model = build_model(config, data->spec());
  std::string text;
  add(text, "name", config.name);
  const DataSpec& spec = data->spec();
  add(text, "data",
      fmt::format("{}: inputs {}{}{}, {} classes", config.data.type(), spec.input.to_string(),
                  spec.vocab > 0 ? fmt::format(" ids below {}", spec.vocab) : "",
                  spec.source.rank() > 0 ? ", sources " + spec.source.to_string() : "",
                  spec.classes));
  config.model.visit([&]<class M>(const M& m) {
    if constexpr (std::is_same_v<M, TransformerConfig>) {
      text += explain_transformer(m);
    } else if constexpr (std::is_same_v<M, RecurrentConfig>) {
      text += explain_recurrent(m);
    } else {
      text += explain_sequential(m, signature_of(spec));
    }
  });
  add(text, "output", model->output().shape.to_string());
  check_outputs(config.loss, model->output().shape, spec);
  add(text, "parameters", fmt::format("{}", model->num_parameters()));
  const std::int64_t steps = total_steps(config.train, *data);
  const SchedulePtr schedule = make_schedule(config.schedule, config.optimizer.options().lr, steps,
                                             tokens_per_step(config.train, spec));
  add(text, "optimizer",
      fmt::format("{}, peak rate {}", config.optimizer.type(), config.optimizer.options().lr));
  add(text, "rate",
      fmt::format("{} over {} steps, {} of warm-up: {:.3g} at step 1, {:.3g} at the last",
                  config.schedule.type(), steps, schedule->warmup_steps(), schedule->rate(0),
                  schedule->rate(std::max<std::int64_t>(0, steps - 1))));
  add(text, "", rate_plot(*schedule, steps));
  if (const std::string w = schedule->warning(); !w.empty()) add(text, "warning", w);
  return text;
}

}  // namespace norma
