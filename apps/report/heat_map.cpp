#include "apps/report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/report/axis.h"
#include "apps/report/page.h"

namespace norma::report {
namespace {

constexpr double kLightness = 0.42;  // of a ground, from which ink on it is black
constexpr std::size_t kKeySteps = 5;

struct Color {
  double red = 0, green = 0, blue = 0;  // 0 to 255
};

// Five colours of the viridis scale, from dark to light: even in lightness, and told apart by
// people with any colour vision. The cells cover the page's ground, so it serves light and dark.
constexpr std::array<Color, 5> kScale = {
    {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};

Color color_at(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kScale.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(at), kScale.size() - 2);
  const double t = at - static_cast<double>(i);
  const Color &a = kScale[i], &b = kScale[i + 1];
  return {a.red + t * (b.red - a.red), a.green + t * (b.green - a.green),
          a.blue + t * (b.blue - a.blue)};
}

std::string hex(const Color& c) {
  const auto byte = [](double x) { return static_cast<int>(std::lround(x)); };
  return fmt::format("#{:02x}{:02x}{:02x}", byte(c.red), byte(c.green), byte(c.blue));
}

// Black or white, whichever is seen better on the ground: by its relative luminance (WCAG 2).
const char* ink_on(const Color& c) {
  const auto linear = [](double x) { return std::pow(x / 255, 2.2); };
  const double luminance =
      0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
  return luminance > kLightness * kLightness ? "#000000" : "#ffffff";
}

bool all_failed(const HeatCell& cell) { return cell.runs > 0 && cell.failed == cell.runs; }

// Lines from the lower left to the upper right, cut at the edges of a box.
std::string hatching(double x, double y, double width, double height, const std::string& color) {
  constexpr double kStep = 9;
  std::string d;
  for (double k = kStep; k < width + height; k += kStep) {
    // From (x + k, y) to (x, y + k).
    const double x0 = x + std::min(k, width), y0 = y + std::max(0.0, k - width);
    const double x1 = x + std::max(0.0, k - height), y1 = y + std::min(k, height);
    d += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", x0, y0, x1, y1);
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke-opacity=\"0.4\" style=\"stroke:{}\"/>\n",
                     d, color);
}

std::string failed_ground(double x, double y, double width, double height, const Palette& palette) {
  return fmt::format(
             "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
             "style=\"fill:{};stroke:{}\"/>\n",
             x, y, width, height, palette.ground, palette.grid) +
         hatching(x, y, width, height, palette.soft);
}

class Painter {
 public:
  Painter(const HeatMap& map, const HeatScale& scale, SvgOptions options)
      : map_(map), scale_(scale), options_(std::move(options)), palette_(options_.palette()) {
    std::size_t longest = 1;
    for (const std::string& name : map.y) longest = std::max(longest, letters_of(name));
    if (options_.bare) {
      cell_width_ = options_.width / static_cast<double>(map.x.size());
      cell_height_ = options_.height / static_cast<double>(map.y.size());
      return;
    }
    left_ = std::min(10 + options_.text_width(longest), 0.4 * options_.width);
    top_ = 1.7 * options_.letter;
    cell_width_ = (options_.width - left_ - 4) / static_cast<double>(map.x.size());
    cell_height_ = std::clamp(0.62 * cell_width_, 2.0 * options_.letter, 3.0 * options_.letter);
    bottom_ = top_ + cell_height_ * static_cast<double>(map.y.size());
    options_.height = static_cast<int>(bottom_ + 3.1 * options_.letter);
  }

  std::string draw() const {
    if (options_.bare) {
      std::string cells;
      for (std::size_t row = 0; row < map_.y.size(); ++row) {
        for (std::size_t column = 0; column < map_.x.size(); ++column) {
          const HeatCell& cell = map_.cells[row * map_.x.size() + column];
          if (cell.present) cells += ground(cell, row, column);
        }
      }
      return cells;
    }
    std::string svg =
        svg_text(4, top_ - 0.6 * options_.letter, map_.y_label, Anchor::start, palette_.ink);
    for (std::size_t row = 0; row < map_.y.size(); ++row) {
      svg += svg_text(left_ - 7, middle_y(row), map_.y[row], Anchor::end, palette_.soft);
    }
    for (std::size_t column = 0; column < map_.x.size(); ++column) {
      svg += svg_text(middle_x(column), bottom_ + 1.1 * options_.letter, map_.x[column],
                      Anchor::middle, palette_.soft);
    }
    svg += svg_text((left_ + options_.width) / 2, bottom_ + 2.4 * options_.letter, map_.x_label,
                    Anchor::middle, palette_.ink);
    std::string description;
    for (std::size_t row = 0; row < map_.y.size(); ++row) {
      for (std::size_t column = 0; column < map_.x.size(); ++column) {
        const HeatCell& cell = map_.cells[row * map_.x.size() + column];
        if (!cell.present) continue;
        svg += drawn(cell, row, column);
        description += fmt::format("{}, {}: {}{}. ", map_.y[row], map_.x[column],
                                   short_number(cell.value), cell.failed > 0 ? ", failed" : "");
      }
    }
    return svg_element(options_, map_.title, description, svg);
  }

