#include "apps/report/text_plot.h"

#include <algorithm>
#include <cmath>

#include "apps/report/axis.h"
#include "apps/study/results.h"

namespace norma::report {
namespace {

// More than there are colors: on paper and without colors, a sign is all that tells two curves
// apart.
constexpr const char kSigns[] = "*o+x#%@&abcdefghijklmnpqrstuvwyzABCDEFGHIJKLMNPQRSTUVWYZ";
constexpr int kColors[] = {34, 31, 32, 35, 33, 36, 94, 90};  // ANSI, in the order of the palette
constexpr std::size_t kAxisWidth = 8;                        // letters left of the field

struct Cell {
  char sign = ' ';
  std::size_t color = 0;
};

struct Label {
  std::string text;
  std::size_t color = 0;
  bool colored = false;
  std::size_t row = 0;
};

// Moves labels that would stand on one line apart, keeping their order from top to bottom.
void spread_labels(std::vector<Label>& labels, std::size_t height) {
  std::stable_sort(labels.begin(), labels.end(),
                   [](const Label& a, const Label& b) { return a.row < b.row; });
  for (std::size_t i = 1; i < labels.size(); ++i) {
    labels[i].row = std::max(labels[i].row, labels[i - 1].row + 1);
  }
  std::size_t limit = height;
  for (std::size_t i = labels.size(); i-- > 0;) {
    if (labels[i].row >= limit && limit > 0) labels[i].row = limit - 1;
    limit = labels[i].row;
  }
}

class TextPlotter {
 public:
  TextPlotter(const Chart& chart, const TextPlotOptions& options)
      : chart_(chart), options_(options), range_(y_range(chart)) {
    for (const Curve& curve : chart.curves) {
      for (const double x : curve.x) {
        x_low_ = std::min(x_low_, x);
        x_high_ = std::max(x_high_, x);
      }
    }
    if (x_high_ <= x_low_) x_high_ = x_low_ + 1;
    cells_.assign(options.height, std::vector<Cell>(options.width));
  }

  std::string plot() {
    for (const Level& level : chart_.levels) {
      const std::size_t r = row(level.y);
      for (std::size_t c = 0; c < options_.width; c += 2) cells_[r][c] = {'-', kNoColor};
      labels_.push_back(
          {fmt::format("{} = {}", level.label, study::shown_number(level.y)), 0, false, r});
    }
    for (const Curve& curve : chart_.curves) draw(curve);
    spread_labels(labels_, options_.height);
    return text();
  }

 private:
  static constexpr std::size_t kNoColor = static_cast<std::size_t>(-1);

  std::size_t row(double y) const {
    const double share = share_of_range(y, range_.low, range_.high, chart_.log_y);
    const double from_top =
        (1 - std::clamp(share, 0.0, 1.0)) * static_cast<double>(options_.height - 1);
    return static_cast<std::size_t>(std::lround(from_top));
  }

  // The mean of the points that fall into a column, and what lies between two columns.
  void draw(const Curve& curve) {
    if (curve.x.empty()) return;
    const char sign = kSigns[curve.color % (sizeof(kSigns) - 1)];
    std::vector<double> sum(options_.width, 0);
    std::vector<int> count(options_.width, 0);
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      const double share = (curve.x[i] - x_low_) / (x_high_ - x_low_);
      const auto c = static_cast<std::size_t>(share * static_cast<double>(options_.width - 1));
      sum[c] += curve.y[i];
      ++count[c];
    }
    std::size_t last_row = kNoColor;
    for (std::size_t c = 0; c < options_.width; ++c) {
      if (count[c] == 0) continue;
      const std::size_t r = row(sum[c] / count[c]);
      const std::size_t from = last_row == kNoColor ? r : r > last_row ? last_row + 1 : r;
      const std::size_t to = last_row == kNoColor || r >= last_row ? r : last_row - 1;
      for (std::size_t k = from; k <= std::max(from, to); ++k) cells_[k][c] = {sign, curve.color};
      cells_[r][c] = {sign, curve.color};
      last_row = r;
    }
    labels_.push_back({fmt::format("{} {}", sign, curve.label), curve.color, true, last_row});
  }

  std::string colored(const std::string& text, std::size_t color) const {
    if (!options_.colors || color == kNoColor) return text;
    return fmt::format("\033[{}m{}\033[0m", kColors[color % std::size(kColors)], text);
  }

  std::string text() const {
    std::string result = fmt::format("{}{}\n", std::string(kAxisWidth + 1, ' '), chart_.title);
    std::size_t next_label = 0;
    for (std::size_t r = 0; r < options_.height; ++r) {
      const bool marked = r % 4 == 0 || r + 1 == options_.height;
      const double share = 1 - static_cast<double>(r) / static_cast<double>(options_.height - 1);
      const double y = chart_.log_y ? range_.low * std::pow(range_.high / range_.low, share)
                                    : range_.low + share * (range_.high - range_.low);
      std::string line = marked ? fmt::format("{:>{}.3g} |", y, kAxisWidth - 1)
                                : std::string(kAxisWidth, ' ') + "|";
      for (const Cell& cell : cells_[r])
        line += colored(std::string(1, cell.sign), cell.sign == ' ' ? kNoColor : cell.color);
      if (next_label < labels_.size() && labels_[next_label].row <= r) {
        const Label& label = labels_[next_label++];
        line += "  " + colored(label.text, label.colored ? label.color : kNoColor);
      }
      while (!line.empty() && line.back() == ' ') line.pop_back();
      result += line + "\n";
    }
    for (; next_label < labels_.size(); ++next_label) {  // more than there are rows
      const Label& label = labels_[next_label];
      result += std::string(kAxisWidth, ' ') + "|" + std::string(options_.width + 2, ' ') +
                colored(label.text, label.colored ? label.color : kNoColor) + "\n";
    }
    result += std::string(kAxisWidth, ' ') + "+" + std::string(options_.width, '-') + "\n";
    const std::string low = fmt::format("{:g}", x_low_), high = fmt::format("{:g}", x_high_);
    const std::string& name = chart_.x_label;
    const std::size_t taken = low.size() + high.size() + name.size();
    const std::size_t free = options_.width > taken ? options_.width - taken : 2;
    result +=
        fmt::format("{}{}{}{}{}{}\n", std::string(kAxisWidth + 1, ' '), low,
                    std::string(free / 2, ' '), name, std::string(free - free / 2, ' '), high);
    return result;
  }

  const Chart& chart_;
  const TextPlotOptions& options_;
  Range range_;
  double x_low_ = std::numeric_limits<double>::infinity();
  double x_high_ = -std::numeric_limits<double>::infinity();
  std::vector<std::vector<Cell>> cells_;
  std::vector<Label> labels_;
};

}  // namespace

std::string text_plot(const Chart& chart, const TextPlotOptions& options) {
  if (chart.empty()) return "";
  return TextPlotter(chart, options).plot();
}

}  // namespace norma::report
