// The files of a run as one text, to be sent: the folder's, and those beside it that have its name
// (run.json, run.log).
#pragma once

#include <string>

namespace norma::study {

[[nodiscard]] std::string pack_run(const std::string& folder);
// Writes them. The folder is replaced as a whole, so that a kill leaves the old one or the new.
// Throws Error on a text that is cut, or a full disk.
void unpack_run(std::string_view archive, const std::string& folder);

}  // namespace norma::study
