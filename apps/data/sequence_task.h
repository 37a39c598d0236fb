// Generated sequences: what tasks like `copy` share.
//
// Note [Layouts]. A sample is a source and an answer, both ids below `vocab`. The id `vocab`
// itself, written _ here, stands for a separator, a start, a blank and padding. How source and
// answer are laid out depends on how the model reads; "-" is a place where nothing is predicted.
//
//   form             inputs               targets              source
//   decoder          s1 s2 s3 _  a1 a2    -  -  -  a1 a2 a3
//   encoder_decoder  _  a1 a2             a1 a2 a3             s1 s2 s3
//   encoder          s1 s2 s3             a1 a2 a3             (an answer as long as the source)
//   encoder          s1 s2 s3 _  _        -  -  -  a1 a2       (any other: blanks to fill in)
//
// Shorter samples are filled up at their end, with masks of 0 there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/data_set.h"
#include "core/random.h"

namespace norma {

// Tasks without an end, unless `limit` is given.
struct TaskOptions : SampleOptions {};

struct SequenceOptions : TaskOptions {
  std::int64_t vocab = 64;
  std::int64_t length = 24;
  [[nodiscard]] static config::Fields sequence_fields();
};

// Sample k of the training part is a function of (seed, k); there is no end to them unless `limit`
// is given. The validation part is the same for every seed; there is none where `validation` is 0.
class SequenceTask : public DataSet {
 public:
  [[nodiscard]] std::int64_t size(Part part) const override;

 protected:
  struct Sizes {
    std::int64_t vocab = 0;
    std::int64_t source = 0;  // ids of the longest source
    std::int64_t answer = 0;  // ids of every answer
    bool varies = false;      // sources have several lengths
    bool in_place = false;    // a decoder, too, answers at the place of the source's id
    std::int64_t validation_samples = 512;
  };
  SequenceTask(std::string_view name, const TaskOptions& options, const Sizes& sizes,
               const DataContext& context);

  // Fills the answer, and the source: of sizes.source ids, to be made shorter where sizes.varies.
  virtual void make_sample(Part part, RandomStream& stream, std::vector<std::int64_t>& source,
                           std::span<std::int64_t> answer) const = 0;
  // A number in 0..n-1 that training and validation have not in common: `validation` of them are
  // set aside, whatever the seed.
  [[nodiscard]] std::int64_t draw_question(Part part, RandomStream& stream, std::int64_t n) const;
  // Throws Error if one of the parts would be without questions.
  void check_questions(std::int64_t n) const;
  [[nodiscard]] Batch gather(Part part, std::span<const std::int64_t> samples,
                             std::int64_t epoch) const override;

 private:
  enum class Layout : std::uint8_t { in_place, blanks, decoder, encoder_decoder };
  [[nodiscard]] static Layout layout_of(const Sizes& sizes, SequenceForm form);
  [[nodiscard]] static DataSpec spec_of(const Sizes& sizes, SequenceForm form);
  [[nodiscard]] bool set_aside(std::int64_t question) const;

  std::string name_;
  Sizes sizes_;
  Layout layout_;
  std::uint64_t seed_;
  std::int64_t train_samples_;
  double validation_share_;
  RandomKey validation_key_;
};

}  // namespace norma
