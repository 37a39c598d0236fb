// A small study, and a program that stands in for `norma train`.
#pragma once

#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "apps/study/plan.h"
#include "apps/study/results.h"
#include "core/file.h"

namespace norma::study::test {

constexpr const char* kStudy = R"({
  "name": "small", "title": "A small study",
  "base": {"data": {"type": "shift", "vocab": 8, "length": 4},
           "model": {"type": "transformer", "layers": 1, "width": 8, "heads": 1},
           "train": {"steps": 20, "batch": 2, "log_every": 1, "eval_batches": 1, "keep": 0}},
  "arms": {"one": {"optimizer.lr": 0.001}, "two": {"optimizer.lr": 0.002}},
  "seeds": [0, 1]
})";

inline StudyConfig small_study(const std::string& claims = "[]") {
  Json json = config::parse_json(kStudy);
  json["claims"] = config::parse_json(claims);
  return config::parse<StudyConfig>(json);
}

// A script that is called as `norma train CONFIG --out FOLDER ...`: counts its calls in
// folder/calls, runs `body` (with $out set), and unless that exits, leaves a completed run whose
// losses are all 0.5.
inline std::string fake_norma(const std::string& folder, const std::string& body = "") {
  const std::string path = folder + "/norma.sh";
  std::ofstream(path) << "#!/bin/sh\nout=$4\necho \"$2\" >>" << folder
                      << "/calls\nmkdir -p \"$out\"\n"
                      << "echo '{}' >\"$out/config.json\"\n"
                      << body << R"(
for step in 1 2 3; do
  echo "{\"kind\":\"train\",\"step\":$step,\"loss\":0.5,\"lr\":0.001,\"grad_norm\":1,\"samples\":2,\"seconds\":0.1}"
done >"$out/metrics.jsonl"
echo '{"status":"completed","steps":3,"seconds":0.1}' >"$out/summary.json"
)";
  ::chmod(path.c_str(), 0755);
  return path;
}

// Lines of a text file; none if it is not there.
inline std::vector<std::string> lines(const std::string& path) {
  std::vector<std::string> result;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) result.push_back(line);
  return result;
}

// A run that ended with the same loss at all of its steps.
inline RunRecord flat_run(double loss, Outcome outcome = Outcome::completed) {
  RunRecord run;
  run.outcome = outcome;
  run.seconds = 1;
  for (int step = 1; step <= 20; ++step) run.train.push_back({step, loss, 1e-3, 2.0});
  return run;
}

}  // namespace norma::study::test
