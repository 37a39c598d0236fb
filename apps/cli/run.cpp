// The shell around the verbs: parsing, --threads, NORMA_INSTRUCTIONS, errors and exit statuses.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "apps/cli/verb.h"
#include "core/config/problems.h"
#include "core/instructions.h"
#include "core/parallel.h"

namespace norma::cli {
namespace {

constexpr int kMostThreads = 1024;  // far above any machine; catches typing errors

// An unknown verb, or none: what to say.
std::string unknown_verb(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs()) names.push_back(verb.name);
  return fmt::format("unknown verb \"{}\"{}", name, config::name_hint(name, names));
}

// What is wrong with a command line that CLI11 refuses. It does not say which name was meant.
std::string refused(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<const CLI::App*> parts{&app};
  for (const CLI::App* verb : app.get_subcommands()) parts.push_back(verb);
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  const bool no_verb = parts.size() == 1;
  if (rest.empty() || !(no_verb || dynamic_cast<const CLI::ExtrasError*>(&error))) {
    return error.what();
  }
  const auto option = std::find_if(rest.begin(), rest.end(),
                                   [](const std::string& s) { return s.rfind('-', 0) == 0; });
  if (option == rest.end()) {
    if (no_verb) return unknown_verb(rest[0]);
    return fmt::format("takes no further arguments; got {}", fmt::join(rest, " "));
  }
  std::vector<std::string> known;
  for (const CLI::Option* o : parts.back()->get_options()) {
    for (const std::string& name : o->get_lnames()) known.push_back("--" + name);
  }
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("unknown option \"{}\"{}", name,
                     config::name_hint(name, {known.begin(), known.end()}));
}

Status fail(const std::string& who, std::string_view what, Status status) {
  std::fflush(stdout);
  fmt::print(stderr, "{}: {}\n", who, what);
  return status;
}

// The message of an error, without the verb that many name first, as an op's messages name the op:
// it is said before the message.
std::string_view without_verb(std::string_view message, std::string_view who) {
  const std::string verb = fmt::format("{}: ", who.substr(who.rfind(' ') + 1));
  if (message.starts_with(verb)) message.remove_prefix(verb.size());
  return message;
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
    return fail(who, without_verb(e.what(), who), kUsage);
  } catch (const std::bad_alloc&) {
    return fail(who, "out of memory", kFailed);
  } catch (const std::exception& e) {
    return fail(who, without_verb(e.what(), who), kFailed);
  }
}

void add_threads(Options& options, int& threads) {
  options.add("--threads", threads, "Threads to compute with; results do not depend on it",
              {.value = "N", .low = 1, .high = kMostThreads});
}

// `norma help` and `norma help VERB` as `norma --help` and `norma VERB --help`.
void turn_help(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != "help") return;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
}

}  // namespace

Status run(std::vector<std::string> arguments) {
  CLI::App app("Train small networks from a JSON file, and study what keeps training stable.",
               "norma");
  app.require_subcommand(1);
  app.set_version_flag("--version", "norma " NORMA_VERSION);
  app.set_help_all_flag("--help-all", "Print the help of all verbs and exit");
  app.footer(
      "NORMA_INSTRUCTIONS=AVX3, AVX2 or SCALAR takes the kernels of a lesser machine.\n"
      "In a clone, ./norma test builds and runs the tests.");

  int threads = 0;
  std::vector<Action> actions;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.doc);
    Options options(*sub);
    actions.push_back(verb.declare(options));
    add_threads(options, threads);
  }
  Options options(app);
  add_threads(options, threads);

  turn_help(arguments);
  if (arguments.empty()) {
    fmt::print(stderr, "{}", app.help());
    return kUsage;
  }
  std::string who = "norma";
  if (arguments[0].rfind('-', 0) != 0) {
    const auto known = verbs();
    if (std::none_of(known.begin(), known.end(),
                     [&](const Verb& verb) { return arguments[0] == verb.name; })) {
      return fail(who, unknown_verb(arguments[0]), kUsage);
    }
    who += " " + arguments[0];
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes a vector
    app.parse(std::move(arguments));
  } catch (const CLI::Success& e) {  // --help, --version
    (void)app.exit(e);
    return kDone;
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "{}: {}\nRun with --help for what it takes.\n", who, refused(app, e));
    return kUsage;
  }
  if (const char* name = std::getenv("NORMA_INSTRUCTIONS"); name && *name) {
    try {
      set_instruction_set(name);
    } catch (const Error& e) {
      return fail(who, fmt::format("NORMA_INSTRUCTIONS: {}", e.what()), kUsage);
    }
  }
  if (threads > 0) set_num_threads(threads);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (app.got_subcommand(verbs()[i].name)) return run_action(who, actions[i]);
  }
  return kUsage;
}

}  // namespace norma::cli
