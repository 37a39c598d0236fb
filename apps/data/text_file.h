// Reading a file of text, and what the data sets of texts say alike.
#pragma once

#include <string>

namespace norma {

constexpr const char* kNoSource =
    "an encoder_decoder needs a source and an answer; use the kind decoder or encoder, or data "
    "like dates";

// The content of `path`. Throws Error, naming data.path, if it is missing or no file (a device or a
// pipe would be read without end).
[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace norma
