#include <algorithm>
#include <string>

#include "apps/cli/verb.h"

int main(int argc, char** argv) { return norma::cli::run({argv + 1, argv + std::max(argc, 1)}); }
