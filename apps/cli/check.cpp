// norma check DIR... [--only GLOB]
#include "apps/cli/verb.h"
#include "apps/conformance/conformance.h"

namespace norma::cli {

Action check_verb(Options& options) {
  const auto folders = std::make_shared<std::vector<std::string>>();
  const auto only = std::make_shared<std::string>("*");
  options.add("DIR", *folders, "Folders (or files) of conformance cases", {.required = true});
  options.add("--only", *only, "Cases whose name matches this glob", {.show_default = true});
  return [folders, only] {
    std::int64_t passed = 0, failed = 0;
    for (const CaseResult& result : run_cases(*folders, *only)) {
      if (!result.note.empty()) {
        fmt::print(stderr, "note: {}: {}: {}\n", result.file, result.name, result.note);
      }
      if (result.failure.empty()) {
        ++passed;
      } else {
        ++failed;
        fmt::print("{}: {}: {}\n", result.file, result.name, result.failure);
      }
    }
    if (passed + failed == 0) throw Error::format("check: no case matches \"{}\"", *only);
    fmt::print("{} passed, {} failed\n", passed, failed);
    return failed == 0 ? kDone : kFailed;
  };
}

}  // namespace norma::cli
