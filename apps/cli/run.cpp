// The shell around the verbs: parsing, --threads, errors and exit statuses.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>

#include "apps/cli/verb.h"
#include "core/config/problems.h"
#include "core/parallel.h"

namespace norma::cli {
namespace {

constexpr int kMostThreads = 1024;  // far above any machine; catches typing errors

// An unknown verb, or none: what to say.
std::string unknown_verb(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs()) names.push_back(verb.name);
  return fmt::format("norma: unknown verb \"{}\"{}", name, config::name_hint(name, names));
}

Status fail(const std::string& who, const char* what, Status status) {
  std::fflush(stdout);
  fmt::print(stderr, "{}: {}\n", who, what);
  return status;
}

Status run_action(const std::string& who, const Action& action) {
  try {
    const Status status = action();
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
      return fail(who, "cannot write to the standard output", kFailed);
    }
    return status;
  } catch (const config::ConfigError& e) {
    return fail(who, e.what(), kUsage);
  } catch (const UsageError& e) {
    return fail(who, e.what(), kUsage);
  } catch (const std::bad_alloc&) {
    return fail(who, "out of memory", kFailed);
  } catch (const std::exception& e) {
    return fail(who, e.what(), kFailed);
  }
}

}  // namespace

Status run(std::vector<std::string> arguments) {
  CLI::App app("Train small networks from a JSON file, and study what keeps training stable.",
               "norma");
  app.require_subcommand(1);
  app.set_version_flag("--version", "norma " NORMA_VERSION);
  app.set_help_all_flag("--help-all", "Print the help of all verbs and exit");

  int threads = 0;
  std::vector<Action> actions;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.doc);
    Options options(*sub);
    actions.push_back(verb.declare(options));
    options.add("--threads", threads, "Threads to compute with; results do not depend on it",
                {.value = "N", .low = 1, .high = kMostThreads});
  }

  if (arguments.empty()) {
    fmt::print(stderr, "{}", app.help());
    return kUsage;
  }
  if (arguments[0].rfind('-', 0) != 0) {
    const auto known = verbs();
    if (std::none_of(known.begin(), known.end(),
                     [&](const Verb& verb) { return arguments[0] == verb.name; })) {
      fmt::print(stderr, "{}\n", unknown_verb(arguments[0]));
      return kUsage;
    }
  }
  const std::string who = "norma " + arguments[0];
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes a vector
    app.parse(std::move(arguments));
  } catch (const CLI::Success& e) {  // --help, --version
    (void)app.exit(e);
    return kDone;
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "{}: {}\nRun with --help for what it takes.\n", who, e.what());
    return kUsage;
  }
  if (threads > 0) set_num_threads(threads);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (app.got_subcommand(verbs()[i].name)) return run_action(who, actions[i]);
  }
  return kUsage;
}

}  // namespace norma::cli
