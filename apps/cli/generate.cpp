// norma generate RUN [PROMPT] [--tokens N] [--temperature T] [--top-k K] [--seed S]
#include <cmath>

#include "apps/cli/verb.h"
#include "apps/data/tokenizer.h"
#include "apps/training/finished_run.h"
#include "apps/training/generation.h"

namespace norma::cli {
namespace {

struct Arguments {
  std::string run, prompt;
  GenerationOptions options;
};

Status generate_text(const Arguments& arguments) {
  if (!std::isfinite(arguments.options.temperature)) {
    throw UsageError("--temperature: expected a number from 0 to 1e6");
  }
  FinishedRun run(arguments.run);
  const Tokenizer* tokenizer = run.data().tokenizer();
  if (!tokenizer) {
    throw UsageError(fmt::format("{}: its data are \"{}\", not text; generate needs a run on text",
                                 arguments.run, run.config().data.type()));
  }
  std::vector<std::int64_t> ids = tokenizer->encode(arguments.prompt);
  fmt::print("{}", arguments.prompt);
  generate(run.model(), run.data().spec(), ids, arguments.options, [&](std::int64_t id) {
    fmt::print("{}", tokenizer->decode(std::span(&id, 1)));
    std::fflush(stdout);
  });
  fmt::print("\n");
  return kDone;
}

}  // namespace

Action generate_verb(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("RUN", arguments->run, "Folder of a run on text")->required();
  app.add_option("PROMPT", arguments->prompt, "Text to go on from");
  app.add_option("--tokens", arguments->options.tokens, "Tokens to write")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
  app.add_option("--temperature", arguments->options.temperature,
                 "Divides the logits; 0 takes the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--top-k", arguments->options.top_k, "Only the K likeliest tokens (0: all)")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
  app.add_option("--seed", arguments->options.seed, "Seed of the draws")->capture_default_str();
  return [arguments] { return generate_text(*arguments); };
}

}  // namespace norma::cli
