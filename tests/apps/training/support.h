// Short runs for the tests of training.
#pragma once

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/training/build.h"
#include "apps/training/trainer.h"
#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma::test {

// A transformer with everything that draws random numbers, on the task "shift".
inline Json shift_config(std::int64_t steps) {
  Json config = Json::parse(R"({"name": "t", "data": {"type": "shift", "vocab": 16, "length": 8},
    "model": {"type": "transformer", "layers": 2, "width": 32, "heads": 2, "hidden": 64,
              "dropout": 0.1, "attention_dropout": 0.1, "activation": "swiglu",
              "position": "rope"},
    "optimizer": {"type": "adamw", "lr": 1e-3},
    "schedule": {"type": "cosine", "warmup_steps": 3},
    "train": {"batch": 8, "clip_norm": 1, "log_every": 1}})");
  config["train"]["steps"] = steps;
  return config;
}

inline RunResult train(const Json& config, const std::string& out, bool resume = false) {
  Trainer trainer(parse_run_config(config), {.out = out, .resume = resume, .quiet = true});
  return trainer.run();
}

// The records without the times.
inline std::string records(const std::string& run) {
  std::string text;
  for (Json record : read_metrics(run + "/metrics.jsonl")) {
    record.erase("seconds");
    text += record.dump() + "\n";
  }
  return text;
}

inline std::string bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string step_folder(const std::string& run, std::int64_t step) {
  return run + "/checkpoints/step-" + std::to_string(step);
}

inline std::string weights(const std::string& run, std::int64_t step) {
  return bytes(step_folder(run, step) + "/model.safetensors");
}

// Makes the checksums of a checkpoint fit what its files hold now.
inline void reseal(const std::string& checkpoint) {
  Json state = Json::parse(bytes(checkpoint + "/state.json"));
  for (auto& [name, sum] : state["files"].items()) sum = checksum_of_file(checkpoint + "/" + name);
  state.erase("checksum");
  state["checksum"] = checksum(state.dump());
  write_file(checkpoint + "/state.json", state.dump(2));
}

}  // namespace norma::test
