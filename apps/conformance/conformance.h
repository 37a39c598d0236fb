// Conformance cases: what a layer, loss, optimizer, schedule, model, configuration or file must
// give, as numbers that another implementation computed. See docs/conformance.md for the format.
#pragma once

#include <string>
#include <vector>

namespace norma {

struct CaseResult {
  std::string name;
  std::string file;
  std::string failure;  // empty: passed; else what differed, where, by how much
  std::string note;     // what could not be checked, for a case that is itself at fault
};

// Runs every case of every *.json below the folders (or in a file) whose name matches the glob.
// Throws Error for a folder that does not exist or a file that holds no case.
[[nodiscard]] std::vector<CaseResult> run_cases(const std::vector<std::string>& folders,
                                                const std::string& only = "*");

}  // namespace norma
