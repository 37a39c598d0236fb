// Where the sources and the build are.
#pragma once

#include <string>

namespace norma::test {

[[nodiscard]] std::string source_dir();
[[nodiscard]] std::string binary_dir();
// The program.
[[nodiscard]] inline std::string norma_program() { return binary_dir() + "/bin/norma"; }

}  // namespace norma::test
