// The page of several studies.
#include "apps/report/index.h"

#include <filesystem>

#include "tests/apps/study/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma::report {
namespace {

using norma::test::contains;

Overview overview(const std::string& verdict, bool expected) {
  Overview o;
  o.title = "Title <of> a \"study\" & more";
  o.doc = "The first sentence. The second one.";
  o.claims = {{"A <claim>.", verdict, expected, {"final(\"a\") = 0.5"}, "0.4 & 0.6"}};
  o.runs = 3;
  o.seconds = 61;
  o.thumbnail = "<svg></svg>";
  return o;
}

TEST_CASE("the index has every study and every claim", "[report][index]") {
  const TemporaryFolder folder;
  for (const char* name : {"good", "bad", "failing one", "none", "other"})
    std::filesystem::create_directories(folder / name);
  write_overview(folder / "good", overview("held", true));
  write_overview(folder / "bad", overview("did not hold", false));
  write_overview(folder / "failing one", overview("did not hold", true));
  write_overview(folder / "none", overview("no result", false));
  write_overview(folder / "other", overview("held", true));  // of an earlier call
  const std::vector<std::string> names = {"good", "bad", "failing one", "none", "later"};
  const std::string html = read_file(write_index(folder.path(), names));
  CHECK(contains(html, "5 claims of 6 studies; 3 came out as expected."));
  CHECK(contains(html, "href=\"failing%20one/report.html\""));
  CHECK(contains(html, "href=\"other/report.html\""));
  CHECK(contains(html, "Title &lt;of&gt; a &quot;study&quot; &amp; more"));
  CHECK(contains(html, "A &lt;claim&gt;."));
  CHECK(contains(html, "0.4 &amp; 0.6"));
  CHECK(contains(html, "The first sentence.</p>"));
  CHECK_FALSE(contains(html, "The second one"));
  CHECK(contains(html, "1 did not hold, as expected"));
  CHECK(contains(html, "1 not as expected"));
  CHECK(contains(html, "1 without a result"));
  CHECK(contains(html, "later</h3><p class=\"soft\">Has not been run yet."));
  for (const char* outside : {"http:", "https:", "url(", "@import", "<script", "<link", "src="}) {
    INFO(outside);
    CHECK_FALSE(contains(html, outside));
  }
  const std::string lines = claim_lines(folder.path(), names);
  CHECK(contains(lines, "held          good         A <claim>.\n"));
  CHECK(contains(lines, "did not hold  bad          A <claim>.  <- NOT the expected verdict\n"));
  CHECK(contains(lines, "did not hold  failing one  A <claim>.  (as expected)\n"));
  CHECK(contains(lines,
                 "no result     none         A <claim>.  <- values are missing; see its report\n"));
  CHECK_FALSE(contains(lines, "other"));
}

TEST_CASE("an overview is what its study left", "[report][index]") {
  const TemporaryFolder folder;
  CHECK_FALSE(read_overview(folder.path()).has_value());
  const study::Plan plan = study::make_plan(study::test::small_study(R"json([
      {"text": "Less.", "expr": "final(\"one\") < final(\"two\")", "published": "1"}])json"));
  std::vector<study::RunRecord> runs(4, study::test::flat_run(0.5));
  runs[1] = runs[3] = study::test::flat_run(1.5);
  write_overview(folder.path(), overview_of(subject_of(study::judge(plan, runs))));
  const std::optional<Overview> kept = read_overview(folder.path());
  REQUIRE(kept.has_value());
  CHECK(kept->title == "A small study");
  CHECK(kept->runs == 4);
  CHECK(kept->seconds == 4);
  CHECK(kept->claims.at(0).expected);
  CHECK(kept->claims.at(0).verdict == "held");
  CHECK(kept->claims[0].measured.at(0) == "final(\"one\") = 0.500, 0.500");
  CHECK(contains(kept->thumbnail, "role=\"img\""));
  CHECK_FALSE(contains(kept->thumbnail, "<text"));
  write_file(folder.path() + "/overview.json", "{\"title\": 3}");
  CHECK(contains(norma::test::error_of([&] { (void)read_overview(folder.path()); }),
                 "overview.json"));
}

}  // namespace
}  // namespace norma::report
