// Data sets: samples in three parts, handed out in batches.
//
// Note [Stream of samples]. Which samples a training batch holds is a function of (seed, index of
// the batch) alone: the order of an epoch is keyed by its number, a drawn sample by its own. So a
// run that resumes needs no more than its step, and nothing depends on threads. Which samples are
// set aside for validation does not depend on the seed, so that runs can be compared.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "apps/data/data_record.h"
#include "core/autograd.h"
#include "core/config/config.h"
#include "core/tensor.h"

namespace norma {

class Tokenizer;

enum class Part : std::uint8_t { train, validation, test };
// "train", "validation", "test".
[[nodiscard]] std::string_view name_of(Part part);

// How a model reads a sequence, which decides how samples of ids are laid out (Note [Layouts] in
// sequence_task.h). The names and the order are those of TransformerKind.
enum class SequenceForm : std::uint8_t { decoder, encoder, encoder_decoder };

// What a data set must know of the run.
struct DataContext {
  std::uint64_t seed = 0;  // decides the order of the samples
  SequenceForm form = SequenceForm::decoder;
};

// The target of a place where nothing is predicted: the default `ignore` of cross_entropy.
constexpr std::int64_t kIgnored = -100;

struct Batch {
  Tensor inputs = {};       // (B, input...): f32, or i64 for ids
  Tensor targets = {};      // (B, target...): i64; kIgnored where nothing is predicted
  Tensor mask = {};         // (B, T) u8, 1 where a position counts; undefined where all do
  Tensor source = {};       // (B, S) i64: ids of what is translated; undefined where there is none
  Tensor source_mask = {};  // (B, S) u8, as `mask`
  [[nodiscard]] std::int64_t samples() const { return inputs.size(0); }
};

// What a model needs to know.
struct DataSpec {
  Shape input;               // of one sample: (1, 28, 28), or (T) for ids
  Shape target;              // of one sample: () for a label, (T) for an id at each position
  std::int64_t vocab = 0;    // ids of inputs and source are below it; 0 where inputs are numbers
  std::int64_t classes = 0;  // targets are below it
  std::int64_t edge = -1;    // the id that begins and ends what is written; -1: there is none
  bool answers = false;      // the targets of a sample are one answer, right or wrong as a whole
  Shape source = {};         // (S) ids of what an encoder-decoder reads; empty where there is none
};

// What every data set's configuration has.
struct SampleOptions {
  bool shuffle = true;
  bool drop_last = false;
  std::optional<std::int64_t> limit;
  std::optional<double> validation = std::nullopt;
  // The share that is set aside: the given one, else a tenth, or nothing where the source has a
  // test part of its own.
  [[nodiscard]] double validation_share(bool has_test_part) const {
    return validation.value_or(has_test_part ? 0.0 : 0.1);
  }
  [[nodiscard]] static config::Fields sample_fields();
};

class DataSet {
 public:
  // The size of a part that never ends, since its samples are generated.
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

  virtual ~DataSet() = default;
  DataSet(const DataSet&) = delete;
  DataSet& operator=(const DataSet&) = delete;

  [[nodiscard]] const DataSpec& spec() const { return spec_; }
  // Samples of a part; 0 where there is no such part, kEndless for a generated one. Where windows
  // of a text are drawn, those that cover it once.
  [[nodiscard]] virtual std::int64_t size(Part part) const = 0;
  // Batches of one pass: the last may be smaller, and is left out of training with `drop_last`.
  // kEndless for an endless part. Throws Error if there would be none.
  [[nodiscard]] std::int64_t num_batches(Part part, std::int64_t batch_size) const;
  // The batch of that index, counted from 0 through all epochs. See Note [Stream of samples].
  [[nodiscard]] Batch train_batch(std::int64_t index, std::int64_t batch_size) const;
  // Batch 0..num_batches-1 of a pass in the order of the samples: for evaluation.
  [[nodiscard]] Batch batch(Part part, std::int64_t index, std::int64_t batch_size) const;
  // Null where the inputs are no text.
  [[nodiscard]] virtual const Tokenizer* tokenizer() const { return nullptr; }
  // What a run keeps of the data.
  [[nodiscard]] const DataRecord& record() const { return record_; }

 protected:
  // `name` is the data set's type, for errors. True `drawn`: a training sample's number is the
  // number of the draw, which never repeats, and not one of 0..size-1.
  DataSet(std::string_view name, DataSpec spec, const SampleOptions& options, std::uint64_t seed,
          bool drawn);
  // The samples of these numbers; what is drawn anew in each epoch is keyed by it (0 outside of
  // training, and where samples are drawn).
  [[nodiscard]] virtual Batch gather(Part part, std::span<const std::int64_t> samples,
                                     std::int64_t epoch) const = 0;
  // For a constructor: to be filled with more than type and sizes.
  [[nodiscard]] DataRecord& mutable_record() { return record_; }

 private:
  [[nodiscard]] std::shared_ptr<const std::vector<std::int64_t>> epoch_order(
      std::int64_t epoch) const;

  std::string_view name_;
  DataSpec spec_;
  DataRecord record_;
  bool shuffle_, drop_last_, drawn_;
  std::uint64_t seed_;
  // The order of the last epoch that was asked for.
  mutable std::mutex order_mutex_;
  mutable std::int64_t order_epoch_ = -1;
  mutable std::shared_ptr<const std::vector<std::int64_t>> order_;
};

// The samples that are set aside of n: a share of them (at least one, if any), at random, and the
// others; both ascending. Does not depend on a seed: see Note [Stream of samples].
struct Split {
  std::vector<std::int64_t> train = {}, validation = {};
  [[nodiscard]] std::int64_t size(Part part) const {
    return static_cast<std::int64_t>(part == Part::train        ? train.size()
                                     : part == Part::validation ? validation.size()
                                                                : 0);
  }
  // Where the sample of a part stands among all n.
  [[nodiscard]] std::int64_t place(Part part, std::int64_t sample) const {
    return (part == Part::train ? train : validation)[static_cast<std::size_t>(sample)];
  }
};
// Throws Error, naming the data set, if none would be left to train on.
[[nodiscard]] Split split_samples(std::string_view name, std::int64_t n, double share);

// What a data set is, as it was kept.
[[nodiscard]] DataSpec spec_of(const DataRecord& record);

}  // namespace norma
