// The table of verbs: one line each.
#include "apps/cli/verb.h"

// X(name, doc): the function is name##_verb, in apps/cli/<name>.cpp.
#define NORMA_VERBS(X)                                                                            \
  X(train, "Train a network from a configuration")                                                \
  X(evaluate, "Loss and accuracy of a run")                                                       \
  X(predict, "What a run says of the samples in a file")                                          \
  X(generate, "Continue a text with a run")                                                       \
  X(fork, "Start a new run from a step of an old one")                                            \
  X(replay, "Repeat the last steps of a run that diverged in f64: dynamics or rounding?")         \
  X(study, "Run arms x seeds of a configuration, resumable, and check claims about them")         \
  X(reproduce, "Run the shipped studies, and say which claims held")                              \
  X(report, "Write a page with curves and tables about runs and studies")                         \
  X(probe, "Gradients, activations and sharpness by depth, before a step is taken")               \
  X(explain, "Print the formula of a block, the shapes, the parameters, switches without effect") \
  X(check, "Run conformance cases")                                                               \
  X(validate, "Check configurations, and say all that is wrong with them")                        \
  X(schema, "Print the JSON Schema of a configuration, or its documentation")                     \
  X(bench, "Time the reference workloads, alone or beside another framework")                     \
  X(inspect, "Print the tensors of a safetensors file")                                           \
  X(list, "Print what can be named in a configuration: layers, optimizers, data ...")             \
  X(version, "Print the version, and what the program is built with and runs on")

namespace norma::cli {

#define NORMA_DECLARE(name, doc) Action name##_verb(Options& options);
NORMA_VERBS(NORMA_DECLARE)
#undef NORMA_DECLARE

std::span<const Verb> verbs() {
#define NORMA_ENTRY(name, doc) {#name, doc, name##_verb},
  static const Verb table[] = {NORMA_VERBS(NORMA_ENTRY)};
#undef NORMA_ENTRY
  return table;
}

}  // namespace norma::cli
