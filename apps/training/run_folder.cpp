#include "apps/training/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"

namespace norma {
namespace fs = std::filesystem;

Json json_number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

double number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

double unsigned_nan(double x) {
  return std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x;
}

FolderLock::FolderLock(const std::string& folder) {
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw Error::format(
        "{}: another process is training into it; wait for it, or give another --out", folder);
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RunFolder RunFolder::create(const std::string& out, const std::string& name) {
  if (!out.empty()) {
    require(!fs::exists(fs::path(out) / "config.json"),
            "{}: holds a run already; continue it with --resume, or give another --out", out);
    fs::create_directories(out);
    RunFolder folder(out);
    require(folder.checkpoint_steps().empty(),
            "{}: holds checkpoints, but no config.json; remove them, or give another --out", out);
    return folder;
  }
  std::string path = "runs/" + name;
  for (int i = 2; fs::exists(path); ++i) path = fmt::format("runs/{}-{}", name, i);
  fs::create_directories(path);
  return RunFolder(path);
}

RunFolder RunFolder::find(const std::string& out, const std::string& name) {
  if (!out.empty()) return open(out);
  std::string path = "runs/" + name;
  require(fs::exists(path + "/config.json"), "{}: no run to resume; start one without --resume",
          path);
  for (int i = 2; fs::exists(fmt::format("runs/{}-{}/config.json", name, i)); ++i) {
    path = fmt::format("runs/{}-{}", name, i);
  }
  return RunFolder(path);
}

RunFolder RunFolder::open(const std::string& path) {
  require(
      fs::exists(fs::path(path) / "config.json"),
      "{}: is not the folder of a run: it has no config.json; give the folder that `norma train` "
      "named, for instance runs/NAME",
      path);
  return RunFolder(path);
}

std::string RunFolder::checkpoint_path(std::int64_t step) const {
  return fmt::format("{}/step-{}", checkpoints_path(), step);
}

std::optional<Json> RunFolder::lineage() const {
  if (!fs::exists(lineage_path())) return std::nullopt;
  return config::parse_json(read_file(lineage_path()), lineage_path());
}

void RunFolder::remove_temporaries() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    if (is_temporary(entry.path().string())) fs::remove_all(entry.path(), ignored);
  }
}

void RunFolder::withdraw() const {
  std::error_code ignored;
  for (const std::string& file : {config_path(), data_path(), metrics_path(), summary_path(),
                                  lineage_path(), checkpoints_path()}) {
    fs::remove_all(file, ignored);
  }
  fs::remove(path_, ignored);  // only if it is empty
}

std::vector<std::int64_t> RunFolder::checkpoint_steps() const {
  std::vector<std::int64_t> steps;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(checkpoints_path(), none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") ||
        name.find_first_not_of("0123456789", 5) != std::string::npos || name.size() == 5 ||
        name.size() > 5 + 18) {
      continue;
    }
    steps.push_back(std::stoll(name.substr(5)));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<Json> read_metrics(const std::string& path) {
  std::vector<Json> records;
  const std::string text = read_file(path);
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Json record = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                              text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    require(!record.is_discarded(), "{}: line {} is not JSON", path, records.size() + 1);
    records.push_back(std::move(record));
  }
  return records;
}

MetricsLog::MetricsLog(const std::string& path, std::int64_t step) {
  std::string kept;
  if (step > 0 && fs::exists(path)) {
    for (const Json& record : read_metrics(path)) {
      if (record.value("step", std::int64_t{0}) <= step) kept += record.dump() + "\n";
    }
  }
  write_file(path, kept);
  file_.emplace(path);
}

void MetricsLog::append(const Json& record) {
  try {
    file_->append(record.dump() + "\n");
  } catch (const Error& e) {
    throw Error::format("{}; free some space, then go on with --resume", e.what());
  }
}

}  // namespace norma
