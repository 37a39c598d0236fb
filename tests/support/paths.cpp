#include "tests/support/paths.h"

namespace norma::test {

std::string source_dir() { return NORMA_SOURCE_DIR; }
std::string binary_dir() { return NORMA_BINARY_DIR; }

}  // namespace norma::test
