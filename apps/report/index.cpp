#include "apps/report/index.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/report/figures.h"
#include "apps/report/page.h"
#include "apps/training/progress.h"
#include "core/file.h"

namespace norma::report {

using namespace config;

Fields ClaimOverview::fields() {
  return {field("text", &ClaimOverview::text, "The claim as a sentence."),
          field("verdict", &ClaimOverview::verdict, "held, did not hold, or no result."),
          field("expected", &ClaimOverview::expected, "Whether the study expects this verdict."),
          field("measured", &ClaimOverview::measured, "What it rests on, a line each."),
          field("published", &ClaimOverview::published, "The published numbers.")};
}

Fields Overview::fields() {
  return {field("title", &Overview::title, "Headline of the study."),
          field("doc", &Overview::doc, "What is done, and why."),
          field("claims", &Overview::claims, "Its claims."),
          field("runs", &Overview::runs, "How many runs it has."),
          field("seconds", &Overview::seconds, "Time that they took."),
          field("thumbnail", &Overview::thumbnail, "Its first figure, small, as SVG.")};
}

namespace {

namespace fs = std::filesystem;

std::string overview_path(const std::string& folder) { return folder + "/overview.json"; }

struct Entry {
  std::string name;  // of its folder
  std::optional<Overview> overview;
};

std::vector<Entry> entries_of(const std::string& out, const std::vector<std::string>& names) {
  std::vector<Entry> entries;
  for (const std::string& name : names) entries.push_back({name, read_overview(out + "/" + name)});
  std::vector<std::string> others;
  for (const auto& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    if (std::find(names.begin(), names.end(), name) == names.end() &&
        fs::exists(overview_path(entry.path().string())))
      others.push_back(name);
  }
  std::sort(others.begin(), others.end());
  for (const std::string& name : others) entries.push_back({name, read_overview(out + "/" + name)});
  return entries;
}

// A study's name as its link: of a path's signs, all but letters and digits are written as bytes.
std::string link_to(const std::string& name) {
  std::string link;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) || c == '-' || c == '_' || c == '.';
    link += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return link + "/report.html";
}

bool without_result(const ClaimOverview& claim) { return claim.verdict == "no result"; }

const char* kind_of(const ClaimOverview& claim) {
  if (without_result(claim)) return "none";
  return claim.expected ? "good" : "bad";
}

// "5 held", "1 did not hold, as expected", "1 not as expected", "1 without a result".
std::string chips(const std::vector<ClaimOverview>& claims) {
  const auto count = [&](auto fits) { return std::count_if(claims.begin(), claims.end(), fits); };
  std::string html;
  const auto chip = [&](const char* kind, std::ptrdiff_t n, const char* what) {
    if (n > 0) html += fmt::format("<span class=\"chip {}\">{} {}</span> ", kind, n, what);
  };
  const auto held = [](const ClaimOverview& c) { return c.verdict == "held"; };
  chip("good", count([&](const auto& c) { return c.expected && held(c); }), "held");
  chip("good", count([&](const auto& c) { return c.expected && !held(c); }),
       "did not hold, as expected");
  chip("bad", count([&](const auto& c) { return !c.expected && !without_result(c); }),
       "not as expected");
  chip("none", count(without_result), "without a result");
  return html;
}

// Up to the first full stop that ends a sentence.
std::string first_sentence(const std::string& text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if ((text[i] == '.' || text[i] == '?' || text[i] == '!') && text[i + 1] == ' ')
      return text.substr(0, i + 1);
  }
  return text;
}

std::string card(const Entry& entry) {
  if (!entry.overview) {
    return fmt::format(
        "<li class=\"card\"><div class=\"picture\"></div><div><h3>{}</h3><p class=\"soft\">Has not "
        "been run yet.</p></div></li>\n",
        escaped(entry.name));
  }
  const Overview& o = *entry.overview;
  return fmt::format(
      "<li class=\"card\"><a class=\"picture\" href=\"{0}\" tabindex=\"-1\" "
      "aria-hidden=\"true\">{1}</a>\n<div><h3><a href=\"{0}\">{2}</a></h3>\n<p>{3}</p>\n"
      "<p>{4}</p>\n<p class=\"soft\">{5}: {6} run{7}, {8} of computing</p></div></li>\n",
      link_to(entry.name), o.thumbnail, escaped(o.title), escaped(first_sentence(o.doc)),
      chips(o.claims), escaped(entry.name), o.runs, o.runs == 1 ? "" : "s",
      duration_text(o.seconds));
}

