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

// A legend of (colour, text); empty without entries.
struct Key {
  std::size_t color;
  std::string text;
};
[[nodiscard]] std::string key_list(const std::vector<Key>& keys);

// A figure: heading, note, key (as HTML), and one picture or several beside each other, each with
// its own title. Where no picture has anything in it, a sentence says so.
struct Panel {
  std::string title;
  std::string svg;
};
[[nodiscard]] std::string html_figure(std::string_view heading, std::string_view note,
                                      const std::string& key, const std::vector<Panel>& panels);

// A piece of line as a curve has it: its colour and dashes.
[[nodiscard]] std::string swatch(std::size_t color);

// The whole page around `body`.
[[nodiscard]] std::string page(std::string_view title, const std::string& body);

}  // namespace norma::report
