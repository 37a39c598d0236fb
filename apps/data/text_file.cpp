#include "apps/data/text_file.h"

#include <filesystem>

#include "core/error.h"
#include "core/file.h"

namespace norma {

std::string read_text(const std::string& path) {
  require(std::filesystem::exists(path),
          "data.path: there is no file {}; give another with --set data.path=FILE", path);
  require(std::filesystem::is_regular_file(path), "data.path: {} is no file of text", path);
  return read_file(path);
}

}  // namespace norma