std::string claims_table(const Entry& entry) {
  const Overview& o = *entry.overview;
  std::string html =
      fmt::format("<h3><a href=\"{}\">{}</a></h3>\n", link_to(entry.name), escaped(o.title));
  html +=
      "<table class=\"verdicts\">\n<thead><tr><th scope=\"col\">Verdict</th><th "
      "scope=\"col\">Claim</th><th scope=\"col\">Measured</th><th "
      "scope=\"col\">Published</th></tr></thead>\n<tbody>\n";
  for (const ClaimOverview& claim : o.claims) {
    std::string measured;
    for (const std::string& line : claim.measured)
      measured += fmt::format("{}<code>{}</code>", measured.empty() ? "" : "<br>", escaped(line));
    const char* note = claim.expected          ? (claim.verdict == "held" ? "" : "expected")
                       : without_result(claim) ? ""
                                               : "not expected";
    html += fmt::format(
        "<tr><td><span class=\"chip {}\">{}</span>{}</td><th scope=\"row\">{}</th><td "
        "data-head=\"Measured\">{}</td><td data-head=\"Published\">{}</td></tr>\n",
        kind_of(claim), escaped(claim.verdict),
        *note ? fmt::format(" <span class=\"soft\">{}</span>", note) : std::string(),
        escaped(claim.text), measured, escaped(claim.published));
  }
  return html + "</tbody></table>\n";
}

}  // namespace

Overview overview_of(const Subject& subject) {
  Overview overview;
  overview.title = subject.title;
  overview.doc = subject.doc;
  for (const study::ClaimResult& result : subject.claims) {
    ClaimOverview claim{
        result.claim->text, result.verdict(), result.expected(), {}, result.claim->published};
    for (const study::Evidence& e : result.evidence)
      claim.measured.push_back(study::shown_evidence(e));
    overview.claims.push_back(std::move(claim));
  }
  const auto [runs, seconds] = work_of(subject);
  overview.runs = runs;
  overview.seconds = seconds;
  if (!subject.figures.empty()) overview.thumbnail = thumbnail_svg(subject.figures[0], subject);
  return overview;
}

void write_overview(const std::string& folder, const Overview& overview) {
  write_file(overview_path(folder), config::to_json(overview).dump(1) + "\n");
}

std::optional<Overview> read_overview(const std::string& folder) {
  if (!fs::exists(overview_path(folder))) return std::nullopt;
  return parse<Overview>(load_json(overview_path(folder)), {}, overview_path(folder));
}

std::string write_index(const std::string& out, const std::vector<std::string>& names) {
  const std::vector<Entry> entries = entries_of(out, names);
  std::vector<ClaimOverview> all;
  double seconds = 0;
  std::int64_t runs = 0;
  std::string cards, tables;
  for (const Entry& entry : entries) {
    cards += card(entry);
    if (!entry.overview) continue;
    all.insert(all.end(), entry.overview->claims.begin(), entry.overview->claims.end());
    seconds += entry.overview->seconds;
    runs += entry.overview->runs;
    if (!entry.overview->claims.empty()) tables += claims_table(entry);
  }
  const auto expected =
      std::count_if(all.begin(), all.end(), [](const auto& c) { return c.expected; });
  std::string body = fmt::format(
      "<h1>Studies</h1>\n<p>{} claims of {} studies; {} came out as expected.</p>\n<p>{}</p>\n"
      "<p class=\"soft\">{} runs, {} of computing.</p>\n",
      all.size(), entries.size(), expected, chips(all), runs, duration_text(seconds));
  body += "<ul class=\"cards\">\n" + cards + "</ul>\n";
  if (!tables.empty()) body += "<h2>All claims</h2>\n" + tables;
  body += fmt::format("<footer class=\"soft\">Written by norma {}.</footer>\n", NORMA_VERSION);
  const std::string path = out + "/index.html";
  write_file(path, page("Studies", body));
  return path;
}

std::string claim_lines(const std::string& out, const std::vector<std::string>& names) {
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::string text;
  for (const std::string& name : names) {
    const std::optional<Overview> overview = read_overview(out + "/" + name);
    if (!overview) continue;
    for (const ClaimOverview& claim : overview->claims) {
      const char* note = without_result(claim)     ? "  <- values are missing; see its report"
                         : !claim.expected         ? "  <- NOT the expected verdict"
                         : claim.verdict != "held" ? "  (as expected)"
                                                   : "";
      text += fmt::format("{:<12}  {:<{}}  {}{}\n", claim.verdict, name, width, claim.text, note);
    }
  }
  return text;
}

}  // namespace norma::report
