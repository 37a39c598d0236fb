#include "apps/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "apps/report/page.h"

namespace norma::report {

const Palette& page_palette() {
  static const Palette palette{"var(--ink)",
                               "var(--soft)",
                               "var(--grid)",
                               "var(--card)",
                               {"var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)",
                                "var(--c5)", "var(--c6)", "var(--c7)"}};
  return palette;
}

const Palette& paper_palette() {
  // Okabe and Ito's colours, told apart by people with any colour vision; black and yellow left
  // out.
  static const Palette palette{
      "#333333",
      "#555555",
      "#e4e4e4",
      "#ffffff",
      {"#0072b2", "#d55e00", "#009e73", "#aa4499", "#e69f00", "#56b4e9", "#666666", "#882255"}};
  return palette;
}

const char* dash_of(std::size_t color) {
  constexpr const char* kDashes[] = {"", "7 4", "2 3", "9 3 2 3"};
  return kDashes[color / page_palette().curves.size() % std::size(kDashes)];
}

SvgOptions small_svg() {
  SvgOptions options;
  options.width = 440;
  options.height = 270;
  options.size = "small";
  options.letter = 15;
  options.x_ticks = 4;
  options.y_ticks = 4;
  return options;
}

std::size_t letters_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string svg_text(double x, double y, std::string_view text, Anchor anchor,
                     const std::string& color, std::string_view extra) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" style=\"fill:{}\"{}{}>{}</text>\n", x, y,
      kAnchors[static_cast<int>(anchor)], color, extra.empty() ? "" : " ", extra, escaped(text));
}

std::string halo(const Palette& palette, int width) {
  return fmt::format("paint-order=\"stroke\" stroke-width=\"{}\" class=\"halo\" stroke=\"{}\"",
                     width, palette.ground);
}

std::string svg_element(const SvgOptions& options, std::string_view title,
                        std::string_view description, const std::string& content) {
  // aria-labelledby would need a name of its own for each element of a page; the title alone is
  // read too.
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"13\"{}>\n<title>{}</title>\n",
      options.size, options.width, options.height,
      options.paper ? fmt::format(" width=\"{}\" height=\"{}\"", options.width, options.height)
                    : std::string(),
      escaped(title));
  if (!description.empty()) svg += fmt::format("<desc>{}</desc>\n", escaped(description));
  if (options.paper) {
    svg += fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", options.width,
                       options.height, options.palette().ground);
  }
  return svg + content + "</svg>\n";
}

}  // namespace norma::report
