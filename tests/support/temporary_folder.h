// A folder for one test, removed with all that is in it at the end of the scope.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace norma {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((parent() / "norma-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder " + path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // The path of a file in the folder.
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  // In memory where the system has such a place and nobody asked for another: forcing files to a
  // disk takes most of the time of a short run.
  static std::filesystem::path parent() {
    const char* memory = "/dev/shm";
    if (!getenv("TMPDIR") && access(memory, W_OK) == 0) return memory;
    return std::filesystem::temp_directory_path();
  }

  std::string path_;
};

}  // namespace norma
