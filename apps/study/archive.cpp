#include "apps/study/archive.h"

#include <charconv>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"

namespace norma::study {
namespace fs = std::filesystem;
namespace {

constexpr const char* kBeside[] = {".json", ".log"};

// "<name> <bytes>\n", then the bytes.
void add(std::string& archive, const std::string& name, const std::string& path) {
  const std::string content = read_file(path);
  archive += fmt::format("{} {}\n", name, content.size());
  archive += content;
}

}  // namespace

std::string pack_run(const std::string& folder) {
  std::string archive;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || is_temporary(entry.path().string())) continue;
    add(archive, "/" + fs::relative(entry.path(), folder).generic_string(), entry.path().string());
  }
  for (const char* ending : kBeside) {
    if (fs::exists(folder + ending)) add(archive, ending, folder + ending);
  }
  return archive;
}

void unpack_run(std::string_view archive, const std::string& folder) {
  const std::string fresh = temporary_beside(folder);
  fs::create_directories(fresh);
  while (!archive.empty()) {
    const std::size_t line = archive.find('\n');
    const std::size_t space = archive.substr(0, line).rfind(' ');
    std::size_t size = 0;
    const bool whole =
        line != std::string_view::npos && space != std::string_view::npos &&
        std::from_chars(archive.data() + space + 1, archive.data() + line, size).ec ==
            std::errc() &&
        size <= archive.size() - line - 1;
    require(whole, "{}: the files of the run came in part", folder);
    const std::string name(archive.substr(0, space));
    require(name.find("..") == std::string::npos, "{}: a file is called {}", folder, name);
    const std::string path = (name.starts_with('/') ? fresh : folder) + name;
    fs::create_directories(fs::path(path).parent_path());
    write_file(path, archive.substr(line + 1, size));
    archive.remove_prefix(line + 1 + size);
  }
  fs::remove_all(folder);
  fs::rename(fresh, folder);
}

}  // namespace norma::study
