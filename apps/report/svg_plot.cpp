#include "apps/report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/report/axis.h"
#include "apps/report/page.h"
#include "apps/study/results.h"

namespace norma::report {
namespace {

constexpr std::size_t kMostPoints = 600;  // of a line; more are thinned
constexpr std::size_t kDescribed = 12;    // curves whose ends are told in the description
constexpr double kPaperLetter = 13;
constexpr double kLow = 0.4;  // of the field: a level in it has its label at the left end

class SvgPlotter {
 public:
  SvgPlotter(const Chart& chart, const SvgOptions& options)
      : chart_(chart), options_(options), palette_(options.palette()) {
    const Range range = y_range(chart);
    y_ = make_axis(range.low, range.high, chart.log_y, options.y_ticks);
    double first = std::numeric_limits<double>::infinity(), last = -first;
    for (const Curve& curve : chart.curves) {
      for (const double x : curve.x) {
        if (chart.log_x && x <= 0) continue;
        first = std::min(first, x);
        last = std::max(last, x);
      }
    }
    if (!(first <= last)) first = last = 1;
    if (!chart.x_names.empty()) {
      first = -0.5;
      last = static_cast<double>(chart.x_names.size()) - 0.5;
    }
    x_ = make_axis(first, last, chart.log_x, options.x_ticks);
    if (!chart.x_at.empty()) {
      x_.ticks.clear();
      for (const double x : chart.x_at) x_.ticks.push_back({x, fmt::format("{:g}", x)});
    }
    if (!chart.x_names.empty()) {
      x_.ticks.clear();
      for (std::size_t i = 0; i < chart.x_names.size(); ++i)
        x_.ticks.push_back({static_cast<double>(i), chart.x_names[i]});
    }
    const bool marked = std::any_of(chart.curves.begin(), chart.curves.end(),
                                    [](const auto& c) { return c.points; });
    inset_ = marked && chart.x_names.empty() ? 12 : 0;
    place_field();
  }

  std::string draw() const {
    std::string svg = options_.bare ? frame() : title() + axes();
    // What leaves the field is cut at its edge.
    svg += fmt::format(
        "<svg x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" viewBox=\"{0:.1f} "
        "{1:.1f} {2:.1f} {3:.1f}\">\n",
        left_, top_, width_, height_);
    for (const Curve& curve : chart_.curves) svg += band(curve);
    for (const Curve& curve : chart_.curves) {
      if (!curve.raw.empty()) svg += line(curve.x, curve.raw, curve, 1, 0.3);
    }
    for (const Level& level : chart_.levels) svg += level_line(level);
    for (const Curve& curve : chart_.curves) svg += drawn(curve);
    svg += "</svg>\n";
    if (options_.bare) return svg;
    svg += level_labels() + key();
    return svg_element(options_, chart_.title.empty() ? chart_.y_label : chart_.title,
                       description(), svg);
  }

 private:
  // --- Places. ---
  void place_field() {
    if (options_.bare) {
      width_ = options_.width;
      height_ = options_.height;
      inset_ = std::min(inset_, 8.0);
      return;
    }
    std::size_t longest = 1;
    for (const Tick& tick : y_.ticks) longest = std::max(longest, letters_of(tick.label));
    const double letter = options_.paper ? kPaperLetter : options_.letter;
    left_ = (options_.paper ? 24 : 12) +
            (options_.paper ? 8.0 * static_cast<double>(longest) : options_.text_width(longest));
    top_ = (options_.paper ? 34 : 0) + 1.6 * letter;
    width_ = options_.width - left_ - 14;
    height_ = options_.height - top_ - 3.0 * letter - 6;
    if (options_.paper) height_ -= 22.0 * static_cast<double>(key_rows()) + 8;
  }
  double x_at(double x) const { return left_ + inset_ + x_.place(x) * (width_ - 2 * inset_); }
  double y_at(double y) const {
    // Far outside is outside: keeps what is drawn in numbers that a viewer can take.
    return top_ + height_ * (1 - std::clamp(y_.place(y), -2.0, 3.0));
  }
  bool drawable(double x, double y) const {
    return std::isfinite(x) && std::isfinite(y) && (!chart_.log_x || x > 0) &&
           (!chart_.log_y || y > 0);
  }

