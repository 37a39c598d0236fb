// norma generate RUN [PROMPT] [--step STEP] [--tokens N] [--temperature T] [--top-k K] [--seed S]
#include <cmath>

#include "apps/cli/verb.h"
#include "apps/training/finished_run.h"
#include "apps/training/generation.h"
#include "apps/training/translation.h"

namespace norma::cli {
namespace {

struct GenerateArguments {
  std::string run, prompt;
  std::int64_t step = 0;
  GenerationOptions options;
};

Status generate_text(const GenerateArguments& arguments) {
  if (!std::isfinite(arguments.options.temperature)) {
    throw UsageError("--temperature: expected a number from 0 to 1e6");
  }
  FinishedRun run(arguments.run, arguments.step);
  if (run.record().tokenizer.empty()) {
    throw UsageError(fmt::format("{}: its data are \"{}\", not text; generate needs a run on text",
                                 arguments.run, run.config().data.type()));
  }
  const auto* transformer = run.config().model.get_if<TransformerConfig>();
  if (transformer && transformer->kind == TransformerKind::encoder) {
    throw UsageError(fmt::format(
        "{}: its model is an encoder, which sees later tokens; generate needs a decoder "
        "or a recurrent model",
        arguments.run));
  }
  const Tokenizer tokenizer = run.tokenizer();
  const DataSpec data = run.spec();
  const std::vector<std::int64_t> ids = tokenizer.encode(arguments.prompt, "PROMPT");
  if (data.source.rank() > 0) {
    fmt::print("{}\n", tokenizer.decode(translate(run.model(), data, ids)));
    return kDone;
  }
  if (data.answers) {
    throw UsageError(fmt::format(
        "{}: its data are questions and answers; generate needs a model of kind encoder_decoder",
        arguments.run));
  }
  fmt::print("{}", arguments.prompt);
  generate(run.model(), data, ids, arguments.options, [&](std::int64_t id) {
    fmt::print("{}", tokenizer.decode(std::span(&id, 1)));
    std::fflush(stdout);
  });
  fmt::print("\n");
  return kDone;
}

}  // namespace

Action generate_verb(Options& options) {
  const auto arguments = std::make_shared<GenerateArguments>();
  options.add("RUN", arguments->run, "Folder of a run on text", {.required = true});
  options.add("PROMPT", arguments->prompt, "Text to go on from, or to translate");
  options.add_step(arguments->step);
  options.add("--tokens", arguments->options.tokens, "Tokens to write",
              {.show_default = true, .low = 0, .high = 1'000'000'000});
  options.add("--temperature", arguments->options.temperature,
              "Divides the logits; 0 takes the likeliest token",
              {.show_default = true, .low = 0.0, .high = 1e6});
  options.add("--top-k", arguments->options.top_k, "Only the K likeliest tokens (0: all)",
              {.show_default = true, .low = 0, .high = 1'000'000'000});
  options.add("--seed", arguments->options.seed, "Seed of the draws",
              {.show_default = true, .low = 0, .high = 1e18});
  return [arguments] { return generate_text(*arguments); };
}

}  // namespace norma::cli
