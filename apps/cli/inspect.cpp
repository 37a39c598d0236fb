#include <fmt/format.h>

#include "apps/cli/verb.h"
#include "apps/training/checkpoint.h"
#include "core/safetensors.h"

namespace norma::cli {

Action inspect_verb(Options& options) {
  const auto file = std::make_shared<std::string>();
  options.add("FILE", *file, "A safetensors file", {.required = true});
  return [file] {
    refuse_folder(*file);
    const SafetensorsFile tensors(*file);
    std::size_t name_width = 4, type_width = 4;
    std::int64_t elements = 0, bytes = 0;
    for (const auto& entry : tensors.entries()) {
      name_width = std::max(name_width, entry.name.size());
      type_width = std::max(type_width, entry.dtype_name.size());
    }
    for (const auto& entry : tensors.entries()) {
      fmt::print("{:<{}}  {:<{}}  {}\n", entry.name, name_width, entry.dtype_name, type_width,
                 entry.shape.to_string());
      elements += entry.shape.numel();
      bytes += entry.end - entry.begin;
    }
    for (const auto& [key, value] : tensors.metadata()) fmt::print("{}: {}\n", key, value);
    fmt::print("{} tensors, {} elements, {} bytes\n", tensors.entries().size(), elements, bytes);
    return kDone;
  };
}

}  // namespace norma::cli