  // --- Axes. ---
  std::string title() const {
    if (!options_.paper) return "";
    return svg_text(options_.width / 2.0, 26, chart_.title, Anchor::middle, palette_.ink,
                    "font-size=\"16\"");
  }
  std::string frame() const {
    return fmt::format(
        "<path d=\"M{:.1f} {:.1f}v{:.1f}h{:.1f}\" style=\"stroke:{}\" fill=\"none\"/>\n", left_,
        top_, height_, width_, palette_.soft);
  }
  std::string axes() const {
    const double letter = options_.paper ? kPaperLetter : options_.letter;
    std::string svg;
    for (const Tick& tick : y_.ticks) {
      svg += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" style=\"stroke:{}\" fill=\"none\"/>\n",
                         left_, y_at(tick.at), width_, palette_.grid);
      svg += svg_text(left_ - 7, y_at(tick.at) + 0.34 * 13, tick.label, Anchor::end, palette_.soft);
    }
    const double bottom = top_ + height_;
    svg += frame();
    double taken = -1e9;  // to where the last label reaches
    for (const Tick& tick : x_.ticks) {
      const double x = x_at(tick.at);
      if (x < left_ - 1 || x > left_ + width_ + 1) continue;
      svg += fmt::format("<path d=\"M{:.1f} {:.1f}v5\" style=\"stroke:{}\" fill=\"none\"/>\n", x,
                         bottom, palette_.soft);
      const double half = options_.text_width(letters_of(tick.label)) / 2;
      if (x - half < taken) continue;
      taken = x + half + 4;
      const bool at_edge = x + half > options_.width;
      svg += svg_text(at_edge ? options_.width - 1.0 : x, bottom + 7 + 0.85 * letter, tick.label,
                      at_edge ? Anchor::end : Anchor::middle, palette_.soft);
    }
    svg += svg_text(left_ + width_ / 2, bottom + 8 + 2.1 * letter, chart_.x_label, Anchor::middle,
                    palette_.ink);
    svg += svg_text(4, top_ - 0.55 * letter, chart_.y_label, Anchor::start, palette_.ink);
    return svg;
  }

  // --- Curves. ---
  std::string style(const Curve& curve, double width, double opacity) const {
    const char* dash = dash_of(curve.color);
    return fmt::format(
        "fill=\"none\" stroke-width=\"{}\" stroke-linejoin=\"round\" "
        "vector-effect=\"non-scaling-stroke\"{}{} style=\"stroke:{}\"",
        width, *dash ? fmt::format(" stroke-dasharray=\"{}\"", dash) : std::string(),
        opacity < 1 ? fmt::format(" stroke-opacity=\"{}\"", opacity) : std::string(),
        color_of(curve));
  }
  const std::string& color_of(const Curve& curve) const {
    return palette_.curves[curve.color % palette_.curves.size()];
  }

