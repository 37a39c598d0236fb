#include "apps/training/explain.h"

#include <nlohmann/json.hpp>

#include "apps/training/build.h"

namespace norma {
namespace {

void add(std::string& text, std::string_view key, const std::string& value) {
  text += fmt::format("{:<12}{}\n", key, value);
}

std::string yes_no(bool b) { return b ? "yes" : "no"; }

// Formulas of the blocks, equal neighbours together.
std::string block_formulas(const TransformerConfig& config) {
  const auto formulas = [&](std::int64_t i) {
    return config.placement.formula(config.depth(i), "attention") + "; " +
           config.placement.formula(config.depth(i), "feed_forward");
  };
  std::string text;
  for (std::int64_t first = 0; first < config.layers;) {
    std::int64_t last = first;
    while (last + 1 < config.layers && formulas(last + 1) == formulas(first)) ++last;
    const std::string which = first == last ? fmt::format("block {}", first)
                                            : fmt::format("blocks {} to {}", first, last);
    add(text, first == 0 ? "blocks" : "", which + ":");
    add(text, "", "  " + config.placement.formula(config.depth(first), "attention"));
    add(text, "", "  " + config.placement.formula(config.depth(first), "feed_forward"));
    first = last + 1;
  }
  return text;
}

std::string explain_transformer(const TransformerConfig& c) {
  std::string text;
  add(text, "formula",
      "x <- N_post(alpha x + beta N_out(F(N_in(x)))), placement " +
          std::string(c.placement.type()));
  text += block_formulas(c);
  c.placement.visit([&](const auto& p) { add(text, "source", p.source); });
  c.norm.visit([&](const auto& n) { add(text, "N", fmt::format("{}: {}", n.type, n.doc)); });
  add(text, "final norm", yes_no(c.has_final_norm()));
  const std::int64_t kv = c.kv_heads.value_or(c.heads);
  const std::int64_t head = c.head_width.value_or(c.width / c.heads);
  add(text, "attention",
      fmt::format("{} heads of {}, {} key-value heads, {}, position {}", c.heads, head, kv,
                  c.kind == TransformerKind::decoder ? "causal" : "all tokens seen",
                  c.position.type()));
  add(text, "ffn",
      fmt::format("{} -> {} -> {}, {}", c.width, c.hidden_width(), c.width, c.activation.type()));
  add(text, "head", c.tied ? "the transposed table of tokens" : "a product of its own");
  const double gain = c.placement.row(c.depth(0)).gain;
  std::string init = c.resolved_init().type();
  if (gain != 1) init += fmt::format(", gain {:.4g} on v, out and the feed-forward", gain);
  add(text, "init", init);
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
  const PlacementRow row = c.placement.row(c.depth(std::max<std::int64_t>(0, c.layers - 1)));
  const bool norms =
      row.norm_in || row.norm_out || row.norm_post || c.has_final_norm() || c.embedding_norm;
  if (!norms && !c.norm.get_if<NoNormConfig>()) {
    dead.push_back(fmt::format("norm \"{}\": the placement {} has no norm", c.norm.type(),
                               c.placement.type()));
  }
  if (c.norm.get_if<NoNormConfig>() && !c.placement.get_if<NoPlacement>() &&
      !c.placement.get_if<ReZeroPlacement>()) {
    dead.push_back(fmt::format("placement \"{}\": its norms are \"none\"", c.placement.type()));
  }
  if (c.kv_heads && *c.kv_heads == c.heads) dead.push_back("kv_heads: as many as heads anyway");
  if (c.head_width && *c.head_width * c.heads == c.width) {
    dead.push_back("head_width: width / heads anyway");
  }
  if (c.hidden && *c.hidden == 4 * c.width) dead.push_back("hidden: 4 width anyway");
  if (c.layers == 0) dead.push_back("everything of the blocks: there are 0 layers");
  return dead;
}

std::string explain(const RunConfig& config) {
  const auto data = build_data(config);
  const ModelPtr model = build_model(config, data->spec());
  std::string text;
  add(text, "name", config.name);
  const DataSpec& spec = data->spec();
  add(text, "data",
      fmt::format("{}: inputs {}{}, {} classes", config.data.type(), spec.input.to_string(),
                  spec.vocab > 0 ? fmt::format(" ids below {}", spec.vocab) : "", spec.classes));
  config.model.visit([&]<class M>(const M& m) {
    if constexpr (std::is_same_v<M, TransformerConfig>) {
      text += explain_transformer(m);
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
