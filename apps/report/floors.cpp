#include "apps/report/floors.h"

#include <cmath>
#include <unordered_map>

#include "apps/data/text.h"
#include "apps/training/build.h"
#include "core/error.h"

namespace norma::report {
namespace {

// H(next | token) = H(pair) - H(token).
double bigram_entropy(std::span<const std::int64_t> ids, std::int64_t vocab) {
  std::unordered_map<std::int64_t, double> pairs;
  std::vector<double> firsts(static_cast<std::size_t>(vocab), 0.0);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    pairs[ids[i] * vocab + ids[i + 1]] += 1;
    firsts[static_cast<std::size_t>(ids[i])] += 1;
  }
  std::vector<double> counts;
  counts.reserve(pairs.size());
  for (const auto& [pair, count] : pairs) counts.push_back(count);
  return entropy_of(counts) - entropy_of(firsts);
}

}  // namespace

double entropy_of(std::span<const double> counts) {
  double total = 0, entropy = 0;
  for (const double count : counts) total += count;
  for (const double count : counts) {
    if (count > 0) entropy -= count / total * std::log(count / total);
  }
  return entropy;
}

DataFloors floors_of(const config::Json& run) {
  DataFloors floors;
  try {
    const RunConfig config = parse_run_config(run);
    if (!config.loss.get_if<CrossEntropyConfig>()) return {};
    const std::unique_ptr<DataSet> data = build_data(config);
    const std::int64_t classes = data->spec().classes;
    if (classes < 2) return {};
    floors.guessing = std::log(static_cast<double>(classes));
    floors.levels.push_back({fmt::format("guessing, ln {}", classes), *floors.guessing});
    const auto* text = dynamic_cast<const TextDataSet*>(data.get());
    if (!text || text->masked() || text->training_ids().size() < 2) return floors;
    std::vector<double> counts(static_cast<std::size_t>(classes), 0.0);
    for (const std::int64_t id : text->training_ids()) counts[static_cast<std::size_t>(id)] += 1;
    floors.levels.push_back({"unigram entropy", entropy_of(counts)});
    floors.levels.push_back({"bigram entropy", bigram_entropy(text->training_ids(), classes)});
  } catch (const std::exception&) {
    return {};  // a picture without levels is better than none
  }
  return floors;
}

}  // namespace norma::report
