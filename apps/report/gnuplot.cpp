#include "apps/report/gnuplot.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "apps/study/child_process.h"
#include "apps/study/results.h"
#include "core/error.h"
#include "core/file.h"

namespace norma::report {
namespace fs = std::filesystem;
namespace {

constexpr int kNotFound = 127;        // of env, where there is no gnuplot
constexpr double kLetterWidth = 6.4;  // points of a label's letter, at its size
constexpr std::size_t kLineColors = 8;

// gnuplot writes a colour into the SVG as rgb(r, g, b). These stand for the palette's entries, and
// are replaced by them.
constexpr int kInk = 1, kGrid = 2, kFirstCurve = 3;
std::string placeholder(int which) { return fmt::format("#01{:02x}f7", which); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string quoted(const std::string& text) {
  std::string clean = replaced(text, "'", "''");
  std::replace(clean.begin(), clean.end(), '\n', ' ');
  return "'" + clean + "'";
}

// A folder that goes with its content.
class WorkFolder {
 public:
  WorkFolder() : path_((fs::temp_directory_path() / "norma-plot-XXXXXX").string()) {
    require(mkdtemp(path_.data()) != nullptr, "{}: cannot be made; is the folder full?", path_);
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string data_block(std::size_t index, const Curve& curve, const Range& range) {
  std::string text = fmt::format("$curve{} << EOD\n", index);
  const bool band = curve.low.size() == curve.y.size();
  // What lies outside the field is cut at its edge: gnuplot does not cut bands.
  const auto cut = [&](double y) { return std::clamp(y, range.low, range.high); };
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    text +=
        fmt::format("{:.9g} {:.9g} {:.9g} {:.9g}\n", curve.x[i], curve.y[i],
                    cut(band ? curve.low[i] : curve.y[i]), cut(band ? curve.high[i] : curve.y[i]));
  }
  return text + "EOD\n";
}

// 1, 2, 5, 10, ... where the range is short, powers of ten where it is long: gnuplot alone would
// label powers only, and so nothing in a range without one.
std::string log_tics(const Range& range) {
  const double low = std::floor(std::log10(range.low)), high = std::ceil(std::log10(range.high));
  const bool fine = std::log10(range.high / range.low) < 3;
  std::string tics;
  for (double power = low; power <= high; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double y = factor * std::pow(10, power);
      if (y < range.low || y > range.high || (factor > 1 && !fine)) continue;
      tics += fmt::format("{}'{:g}' {:.9g}", tics.empty() ? "" : ", ", y, y);
    }
  }
  return fmt::format("set ytics ({})\n", tics);
}

std::string script(const Chart& chart, const SvgOptions& options, const std::string& output) {
  const Range range = y_range(chart);
  std::string s;
  s += fmt::format(
      "set terminal svg size {},{} dynamic noenhanced font 'sans-serif,13' linewidth 1 name "
      "'chart'{}\n",
      options.width, options.height, options.background ? " background rgb 'white'" : "");
  s += fmt::format("set output {}\n", quoted(output));
  s += "set encoding utf8\nset samples 2\n";
  const std::string ink = fmt::format("rgb '{}'", placeholder(kInk));
  const std::string grid = fmt::format("rgb '{}'", placeholder(kGrid));
  s += fmt::format("set border 3 linecolor {} linewidth 1\n", ink);
  s += fmt::format("set tics nomirror out scale 0.6 textcolor {}\n", ink);
  s += fmt::format("set grid ytics linetype 1 linecolor {} linewidth 1\n", grid);
  s += fmt::format("set xlabel {} textcolor {}\nset ylabel {} textcolor {}\n",
                   quoted(chart.x_label), ink, quoted(chart.y_label), ink);
  if (options.title)
    s += fmt::format("set title {} textcolor {} font ',16'\n", quoted(chart.title), ink);
  s += options.key ? fmt::format(
                         "set bmargin at screen 0.24\nset key at screen 0.5, screen 0.02 center "
                         "bottom horizontal samplen 2.5 textcolor {}\n",
                         ink)
                   : std::string("set key off\n");
  if (chart.log_y) s += "set logscale y\n" + log_tics(range);
  s += fmt::format("set yrange [{:.9g}:{:.9g}]\n", range.low, range.high);
  s += "set xrange [*:*] noextend\n";
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const Curve& curve : chart.curves) {
    if (curve.x.empty()) continue;
    first = std::min(first, curve.x.front());
    last = std::max(last, curve.x.back());
  }
  std::size_t longest = 0;
  for (std::size_t i = 0; i < chart.levels.size(); ++i) {
    const Level& level = chart.levels[i];
    const std::string label = fmt::format("{} = {}", level.label, study::shown_number(level.y));
    longest = std::max(longest, label.size());
    s += fmt::format("set label {} {} at graph 1.01, first {:.9g} left textcolor {} font ',12'\n",
                     i + 1, quoted(label), level.y, ink);
    s += fmt::format("$level{} << EOD\n{:.9g} {:.9g}\n{:.9g} {:.9g}\nEOD\n", i, first, level.y,
                     last, level.y);
  }
  const double right = 14 + kLetterWidth * static_cast<double>(longest);
  s += fmt::format("set rmargin at screen {:.4f}\n", 1 - right / options.width);
  for (std::size_t i = 0; i < chart.curves.size(); ++i) s += data_block(i, chart.curves[i], range);
  std::string plots;
  const auto add = [&](const std::string& plot) {
    plots += (plots.empty() ? "plot " : ", \\\n  ") + plot;
  };
  const auto color = [](const Curve& c) {
    return fmt::format("rgb '{}'",
                       placeholder(kFirstCurve + static_cast<int>(c.color % kLineColors)));
  };
  for (std::size_t i = 0; i < chart.levels.size(); ++i) {
    add(fmt::format("$level{} using 1:2 with lines dashtype (8,5) linewidth 1 linecolor {} notitle",
                    i, ink));
  }
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    if (curve.x.empty() || curve.low.empty()) continue;
    add(
        fmt::format("$curve{} using 1:3:4 with filledcurves fillstyle transparent solid 0.2 "
                    "noborder linecolor {} notitle",
                    i, color(curve)));
  }
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    if (curve.x.empty()) continue;
    // From the ninth on the colours come again, dashed.
    add(fmt::format("$curve{} using 1:2 with {} linecolor {} linewidth 2 dashtype {} title {}", i,
                    curve.x.size() == 1 ? "points pointtype 7 pointsize 0.6" : "lines",
                    color(curve), 1 + curve.color / kLineColors % 4, quoted(curve.label)));
  }
  return s + plots + "\n";
}

