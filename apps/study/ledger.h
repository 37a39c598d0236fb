// The ledger of a study: ledger.jsonl, a line a finished run, only ever appended to. It is what a
// study that was killed goes on from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/study/run_record.h"
#include "core/file.h"

namespace norma::study {

struct LedgerEntry {
  std::string run;  // PlannedRun::id, the folder below runs/
  std::string arm;
  std::int64_t seed = 0;
  std::string config;   // hash of the configuration
  std::string program;  // fingerprint of the program that ran it
  Outcome outcome = Outcome::missing;
  std::string reason;
  double seconds = 0;
};

class Ledger {
 public:
  // Opens or creates it, and locks it. A last line that a kill has cut is dropped. Throws Error if
  // another study works in the folder, or on a line that is no entry.
  explicit Ledger(std::string path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Appends an entry and brings it to the disk. Throws Error on a full disk.
  void append(const LedgerEntry& entry);
  // The newest entry of a configuration, or null.
  [[nodiscard]] const LedgerEntry* find(const std::string& config_hash) const;
  [[nodiscard]] const std::vector<LedgerEntry>& entries() const { return entries_; }

 private:
  void read();

  std::string path_;
  AppendFile file_;
  int descriptor_ = -1;  // of the lock
  std::vector<LedgerEntry> entries_;
  std::map<std::string, std::size_t> newest_;  // by configuration
};

// Reads the entries without locking: for reports.
[[nodiscard]] std::vector<LedgerEntry> read_ledger(const std::string& path);

}  // namespace norma::study
