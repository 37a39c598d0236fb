#include "apps/training/build.h"

#include <algorithm>

namespace norma {

// form_of() takes one for the other.
static_assert(static_cast<int>(TransformerKind::decoder) ==
                  static_cast<int>(SequenceForm::decoder) &&
              static_cast<int>(TransformerKind::encoder) ==
                  static_cast<int>(SequenceForm::encoder) &&
              static_cast<int>(TransformerKind::encoder_decoder) ==
                  static_cast<int>(SequenceForm::encoder_decoder));

SequenceForm form_of(const ModelConfig& model) {
  const auto* transformer = model.get_if<TransformerConfig>();
  return transformer ? static_cast<SequenceForm>(transformer->kind) : SequenceForm::decoder;
}

std::unique_ptr<DataSet> build_data(const RunConfig& config) {
  return make_data_set(config.data, {.seed = static_cast<std::uint64_t>(config.seed),
                                     .form = form_of(config.model)});
}

Signature signature_of(const DataSpec& spec) {
  return {.shape = spec.input, .vocab = spec.vocab, .source = spec.source, .features_last = false};
}

Forward forward_of(const Batch& batch) {
  Forward pass;
  pass.mask = batch.mask;
  pass.source = batch.source;
  pass.source_mask = batch.source_mask;
  return pass;
}

ModelPtr build_model(const RunConfig& config, const DataSpec& spec) {
  const DType dtype = config.train.precision == Precision::f64 ? DType::f64 : DType::f32;
  return config.model.build(static_cast<std::uint64_t>(config.seed), signature_of(spec), dtype);
}

ModelPtr build_exact_model(const RunConfig& config, const DataSpec& spec) {
  return config.model.build(static_cast<std::uint64_t>(config.seed), signature_of(spec),
                            DType::f64);
}

namespace {

// What to change in a model whose output has the wrong shape.
std::string shape_hint(const Shape& output, const Shape& expected) {
  const int last = output.rank() - 1;
  if (output.rank() == expected.rank() && last >= 0 &&
      output.sub(0, last) == expected.sub(0, last)) {
    return fmt::format("; give its last layer out: {}", expected[-1]);
  }
  if (expected.rank() <= 1 && output.rank() > expected.rank()) {
    return "; a \"flatten\" or \"global_avg_pool\" before its last layers makes one axis of "
           "several";
  }
  return "";
}

}  // namespace

void check_outputs(const LossConfig& loss, const Shape& output, const DataSpec& spec) {
  const bool classes = loss.get_if<CrossEntropyConfig>() != nullptr;
  require(classes == (spec.classes > 0),
          "loss: {} is for targets that are {}; the data's are {}; take {}", loss.type(),
          classes ? "classes" : "numbers", classes ? "numbers" : "classes",
          classes ? "mse, mae, huber or bce" : "cross_entropy");
  if (classes) {
    Shape expected = spec.target;
    expected.push_back(spec.classes);
    require(
        output.rank() == expected.rank() && output[-1] >= spec.classes &&
            output.sub(0, output.rank() - 1) == spec.target,
        "model: its output has shape {} a sample; the data have {} classes, so that cross_entropy "
        "needs {}{}",
        output.to_string(), spec.classes, expected.to_string(), shape_hint(output, expected));
    return;
  }
  require(output == spec.target, "model: its output has shape {} a sample; the targets have {}{}",
          output.to_string(), spec.target.to_string(), shape_hint(output, spec.target));
}

std::int64_t total_steps(const TrainConfig& train, const DataSet& data) {
  if (train.steps) return *train.steps;
  const std::int64_t batches = data.num_batches(Part::train, train.batch);
  require(batches != DataSet::kEndless,
          "train.epochs: the data are generated and have no end; give train.steps");
  const std::int64_t all = *train.epochs * batches;
  require(train.accumulate <= all,
          "train.accumulate: {} batches a step are more than the {} of all epochs; give fewer, or "
          "steps "
          "in the place of epochs",
          train.accumulate, all);
  return all / train.accumulate;
}

bool ends_epoch(const TrainConfig& train, const DataSet& data, std::int64_t step) {
  const std::int64_t batches = data.num_batches(Part::train, train.batch);
  if (batches == DataSet::kEndless) return false;
  return step * train.accumulate / batches > (step - 1) * train.accumulate / batches;
}

std::vector<std::string> size_warnings(const TrainConfig& train, const DataSet& data) {
  const std::int64_t samples = data.size(Part::train);
  std::vector<std::string> warnings;
  if (samples == DataSet::kEndless) return warnings;
  if (train.batch > samples) {
    warnings.push_back(fmt::format(
        "train.batch: a batch of {} is more than the {} samples of the train part, so that every "
        "batch is the whole of it",
        train.batch, samples));
  }
  const std::int64_t batches = data.num_batches(Part::train, train.batch);
  if (train.accumulate > batches) {
    warnings.push_back(fmt::format(
        "train.accumulate: {} batches a step are more than the {} of an epoch, so that a step sees "
        "the same samples again",
        train.accumulate, batches));
  }
  const std::int64_t left = train.epochs ? *train.epochs * batches % train.accumulate : 0;
  if (left > 0) {
    warnings.push_back(
        fmt::format("train.accumulate: the last {} batches of the last epoch are left out, since a "
                    "step takes {}",
                    left, train.accumulate));
  }
  return warnings;
}

std::string output_warning(const Shape& output, const DataSpec& spec) {
  // A model of ids has an output for each, also for those that are in no target.
  if (spec.vocab > 0 || spec.classes == 0 || output[-1] <= spec.classes) return "";
  const std::int64_t extra = output[-1] - spec.classes;
  return fmt::format(
      "model: it has {} outputs, and the data have {} classes: {} output{} to no class, and the "
      "training only makes sure that they are never chosen",
      output[-1], spec.classes, extra, extra == 1 ? " belongs" : "s belong");
}

std::int64_t tokens_per_step(const TrainConfig& train, const DataSpec& spec) {
  if (spec.vocab == 0) return 0;
  const std::int64_t source = spec.source.rank() == 0 ? 0 : spec.source.numel();
  return train.batch * train.accumulate * (spec.input.numel() + source);
}

}  // namespace norma
