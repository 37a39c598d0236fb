// What a verb of the command line is.
//
// To add one: a file apps/cli/<verb>.cpp with a function that declares its options and returns what
// runs it, and a line in the table of verbs.cpp.
//
//   Action hello_verb(Options& options) {
//     const auto name = std::make_shared<std::string>("you");
//     options.add("NAME", *name, "Whom to greet");
//     return [name] {
//       fmt::print("hello, {}\n", *name);
//       return kDone;
//     };
//   }
//
// Results go to stdout. Errors are thrown: ConfigError and UsageError end with status 2, all others
// with status 1; the message goes to stderr. `--threads` goes with every verb, and has been applied
// when the action runs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/options.h"
#include "core/error.h"

namespace norma::cli {

// Exit statuses.
enum Status : int {
  kDone = 0,
  kFailed = 1,  // failed while running, or a claim's verdict was not the expected one
  kUsage = 2,   // wrong usage or configuration
  kDiverged = 3,
  kInterrupted = 130,  // after saving
};

// A wrong combination of arguments that the parser does not see.
class UsageError : public Error {
 public:
  using Error::Error;
};

// What f() returns, f being what makes the parts of a run, or tries them: its errors are those of a
// wrong configuration, since what does not fit together is one, whoever finds it.
template <class F>
auto of_configuration(F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
}

using Action = std::function<Status()>;

struct Verb {
  const char* name;
  const char* doc;  // one line for `norma --help`
  Action (*declare)(Options& options);
};

// In the order of `norma --help`.
[[nodiscard]] std::span<const Verb> verbs();

// Parses the arguments (without the program's name) and runs the verb. Returns the exit status.
[[nodiscard]] Status run(std::vector<std::string> arguments);

}  // namespace norma::cli
