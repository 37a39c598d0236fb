#include "apps/report/page.h"

#include <fmt/format.h>

#include "apps/report/svg.h"

namespace norma::report {
namespace {

// The colours of the curves are Okabe and Ito's, made lighter on a dark ground.
constexpr const char* kStyle = R"css(
:root { color-scheme: light dark;
  --paper: #ffffff; --card: #f7f8fa; --ink: #1d2430; --soft: #5b6575; --line: #dfe3e9; --grid: #e6e9ee;
  --good: #1a7f45; --good-ground: #e2f4e8; --bad: #b3261e; --bad-ground: #fce8e6; --none: #6b5900; --none-ground: #fdf3d0;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #aa4499; --c4: #c98a00; --c5: #2f9fd8; --c6: #666666; --c7: #882255; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14181f; --card: #1c222b; --ink: #e4e8ee; --soft: #9aa5b5; --line: #323b48; --grid: #2a323d;
  --good: #6fd398; --good-ground: #17392a; --bad: #ff9a90; --bad-ground: #4a201d; --none: #e8cf73; --none-ground: #40381a;
  --c0: #4fb0ee; --c1: #ff8a3d; --c2: #2fcf9f; --c3: #e083d0; --c4: #f2bd3c; --c5: #8fd3f7; --c6: #a8b0ba; --c7: #d9709c; } }
@media print { :root { color-scheme: light;
  --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --grid: #ddd;
  --good: #0b5c2d; --good-ground: #fff; --bad: #a00; --bad-ground: #fff; --none: #554400; --none-ground: #fff;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #aa4499; --c4: #c98a00; --c5: #2f9fd8; --c6: #666666; --c7: #882255; }
  figure, .claim, .card, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } .pair, .panels { grid-template-columns: 1fr 1fr !important; } .wide { overflow: visible; } a { color: inherit; } main { max-width: none; padding: 0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .6rem; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .8rem; }
p { margin: .4rem 0; max-width: 46rem; }
.soft { color: var(--soft); font-size: .9rem; }
.chip { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; font-size: .82rem; font-weight: 600; white-space: nowrap; }
.good { color: var(--good); background: var(--good-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
.none { color: var(--none); background: var(--none-ground); }
.claim { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; margin: .7rem 0; }
.claim p { max-width: none; }
.claim .sentence { font-weight: 600; margin: 0 0 .3rem; display: flex; gap: .7rem; align-items: baseline; }
.sentence .chip { flex: none; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .3rem 0 0; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; }
code { font: .86em/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
figure { margin: 1.4rem 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .9rem 1rem .6rem; }
figcaption { font-weight: 600; }
figcaption .soft { font-weight: 400; display: block; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .5rem 0 .3rem; padding: 0; list-style: none; font-size: .9rem; }
.swatch { display: inline-block; width: 1.75em; height: .625em; margin-right: .45em; fill: none; stroke-width: 3; }
svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.plot > svg { display: block; width: 100%; height: auto; }
.plot text, .heat-scale text { font-family: inherit; }
.halo { stroke: var(--card); }
.large text { font-size: 12px; } .small text { font-size: 12.5px; } .heat-key text { font-size: 12px; }
.alone .small { max-width: 34rem; }
.heat-scale svg { display: block; width: 100%; max-width: 25rem; height: auto; margin: .6rem 0; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: .4rem 1.2rem; }
.panel { margin: .5rem 0 .1rem; font-weight: 600; font-size: .9rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0 1.2rem; }
.wide { overflow-x: auto; } .wide code { overflow-wrap: normal; }
table { border-collapse: collapse; font-size: .92rem; min-width: 50%; }
th, td { text-align: left; padding: .38rem .9rem .38rem 0; border-bottom: 1px solid var(--line); vertical-align: baseline; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 500; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
a { color: var(--c0); }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
.cards { list-style: none; padding: 0; margin: 1.2rem 0; display: grid; gap: .9rem; grid-template-columns: repeat(auto-fill, minmax(min(27rem, 100%), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .9rem 1rem; display: grid; grid-template-columns: 9.5rem minmax(0, 1fr); gap: 1rem; align-items: start; }
.card h3 { margin: 0 0 .2rem; line-height: 1.3; } .card p { font-size: .92rem; margin: .25rem 0; overflow-wrap: anywhere; }
.picture svg { display: block; width: 100%; height: auto; }
.card .chip, .verdicts .chip { margin: .1rem 0; white-space: normal; }
.verdicts { width: 100%; table-layout: fixed; margin-bottom: 1rem; } .verdicts th, .verdicts td { vertical-align: top; overflow-wrap: anywhere; }
.verdicts th:nth-child(1) { width: 8.5rem; } .verdicts thead th:nth-child(2) { width: 31%; } .verdicts thead th:nth-child(4) { width: 22%; }
footer { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: .8rem; }
@media (max-width: 520px) { main { padding: 1.2rem .8rem 2rem; } figure { padding: .6rem .5rem; } .pair { grid-template-columns: 1fr; } .claim .sentence { flex-wrap: wrap; } .large text { font-size: 22px; } .small text { font-size: 15px; } dl { grid-template-columns: 1fr; } dd { margin-bottom: .3rem; }
  .card { grid-template-columns: 5.5rem minmax(0, 1fr); gap: .8rem; padding: .8rem; }
  .verdicts, .verdicts tbody, .verdicts tr, .verdicts td, .verdicts th { display: block; width: auto !important; border: 0; padding: .1rem 0; } .verdicts thead { display: none; }
  .verdicts tr { border-bottom: 1px solid var(--line); padding: .5rem 0; } .verdicts td[data-head]:not(:empty)::before { content: attr(data-head) ": "; color: var(--soft); } }
)css";

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<Cell>>& rows) {
  const auto kind = [&](std::size_t column) {
    return !rows.empty() && column < rows[0].size() && rows[0][column].number ? " class=\"number\""
                                                                              : "";
  };
  std::string html = "<div class=\"wide\"><table>\n<thead><tr>";
  for (std::size_t i = 0; i < head.size(); ++i) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>", kind(i), escaped(head[i]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", row[i].html)
                     : fmt::format("<td{}>{}</td>", row[i].number ? " class=\"number\"" : "",
                                   row[i].html);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string swatch(std::size_t color) {
  const char* dash = dash_of(color);
  return fmt::format(
      "<svg class=\"swatch\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path d=\"M1 5h26\"{} "
      "style=\"stroke:var(--c{})\"/></svg>",
      *dash ? fmt::format(" stroke-dasharray=\"{}\"", dash) : std::string(), color % 8);
}

std::string key_list(const std::vector<Key>& keys) {
  if (keys.empty()) return "";
  std::string html = "<ul class=\"key\">";
  for (const Key& key : keys)
    html += fmt::format("<li>{}{}</li>", swatch(key.color), escaped(key.text));
  return html + "</ul>\n";
}

std::string html_figure(std::string_view heading, std::string_view note, const std::string& key,
                        const std::vector<Panel>& panels) {
  std::string html = fmt::format("<figure><figcaption>{}", escaped(heading));
  if (!note.empty()) html += fmt::format("<span class=\"soft\">{}</span>", escaped(note));
  html += "</figcaption>\n";
  std::string pictures;
  for (const Panel& panel : panels) {
    if (panel.svg.empty()) continue;
    pictures += "<div class=\"plot\">";
    if (!panel.title.empty())
      pictures += fmt::format("<p class=\"panel\">{}</p>\n", escaped(panel.title));
    pictures += panel.svg + "</div>\n";
  }
  if (pictures.empty()) {
    return html + "<p class=\"soft\">No run has left values for this picture.</p></figure>\n";
  }
  return html + key + fmt::format("<div class=\"{}\">\n", panels.size() > 1 ? "panels" : "alone") +
         pictures + "</div></figure>\n";
}

std::string page(std::string_view title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n</head>\n"
      "<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      escaped(title), kStyle, body);
}

}  // namespace norma::report
