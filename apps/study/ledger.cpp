#include "apps/study/ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/run_folder.h"
#include "core/error.h"
#include "core/file.h"

namespace norma::study {
namespace {

std::string to_line(const LedgerEntry& e) {
  Json j;
  j["run"] = e.run;
  j["arm"] = e.arm;
  j["seed"] = e.seed;
  j["config"] = e.config;
  j["program"] = e.program;
  j["status"] = name_of(e.outcome);
  if (!e.reason.empty()) j["reason"] = e.reason;
  j["seconds"] = json_number(e.seconds);
  // A reason may hold what a child wrote, in any encoding.
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

LedgerEntry from_line(std::string_view line, const std::string& path, std::size_t number) {
  const Json j = Json::parse(line.begin(), line.end(), nullptr, false);
  try {
    LedgerEntry e;
    e.run = j.at("run");
    e.arm = j.at("arm");
    e.seed = j.at("seed");
    e.config = j.at("config");
    e.program = j.at("program");
    e.outcome = outcome_of(j.at("status"));
    e.reason = j.value("reason", std::string());
    e.seconds = number_of(j.at("seconds"));
    return e;
  } catch (const nlohmann::json::exception&) {
    throw Error::format(
        "{}: line {} is no entry of a ledger; take the line out, and the run is done again", path,
        number);
  }
}

// The entries of the text's whole lines; `whole` gets their length in bytes.
std::vector<LedgerEntry> parse(const std::string& text, const std::string& path,
                               std::size_t& whole) {
  std::vector<LedgerEntry> entries;
  whole = 0;
  for (std::size_t end; (end = text.find('\n', whole)) != std::string::npos; whole = end + 1) {
    entries.push_back(
        from_line(std::string_view(text).substr(whole, end - whole), path, entries.size() + 1));
  }
  return entries;
}

}  // namespace

std::vector<LedgerEntry> read_ledger(const std::string& path) {
  std::size_t whole = 0;
  return parse(read_file(path), path, whole);
}

Ledger::Ledger(std::string path) : path_(std::move(path)), file_(path_) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  require(descriptor_ >= 0, "{}: cannot be opened: {}", path_, std::strerror(errno));
  try {
    require(::flock(descriptor_, LOCK_EX | LOCK_NB) == 0,
            "{}: another study works in this folder; wait for it, or give another --out", path_);
    read();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

Ledger::~Ledger() { ::close(descriptor_); }

void Ledger::read() {
  std::size_t whole = 0;
  const std::string text = read_file(path_);
  entries_ = parse(text, path_, whole);
  if (whole < text.size()) {
    require(::ftruncate(descriptor_, static_cast<off_t>(whole)) == 0, "{}: cannot be written: {}",
            path_, std::strerror(errno));
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) newest_[entries_[i].config] = i;
}

void Ledger::append(const LedgerEntry& entry) {
  try {
    file_.append(to_line(entry));
    file_.sync();
  } catch (const Error& e) {
    throw Error::format("{}; free some space, and start the study again: it goes on", e.what());
  }
  newest_[entry.config] = entries_.size();
  entries_.push_back(entry);
}

const LedgerEntry* Ledger::find(const std::string& config_hash) const {
  const auto found = newest_.find(config_hash);
  return found == newest_.end() ? nullptr : &entries_[found->second];
}

}  // namespace norma::study
