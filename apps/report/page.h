// The parts of a report's page. One file, nothing outside it; light, dark and on paper.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace norma::report {

// Text as HTML shows it.
[[nodiscard]] std::string escaped(std::string_view text);

struct Cell {
  std::string html;
  bool number = false;
};

// A table; `head` is plain text. The first cell of a row is its heading.
[[nodiscard]] std::string table(const std::vector<std::string>& head,
                                const std::vector<std::vector<Cell>>& rows);

// A picture with its heading, a legend of (colour, text), and the SVG itself.
struct Key {
  std::size_t color;
  std::string text;
};
[[nodiscard]] std::string figure(std::string_view heading, std::string_view note,
                                 const std::vector<Key>& keys, const std::string& svg);

// A dot in the colour of a curve.
[[nodiscard]] std::string swatch(std::size_t color);

// The whole page around `body`.
[[nodiscard]] std::string page(std::string_view title, const std::string& body);

}  // namespace norma::report
