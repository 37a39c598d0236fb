// The recurrent models learn how names are written.
#include <cmath>
#include <map>

#include "core/file.h"
#include "tests/apps/training/support.h"
#include "tests/support/paths.h"

namespace norma::test {
namespace {

// Of a character, or the end of a line, drawn at its rate in the file.
double unigram_entropy(const std::string& path) {
  std::map<char, double> counts;
  double total = 0;
  for (char c : bytes(path)) ++counts[c], ++total;
  double entropy = 0;
  for (const auto& [c, n] : counts) entropy -= n / total * std::log(n / total);
  return entropy;
}

TEST_CASE("lstm and gru beat the unigram entropy of names by half a nat", "[training][slow]") {
  const std::string path = source_dir() + "/tests/data/names.txt";
  const double unigram = unigram_entropy(path);
  CHECK(std::abs(unigram - 2.8459) < 1e-4);
  for (const char* cell : {"lstm", "gru"}) {
    const TemporaryFolder folder;
    Json config = config::load_json(source_dir() + "/configs/names_lstm.json");
    config["data"]["path"] = path;
    config["model"]["cell"] = cell;
    const RunResult result = train(config, folder / "run");
    REQUIRE(result.final);
    INFO(cell << ": " << result.final->loss);
    CHECK(result.final->loss < unigram - 0.5);
    CHECK(result.final->loss > 1.5);  // nobody knows the next letter
  }
}

}  // namespace
}  // namespace norma::test
