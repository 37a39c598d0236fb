// The folder of a run: config.json, metrics.jsonl, summary.json, checkpoints/step-N/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/json.h"
#include "core/file.h"

namespace norma {

using config::Json;

// A number as strict JSON has it: what is not finite becomes "nan", "inf" or "-inf".
[[nodiscard]] Json json_number(double x);
// The inverse, for readers of metrics.jsonl and summary.json.
[[nodiscard]] double number_of(const Json& value);

// NaN without a sign, so that it prints as "nan"; every other number as it is.
[[nodiscard]] double unsigned_nan(double x);

class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  // The folder that a new run called `name` gets: `out`, or runs/<name>, runs/<name>-2, ... where
  // that is taken. Throws Error if `out` holds a run already, or checkpoints without a run.
  [[nodiscard]] static RunFolder create(const std::string& out, const std::string& name);
  // The folder to resume: `out`, or the newest runs/<name>*. Throws Error if there is none.
  [[nodiscard]] static RunFolder find(const std::string& out, const std::string& name);
  // An existing run. Throws Error if `path` has no config.json.
  [[nodiscard]] static RunFolder open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string config_path() const { return path_ + "/config.json"; }
  [[nodiscard]] std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  [[nodiscard]] std::string summary_path() const { return path_ + "/summary.json"; }
  [[nodiscard]] std::string data_path() const { return path_ + "/data.json"; }
  [[nodiscard]] std::string checkpoints_path() const { return path_ + "/checkpoints"; }
  [[nodiscard]] std::string checkpoint_path(std::int64_t step) const;
  [[nodiscard]] std::string lineage_path() const { return path_ + "/lineage.json"; }
  // Where the run comes from, if not from its seed alone: {"parent", "step", "differences"} of a
  // fork, with the parent's own lineage, or {"init"}.
  [[nodiscard]] std::optional<Json> lineage() const;
  // Deletes what a kill has left of files half written.
  void remove_temporaries() const;
  // Deletes the files of a run that did not take a step, and the folder if nothing else is in it.
  void withdraw() const;
  // Steps of the complete checkpoints, ascending.
  [[nodiscard]] std::vector<std::int64_t> checkpoint_steps() const;

 private:
  std::string path_;
};

// Keeps other runs out of a folder as long as it exists.
class FolderLock {
 public:
  // Throws Error if another process holds it.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

// metrics.jsonl: one strict JSON object a line, written line by line.
class MetricsLog {
 public:
  // Keeps the records up to `step` of a file that exists (0: starts anew), so that a resumed run
  // has no line twice and none missing. Throws Error if the file cannot be written.
  MetricsLog(const std::string& path, std::int64_t step);

  // Appends a record. Throws Error on a full disk.
  void append(const Json& record);
  // Brings it to the disk.
  void sync() { file_->sync(); }

 private:
  std::optional<AppendFile> file_;
};

// The records of a metrics.jsonl; a last line that was cut by a kill is left out.
[[nodiscard]] std::vector<Json> read_metrics(const std::string& path);

}  // namespace norma
