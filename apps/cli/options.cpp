#include "apps/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace norma::cli {
namespace {

CLI::Validator range(const OptionRule& rule) {
  return {[rule](const std::string& text) -> std::string {
            double value = 0;
            if (!CLI::detail::lexical_cast(text, value)) return "expected a number; got " + text;
            if (rule.low && value < *rule.low) {
              return fmt::format("expected {:.10g} or more; got {}", *rule.low, text);
            }
            if (rule.high && value > *rule.high) {
              return fmt::format("expected {:.10g} or less; got {}", *rule.high, text);
            }
            return {};
          },
          ""};
}

template <class T>
void add_option(CLI::App& app, const char* name, T& into, const std::string& doc,
                const OptionRule& rule) {
  CLI::Option* option = app.add_option(name, into, doc);
  option->required(rule.required);
  if (rule.show_default) option->capture_default_str();
  if (rule.value) option->type_name(rule.value);
  if (rule.low || rule.high) option->check(range(rule));
}

}  // namespace

void Options::add(const char* name, std::string& into, const std::string& doc,
                  const OptionRule& rule) {
  add_option(app_, name, into, doc, rule);
}

void Options::add(const char* name, std::vector<std::string>& into, const std::string& doc,
                  const OptionRule& rule) {
  add_option(app_, name, into, doc, rule);
  CLI::Option* option = app_.get_option(name);
  if (rule.count > 0) option->expected(rule.count);
  if (rule.repeated) option->type_size(1)->allow_extra_args(false);
}

void Options::add(const char* name, int& into, const std::string& doc, const OptionRule& rule) {
  add_option(app_, name, into, doc, rule);
}

void Options::add(const char* name, std::int64_t& into, const std::string& doc,
                  const OptionRule& rule) {
  add_option(app_, name, into, doc, rule);
}

void Options::add(const char* name, std::uint64_t& into, const std::string& doc,
                  const OptionRule& rule) {
  add_option(app_, name, into, doc, rule);
}

void Options::add(const char* name, double& into, const std::string& doc, const OptionRule& rule) {
  add_option(app_, name, into, doc, rule);
}

void Options::add_flag(const char* name, bool& into, const std::string& doc) {
  app_.add_flag(name, into, doc);
}

void Options::add_sets(std::vector<std::string>& sets) {
  add("--set", sets, "Change one value of the configuration; may be repeated",
      {.value = "KEY=VALUE", .repeated = true});
}

void Options::add_step(std::int64_t& step) {
  add("--step", step, "Checkpoint of this step (default: the best, else the last one)",
      {.value = "STEP", .low = 1, .high = 1e15});
}

}  // namespace norma::cli
