// The tables of a probe, for the terminal.
#include <cmath>
#include <optional>

#include "apps/training/probe.h"
#include "apps/training/run_folder.h"

namespace norma {
namespace {

constexpr std::size_t kMostRows = 40;

// A column of the table by depth: its head, and the value's name before and after the path.
struct Column {
  const char* head;
  const char* before;
  const char* after = "";
};
constexpr Column kBlockColumns[] = {{"RMS", "stream.rms."},
                                    {"mean", "stream.mean."},
                                    {"std", "stream.std."},
                                    {"attention", "branch.share.", ".attention"},
                                    {"ffn", "branch.share.", ".ffn"},
                                    {"logit", "logit.", ".attention"},
                                    {"gradient", "grad."},
                                    {"averaged", "mean_grad."}};
constexpr const char* kBlockLegend =
    "RMS, mean and std of what leaves there; attention and ffn: RMS of what the branch adds, by "
    "that; logit: the largest of\nattention; gradient: norm over the block's parameters, on one "
    "batch and averaged over the batches.";
constexpr Column kLayerColumns[] = {{"RMS", "stream.rms."}, {"mean", "stream.mean."},
                                    {"std", "stream.std."}, {"spread", "stream.spread."},
                                    {"gradient", "grad."},  {"averaged", "mean_grad."}};
constexpr const char* kLayerLegend =
    "RMS, mean and std of what leaves the layer; spread: deviation of a feature's mean over a "
    "batch, by the feature's own,\n1/sqrt(batch) where samples are independent; gradient: norm "
    "over the layer's parameters, on one batch and averaged\nover the batches.";

std::string cell(std::optional<double> x) {
  return x ? fmt::format("{:.4g}", unsigned_nan(*x)) : "-";
}

// The paths of the values called `what`.PATH, in their order.
std::vector<std::string> paths_of(const ProbeValues& values, std::string_view what) {
  std::vector<std::string> paths;
  for (const auto& [name, value] : values) {
    if (name.starts_with(what)) paths.push_back(name.substr(what.size()));
  }
  return paths;
}

std::string depth_table(const ProbeValues& values, std::span<const Column> columns,
                        const char* legend, const ProbeLabels& labels) {
  std::string text = fmt::format("{:<24}", "at");
  for (const Column& c : columns) text += fmt::format(" {:>10}", c.head);
  text += '\n';
  const std::vector<std::string> paths = paths_of(values, "stream.rms.");
  const std::size_t stride = (paths.size() + kMostRows - 1) / kMostRows;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (i % stride != 0 && i + 1 != paths.size()) continue;
    const auto label = labels.find(paths[i]);
    text +=
        fmt::format("{:<24}", label == labels.end() ? paths[i] : paths[i] + " " + label->second);
    for (const Column& c : columns) {
      text += fmt::format(" {:>10}", cell(find_probe_value(values, c.before + paths[i] + c.after)));
    }
    text += '\n';
  }
  return fmt::format("{}\n{}\n\n", text, legend);
}

struct Line {
  const char* name;
  const char* text;
};
constexpr Line kSees[] = {{"sees.batch", "the other samples of its batch"},
                          {"sees.padding", "padding behind it"},
                          {"sees.later", "later tokens"},
                          {"sees.scale", "inputs times 2"},
                          {"sees.shift", "inputs plus 1"},
                          {"sees.contrast", "times 2, of one sample alone"}};
constexpr Line kRounding[] = {{"rounding.output", "the output"},
                              {"rounding.grad", "the whole gradient"}};

// A small table of those values that there are; empty without any.
std::string lines(const ProbeValues& values, std::span<const Line> table, const char* head,
                  const char* legend) {
  std::string text;
  for (const Line& line : table) {
    const std::optional<double> value = find_probe_value(values, line.name);
    if (value) text += fmt::format("{:<35} {:>10}\n", line.text, cell(value));
  }
  return text.empty() ? text : fmt::format("\n{:<35} {:>10}\n{}", head, legend, text);
}

// The mean over the depth of the logarithm of a growth: 0 is ideal.
double growth(double from, double to, std::size_t blocks) {
  return unsigned_nan(std::log(to / from) / static_cast<double>(blocks));
}

}  // namespace

std::string probe_text(const ProbeValues& values, const ProbeLabels& labels) {
  const auto at = [&](const std::string& name) { return find_probe_value(values, name); };
  const bool layers = !paths_of(values, "stream.rms.layers.").empty();
  std::string text = layers ? depth_table(values, kLayerColumns, kLayerLegend, labels)
                            : depth_table(values, kBlockColumns, kBlockLegend, labels);
  text += fmt::format("loss {}, norm of the whole gradient {}, averaged {}\n", cell(at("loss")),
                      cell(at("grad.whole")), cell(at("mean_grad.whole")));
  if (at("log_z")) {
    text += fmt::format("mean |log Z| of the output's logits {}\n", cell(at("log_z")));
  }
  const auto blocks = static_cast<std::size_t>(count_blocks(values, "blocks."));
  const auto number = [&](const std::string& name) { return probe_value(values, name); };
  if (blocks > 1 && number("stream.rms.embedding") > 0) {
    text += fmt::format(
        "growth a block, as a logarithm (0 is ideal): stream {:+.3f}, gradient toward the input "
        "{:+.3f}\n",
        growth(number("stream.rms.embedding"), number("stream.rms.blocks.last"), blocks),
        growth(number("grad.blocks.last"), number("grad.blocks.first"), blocks));
  }
  if (at("sharpness")) {
    text += fmt::format(
        "sharpness: largest eigenvalue of the Hessian {}, smallest {}; as Adam's first step sees "
        "it {}\n"
        "stable rate by the sharpness: below {} for gradient descent, below {} for Adam\n"
        "stable rate by Adam's first step, which lowers the loss up to it: {}\n",
        cell(at("sharpness")), cell(at("sharpness.smallest")), cell(at("sharpness.adam")),
        cell(at("stable_lr.sgd")), cell(at("stable_lr.adam")), cell(at("stable_lr.first_step")));
  }
  text += lines(values, kSees, "an output sees", "changes by");
  text += lines(values, kRounding, "rounding", "from f64 by");
  return text;
}

}  // namespace norma