  // Where there are too many points for the picture, the least and greatest of those that fall
  // together, so that a spike stays.
  std::vector<Point> thinned(const std::vector<double>& x, const std::vector<double>& y) const {
    std::vector<Point> points;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (drawable(x[i], y[i])) points.push_back({x_at(x[i]), y_at(y[i])});
    }
    if (points.size() <= kMostPoints) return points;
    const std::size_t together = 2 * ((points.size() + kMostPoints - 1) / kMostPoints);
    std::vector<Point> few;
    for (std::size_t begin = 0; begin < points.size(); begin += together) {
      const auto from = points.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto to =
          points.begin() + static_cast<std::ptrdiff_t>(std::min(begin + together, points.size()));
      auto [low, high] =
          std::minmax_element(from, to, [](const Point& a, const Point& b) { return a.y < b.y; });
      if (high < low) std::swap(low, high);
      few.push_back(*low);
      if (low != high) few.push_back(*high);
    }
    if (few.back().x != points.back().x) few.push_back(points.back());
    return few;
  }
  static std::string path(const std::vector<Point>& points) {
    std::string d;
    for (const Point& p : points)
      d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", p.x, p.y);
    return d;
  }
  std::string line(const std::vector<double>& x, const std::vector<double>& y, const Curve& curve,
                   double width, double opacity) const {
    const std::vector<Point> points = thinned(x, y);
    if (points.size() < 2) return "";
    return fmt::format("<path d=\"{}\" {}/>\n", path(points), style(curve, width, opacity));
  }
  std::string drawn(const Curve& curve) const {
    std::string svg = line(curve.x, curve.y, curve, 2, 1);
    if (curve.points || curve.x.size() == 1) svg += marks(curve);
    return svg;
  }
  // A mark at each point, of a shape that goes with the colour, and a bar over what the seeds span.
  std::string marks(const Curve& curve) const {
    std::string svg;
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (!drawable(curve.x[i], curve.y[i])) continue;
      const double x = x_at(curve.x[i]), y = y_at(curve.y[i]);
      if (curve.points && !curve.low.empty() && curve.high[i] > curve.low[i]) {
        const double low = chart_.log_y && curve.low[i] <= 0 ? top_ + height_ : y_at(curve.low[i]);
        const double high = y_at(curve.high[i]);
        svg += fmt::format(
            "<path d=\"M{0:.1f} {1:.1f}h8m-4 0V{2:.1f}m-4 0h8\" fill=\"none\" style=\"stroke:{3}\" "
            "stroke-width=\"1.5\"/>\n",
            x - 4, high, low, color_of(curve));
      }
      constexpr const char* kShapes[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
                                         "m-3.6 -3.6h7.2v7.2h-7.2z", "m0 -5l4.6 8h-9.2z",
                                         "m0 -5l5 5l-5 5l-5 -5z"};
      svg += fmt::format("<path d=\"M{:.1f} {:.1f}{}\" style=\"fill:{}\"/>\n", x, y,
                         kShapes[curve.color % std::size(kShapes)], color_of(curve));
    }
    return svg;
  }
  std::string band(const Curve& curve) const {
    if (curve.points || curve.low.size() != curve.y.size() || curve.y.size() < 2) return "";
    std::vector<double> low = curve.low;
    if (chart_.log_y) {
      for (double& y : low) y = y > 0 ? y : y_.low;
    }
    std::vector<Point> edge = thinned(curve.x, curve.high), back = thinned(curve.x, low);
    edge.insert(edge.end(), back.rbegin(), back.rend());
    if (edge.size() < 4) return "";
    return fmt::format("<path d=\"{}z\" fill-opacity=\"0.18\" style=\"fill:{}\"/>\n", path(edge),
                       color_of(curve));
  }

  // --- Levels. ---
  std::string level_line(const Level& level) const {
    if (!drawable(1, level.y)) return "";
    return fmt::format(
        "<path d=\"M{:.1f} {:.1f}h{:.1f}\" fill=\"none\" stroke-dasharray=\"8 5\" "
        "style=\"stroke:{}\"/>\n",
        left_, y_at(level.y), width_, palette_.soft);
  }
  // Above its line, or below where another level stands closely above. At the right end, but at the
  // left one in the lower part of the field, where curves come down to it at the right.
  std::string level_labels() const {
    const double letter = options_.paper ? kPaperLetter : options_.letter;
    std::string svg;
    for (const Level& level : chart_.levels) {
      if (!drawable(1, level.y)) continue;
      const double y = y_at(level.y);
      const bool crowded =
          std::any_of(chart_.levels.begin(), chart_.levels.end(), [&](const Level& other) {
            return other.y > level.y && drawable(1, other.y) && y - y_at(other.y) < 1.3 * letter;
          });
      const bool low = top_ + height_ - y < kLow * height_;
      svg += svg_text(low ? left_ + 4 : left_ + width_ - 2,
                      crowded ? y + 1.0 * letter : y - 0.35 * letter,
                      fmt::format("{} = {}", level.label, study::shown_number(level.y)),
                      low ? Anchor::start : Anchor::end, palette_.soft, halo(palette_, 3));
    }
    return svg;
  }

  // --- On paper: the labels of the curves below the field, two a row. ---
  std::size_t key_rows() const { return (chart_.curves.size() + 1) / 2; }
  std::string key() const {
    if (!options_.paper) return "";
    std::string svg;
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) {
      const Curve& curve = chart_.curves[i];
      const double x = left_ + (i % 2 == 0 ? 0 : width_ / 2);
      const double y = options_.height - 22.0 * static_cast<double>(key_rows() - i / 2) + 8;
      svg += fmt::format("<path d=\"M{:.1f} {:.1f}h26\" {}/>\n", x, y - 4, style(curve, 2, 1));
      svg += svg_text(x + 34, y, curve.label, Anchor::start, palette_.ink);
    }
    return svg;
  }

  std::string description() const {
    std::string text;
    std::size_t described = 0;
    for (const Curve& curve : chart_.curves) {
      if (curve.x.empty() || ++described > kDescribed) continue;
      text += fmt::format("{}{}from {} at {:g} to {} at {:g}. ", curve.label,
                          curve.label.empty() ? "" : ": ", short_number(curve.y.front()),
                          curve.x.front(), short_number(curve.y.back()), curve.x.back());
    }
    if (described > kDescribed) text += fmt::format("And {} more.", described - kDescribed);
    return text;
  }

  const Chart& chart_;
  const SvgOptions& options_;
  const Palette& palette_;
  Axis x_, y_;
  double left_ = 0, top_ = 0, width_ = 0, height_ = 0;
  double inset_ = 0;  // of the points from the field's edges
};

}  // namespace

std::string draw_svg(const Chart& chart, const SvgOptions& options) {
  if (chart.empty()) return "";
  return SvgPlotter(chart, options).draw();
}

}  // namespace norma::report
