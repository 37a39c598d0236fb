// What the pictures share: their size, their colours, and text in them.
//
// Note [Pictures on a page]. A picture is an SVG element in a box of its own units, which the page
// stretches to its column. Colours and the size of letters come from the page's style sheet, so
// that they fit light, dark, paper and a narrow screen; there letters are larger in the picture's
// units, and its margins leave room for that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace norma::report {

// The colours of a picture, as CSS writes them: "#0072b2", or "var(--c0)".
struct Palette {
  std::string ink, soft, grid, ground;
  std::vector<std::string> curves;
};
// For a page: --ink, --soft, --grid, --card, --c0 to --c7.
[[nodiscard]] const Palette& page_palette();
// For a file of its own, on white.
[[nodiscard]] const Palette& paper_palette();

// Line styles come again with other dashes after the palette's colours: the value of
// stroke-dasharray; empty: none.
[[nodiscard]] const char* dash_of(std::size_t color);

struct SvgOptions {
  int width = 720, height = 380;
  const char* size = "large";  // class of the element: how large its letters are
  double letter = 22;          // their height on a narrow screen
  bool paper = false;          // a file of its own: title, key, fixed colours
  bool bare = false;           // the field alone, without words, and no element around it
  std::size_t x_ticks = 6, y_ticks = 5;

  [[nodiscard]] const Palette& palette() const { return paper ? paper_palette() : page_palette(); }
  // How wide a text of so many letters may become.
  [[nodiscard]] double text_width(std::size_t letters) const {
    return 0.58 * letter * static_cast<double>(letters);
  }
};
// For half a column.
[[nodiscard]] SvgOptions small_svg();

// Letters of UTF-8 text.
[[nodiscard]] std::size_t letters_of(std::string_view text);

enum class Anchor { start, middle, end };
// A <text> at x, y. `extra` are further attributes.
[[nodiscard]] std::string svg_text(double x, double y, std::string_view text, Anchor anchor,
                                   const std::string& color, std::string_view extra = {});

// What svg_text() takes as `extra` for text that stands on lines and patterns: a border in the
// colour of the ground, half of `width` on each side of a stroke.
[[nodiscard]] std::string halo(const Palette& palette, int width);

// The element around a picture, with what it says to who does not see it.
[[nodiscard]] std::string svg_element(const SvgOptions& options, std::string_view title,
                                      std::string_view description, const std::string& content);

}  // namespace norma::report
