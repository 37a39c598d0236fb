// Options: what a verb declares of its arguments and options.
//
// A thin face of CLI11, which only options.cpp and run.cpp include: it takes seconds to compile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace norma::cli {

// What may be said of an option beside its name and its sentence.
struct OptionRule {
  bool required = false;
  bool show_default = false;        // in the help
  const char* value = nullptr;      // what the help calls the value: "N", "KEY=VALUE"
  std::optional<double> low = {};   // numbers below it are refused
  std::optional<double> high = {};  // numbers above it are refused
  int count = 0;                    // of a list: so many values exactly; 0: one or more
  bool repeated = false;            // of a list: one value each time the option stands there
};

// `name` is "--name" for an option and "NAME" for a positional argument. The value is written when
// the command line is parsed, so it must outlive the parser; where it is not given, it stays.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  void add(const char* name, std::string& into, const std::string& doc, const OptionRule& = {});
  void add(const char* name, std::vector<std::string>& into, const std::string& doc,
           const OptionRule& = {});
  void add(const char* name, int& into, const std::string& doc, const OptionRule& = {});
  void add(const char* name, std::int64_t& into, const std::string& doc, const OptionRule& = {});
  void add(const char* name, std::uint64_t& into, const std::string& doc, const OptionRule& = {});
  void add(const char* name, double& into, const std::string& doc, const OptionRule& = {});
  void add_flag(const char* name, bool& into, const std::string& doc);
  // The option --set KEY=VALUE, any number of times; for config::apply_sets.
  void add_sets(std::vector<std::string>& sets);
  // The option --step STEP of the verbs that read a run; 0 where it is not given, as FinishedRun
  // takes it.
  void add_step(std::int64_t& step);

 private:
  CLI::App& app_;
};

}  // namespace norma::cli
