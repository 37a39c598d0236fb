// Safetensors: named tensors in a file (huggingface.co/docs/safetensors).
//
// Layout: 8 bytes, the length of the header, little-endian; the header, a JSON object from each
// name to {"dtype", "shape", "data_offsets": [begin, end]}, and "__metadata__", an object of
// strings; then the bytes of the tensors, without gap or overlap.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/parameters.h"
#include "core/tensor.h"

namespace norma {

class InputFile;

using Metadata = std::map<std::string, std::string>;

// Reads the header at once and checks it whole; the tensors when they are asked for.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::string dtype_name;      // as in the file: "F32", "BF16", "BOOL", ...
    std::optional<DType> dtype;  // empty for a type that Tensor does not have
    Shape shape;
    std::int64_t begin = 0, end = 0;  // bytes, from the end of the header
  };

  // Throws Error if the file is not valid: a header that is cut, too long or no JSON, a name twice,
  // tensors that overlap or leave gaps, fewer or more bytes than they take. No memory is taken on
  // the word of a file: sizes are compared with the file's own first.
  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  [[nodiscard]] const std::string& path() const;
  // In the order of their bytes.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  // Null if there is no tensor of that name.
  [[nodiscard]] const Entry* find(const std::string& name) const;
  // The values of a tensor. Throws Error if there is none of that name, or its type is not ours.
  [[nodiscard]] Tensor read(const std::string& name) const;

 private:
  void parse_header(const std::string& header, std::int64_t data_bytes);
  void check_layout(std::int64_t data_bytes) const;

  std::unique_ptr<InputFile> file_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> index_;
  Metadata metadata_;
  std::int64_t data_start_ = 0;
};

// Writes the tensors, those with the largest elements first, then by name, so that all are aligned
// and the same tensors give the same bytes. See Note [Atomic files]. Throws Error for a name that
// stands twice, is "__metadata__" or not UTF-8, for an undefined tensor, and if the disk is full.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const Metadata& metadata = {});

struct LoadOptions {
  bool strict = true;    // every target must be in the file, and nothing else
  bool convert = false;  // another dtype is converted; otherwise it is an error
};

// What a load that was not strict passed over.
struct LoadReport {
  std::vector<std::string> missing;  // targets that the file does not have; left as they were
  std::vector<std::string> extra;    // tensors of the file that nobody asked for
};

// Copies the file's tensors into the targets of the same names. All names, shapes and types are
// checked and all values read before the first target changes. Throws one Error that lists every
// missing, extra and ill-fitting tensor; shapes must be equal even where `strict` is false.
LoadReport load_safetensors(const SafetensorsFile& file, std::span<const NamedTensor> targets,
                            LoadOptions options = {});

}  // namespace norma