// The drawing alone, in the palette's colours.
std::string finished(const std::string& svg, const SvgOptions& options) {
  std::string text = svg;
  const auto put = [&](int which, const std::string& color) {
    for (const char* form : {"rgb({:3}, {:3}, {:3})", "rgb({}, {}, {})", "rgb({},{},{})"}) {
      text = replaced(text, fmt::format(fmt::runtime(form), 1, which, 0xf7), color);
    }
    text = replaced(text, placeholder(which), color);
  };
  put(kInk, options.palette->ink);
  put(kGrid, options.palette->grid);
  for (std::size_t i = 0; i < options.palette->curves.size(); ++i) {
    put(kFirstCurve + static_cast<int>(i), options.palette->curves[i]);
  }
  return text;
}

}  // namespace

const Palette& page_palette() {
  static const Palette palette{"var(--ink)",
                               "var(--grid)",
                               {"var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)",
                                "var(--c5)", "var(--c6)", "var(--c7)"}};
  return palette;
}

const Palette& paper_palette() {
  // Okabe and Ito's colours, told apart by people with any colour vision; black and yellow left
  // out.
  static const Palette palette{
      "#333333",
      "#e4e4e4",
      {"#0072b2", "#d55e00", "#009e73", "#aa4499", "#e69f00", "#56b4e9", "#666666", "#882255"}};
  return palette;
}

std::string draw_svg(const Chart& chart, const SvgOptions& options) {
  if (chart.empty()) return "";
  const WorkFolder work;
  const std::string output = work.file("chart.svg"), log = work.file("log"),
                    plot = work.file("chart.gp");
  write_file(plot, script(chart, options, output));
  study::ChildProcess gnuplot({"/usr/bin/env", "gnuplot", plot}, {}, log);
  const int status = gnuplot.wait();
  require(status != kNotFound,
          "gnuplot is not installed, and draws the report's pictures: apt-get install gnuplot-nox; "
          "the runs are kept");
  require(status == 0 && fs::exists(output), "gnuplot could not draw \"{}\": {}", chart.title,
          read_file(log));
  return finished(read_file(output), options);
}

}  // namespace norma::report