 private:
  double middle_x(std::size_t column) const {
    return left_ + cell_width_ * (static_cast<double>(column) + 0.5);
  }
  double middle_y(std::size_t row) const {
    return top_ + cell_height_ * (static_cast<double>(row) + 0.5) + 4.5;
  }

  // The colour, or hatching where there is none.
  std::string ground(const HeatCell& cell, std::size_t row, std::size_t column) const {
    const double x = left_ + cell_width_ * static_cast<double>(column) + 1;
    const double y = top_ + cell_height_ * static_cast<double>(row) + 1;
    const double width = cell_width_ - 2, height = cell_height_ - 2;
    if (all_failed(cell)) return failed_ground(x, y, width, height, palette_);
    return fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" style=\"fill:{}\"/>\n",
        x, y, width, height,
        colored(cell) ? hex(color_at(scale_.place(cell.value))) : palette_.ground);
  }
  static bool colored(const HeatCell& cell) {
    return !all_failed(cell) && std::isfinite(cell.value);
  }

  std::string drawn(const HeatCell& cell, std::size_t row, std::size_t column) const {
    std::string svg = "<g>";
    if (!cell.hint.empty()) svg += fmt::format("<title>{}</title>", escaped(cell.hint));
    std::string text = short_number(cell.value);
    if (cell.failed > 0) {
      // How many of several.
      text = !all_failed(cell)           ? fmt::format("{} \u00d7{}", text, cell.failed)
             : std::isfinite(cell.value) ? "\u00d7 " + text
                                         : "\u00d7";
    }
    svg += ground(cell, row, column);
    svg += colored(cell) ? svg_text(middle_x(column), middle_y(row), text, Anchor::middle,
                                    ink_on(color_at(scale_.place(cell.value))))
                         : svg_text(middle_x(column), middle_y(row), text, Anchor::middle,
                                    palette_.ink, halo(palette_, 4));
    return svg + "</g>\n";
  }

  const HeatMap& map_;
  const HeatScale& scale_;
  SvgOptions options_;
  const Palette& palette_;
  double left_ = 0, top_ = 0, bottom_ = 0, cell_width_ = 0, cell_height_ = 0;
};

}  // namespace

bool HeatMap::empty() const {
  return std::none_of(cells.begin(), cells.end(), [](const HeatCell& c) { return c.present; });
}

double HeatScale::place(double value) const {
  return low < high ? share_of_range(value, low, high, log) : 0.5;
}

HeatScale scale_of(const std::vector<HeatMap>& maps, int log) {
  HeatScale scale{INFINITY, -INFINITY, false};
  for (const HeatMap& map : maps) {
    for (const HeatCell& cell : map.cells) {
      if (!cell.present || all_failed(cell) || !std::isfinite(cell.value)) continue;
      scale.low = std::min(scale.low, cell.value);
      scale.high = std::max(scale.high, cell.value);
    }
  }
  if (!(scale.low <= scale.high)) return {};
  scale.log = scale.low > 0 && (log == 1 || (log == -1 && scale.high >= kLogFrom * scale.low));
  return scale;
}

std::string draw_heat_map(const HeatMap& map, const HeatScale& scale, const SvgOptions& options) {
  if (map.empty()) return "";
  return Painter(map, scale, options).draw();
}

std::string draw_heat_key(const HeatScale& scale, std::string_view label) {
  constexpr double kBox = 62, kHeight = 24;
  const Palette& palette = page_palette();
  std::string boxes;
  for (std::size_t i = 0; i < kKeySteps; ++i) {
    const double share = static_cast<double>(i) / (kKeySteps - 1);
    const double value = scale.log ? scale.low * std::pow(scale.high / scale.low, share)
                                   : scale.low + share * (scale.high - scale.low);
    const Color ground = color_at(scale.place(value));
    boxes += fmt::format("<rect x=\"{}\" y=\"0\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
                         kBox * static_cast<double>(i), kBox, kHeight, hex(ground));
    boxes += svg_text(kBox * (static_cast<double>(i) + 0.5), 17, short_number(value),
                      Anchor::middle, ink_on(ground));
    if (!(scale.low < scale.high)) break;
  }
  const double x = kBox * kKeySteps + 14;
  boxes += failed_ground(x, 0.5, kBox, kHeight - 1, palette);
  boxes += svg_text(x + kBox / 2, 17, "\u00d7", Anchor::middle, palette.ink, halo(palette, 4));
  SvgOptions options;
  options.width = static_cast<int>(x + kBox);
  options.height = static_cast<int>(kHeight);
  options.size = "heat-key";
  return svg_element(options, fmt::format("Colours of {}", label), "", boxes);
}

}  // namespace norma::report
