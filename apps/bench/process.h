// Other programs, run one after the other.
#pragma once

#include <string>
#include <vector>

namespace norma::bench {

// Runs a program (found through PATH) and returns what it wrote to stdout; its stderr goes to ours.
// Throws Error if it cannot be started, is killed by a signal, or ends with another status than 0.
[[nodiscard]] std::string run_process(const std::vector<std::string>& arguments);

// The path of the program that runs now.
[[nodiscard]] std::string own_program();

}  // namespace norma::bench
