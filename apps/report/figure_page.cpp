// A drawing on a page, and as a small picture.
#include "apps/report/figures.h"
#include "apps/report/svg_plot.h"

namespace norma::report {
namespace {

constexpr std::size_t kManyColumns = 6;  // of a heat map that takes the whole width
constexpr std::size_t kMostSlots = 3;    // panels of a thumbnail
constexpr int kThumbnailWidth = 240, kThumbnailHeight = 150;

}  // namespace

std::string figure_html(const study::PlannedFigure& figure, const Subject& subject, bool small) {
  const Drawing drawing = drawing_of(figure, subject);
  std::vector<Panel> panels;
  for (std::size_t i = 0; i < drawing.panels.size(); ++i) {
    const bool alone = drawing.panels.size() == 1 && !small;
    if (i < drawing.charts.size()) {
      panels.push_back(
          {drawing.panels[i], draw_svg(drawing.charts[i], alone ? SvgOptions{} : small_svg())});
    } else {
      const bool wide = alone && drawing.maps[i].x.size() > kManyColumns;
      panels.push_back({drawing.panels[i], draw_heat_map(drawing.maps[i], drawing.scale,
                                                         wide ? SvgOptions{} : small_svg())});
    }
  }
  const std::string key =
      drawing.maps.empty()
          ? key_list(drawing.keys)
          : "<div class=\"heat-scale\">" + draw_heat_key(drawing.scale, drawing.value) + "</div>\n";
  return html_figure(drawing.title, drawing.note, key, panels);
}

std::string thumbnail_svg(const study::PlannedFigure& figure, const Subject& subject) {
  const Drawing drawing = drawing_of(figure, subject);
  const std::size_t slots = std::min(drawing.panels.size(), kMostSlots);
  SvgOptions slot;
  slot.bare = true;
  slot.width = kThumbnailWidth / static_cast<int>(slots) - 6;
  slot.height = kThumbnailHeight;
  std::string content;
  for (std::size_t i = 0; i < slots; ++i) {
    const std::string picture = drawing.maps.empty()
                                    ? draw_svg(drawing.charts[i], slot)
                                    : draw_heat_map(drawing.maps[i], drawing.scale, slot);
    if (picture.empty()) continue;
    content +=
        fmt::format("<svg x=\"{}\" y=\"0\" width=\"{}\" height=\"{}\">\n{}</svg>\n",
                    static_cast<int>(i) * (slot.width + 6) + 3, slot.width, slot.height, picture);
  }
  if (content.empty()) return "";
  SvgOptions whole;
  whole.width = kThumbnailWidth;
  whole.height = kThumbnailHeight;
  whole.size = "thumbnail";
  return svg_element(whole, drawing.title, "", content);
}

}  // namespace norma::report
