#include "apps/data/labelled_arrays.h"

#include <algorithm>

#include "core/file.h"
#include "core/random.h"

namespace norma {
namespace {

// (N, H, W) is one channel; (N) is one feature.
Shape sample_shape(const Shape& shape) {
  if (shape.rank() == 1) return {1};
  if (shape.rank() == 3) return {1, shape[1], shape[2]};
  return shape.sub(1, shape.rank());
}

DataSpec make_spec(std::string_view name, const LabelledArrays& arrays) {
  const auto check = [&](const char* part, const Tensor& inputs, const Tensor& labels) {
    require(inputs.rank() >= 1 && inputs.numel() > 0, "{}: the {} inputs are empty: shape {}", name,
            part, inputs.shape().to_string());
    require(labels.rank() == 1 && labels.size(0) == inputs.size(0),
            "{}: expected a label for each of the {} {} inputs; got labels of shape {}", name,
            inputs.size(0), part, labels.shape().to_string());
    require(arrays.regression == is_floating(labels.dtype()),
            "{}: expected labels that are whole numbers; got {}", name, name_of(labels.dtype()));
  };
  check("train", arrays.inputs, arrays.labels);
  check_numbers(fmt::format("{}: the train inputs", name), arrays.inputs);
  if (arrays.regression) {
    return {.input = sample_shape(arrays.inputs.shape()), .target = {1}};
  }
  std::int64_t largest = 0;
  const auto look = [&](const Tensor& labels) {
    for (const std::int64_t label : labels.to_ids()) {
      require(label >= 0, "{}: expected labels from 0; got {}", name, label);
      largest = std::max(largest, label);
    }
  };
  look(arrays.labels);
  if (arrays.test_inputs.defined()) {
    check("test", arrays.test_inputs, arrays.test_labels);
    look(arrays.test_labels);
    const Shape a = arrays.inputs.shape(), b = arrays.test_inputs.shape();
    require(a.sub(1, a.rank()) == b.sub(1, b.rank()) &&
                arrays.inputs.dtype() == arrays.test_inputs.dtype(),
            "{}: expected test inputs like the training ones, {} {}; got {} {}", name,
            name_of(arrays.inputs.dtype()), a.to_string(), name_of(arrays.test_inputs.dtype()),
            b.to_string());
    check_numbers(fmt::format("{}: the test inputs", name), arrays.test_inputs);
  }
  require(largest > 0 || arrays.inputs.size(0) == 1,
          "{}: all labels are of one class, so that there is nothing to tell apart; check the "
          "target, or give task: regression",
          name);
  return {.input = sample_shape(arrays.inputs.shape()), .target = {}, .classes = largest + 1};
}

std::string_view bytes_of(const Tensor& x) {
  return {reinterpret_cast<const char*>(x.raw()),
          static_cast<std::size_t>(x.numel() * size_of(x.dtype()))};
}

}  // namespace

config::Fields ArrayOptions::array_fields() {
  using namespace config;
  return Fields{
             field("normalize", &ArrayOptions::normalize,
                   "Subtract the training part's mean and divide by its deviation, by channel.")} +
         sample_fields();
}

config::Fields ImageOptions::image_fields() {
  using namespace config;
  return Fields{field("augment", &ImageOptions::augment,
                      "How training images are varied, anew in each epoch.")} +
         array_fields();
}

LabelledArraysDataSet::LabelledArraysDataSet(std::string_view name, LabelledArrays arrays,
                                             const ArrayOptions& options, std::uint64_t seed,
                                             const Augment& augment)
    : DataSet(name, make_spec(name, arrays), options, seed, false),
      arrays_(std::move(arrays)),
      augment_(augment),
      seed_(seed) {
  require(!augment_.any() || spec().input.rank() == 3,
          "{}: augment is for images (height, width); the samples have shape {}", name,
          spec().input.to_string());
  if (!arrays_.regression) labels_ = arrays_.labels.to_ids();
  if (arrays_.test_labels.defined()) test_labels_ = arrays_.test_labels.to_ids();
  std::int64_t n = arrays_.inputs.size(0);
  if (options.limit) n = std::min(n, *options.limit);
  split_ = split_samples(name, n, options.validation_share(arrays_.test_labels.defined()));
  const std::int64_t channels = spec().input[0];
  scaling_ = options.normalize ? measured_scaling(arrays_.inputs, split_.train, channels)
                               : plain_scaling(arrays_.inputs.dtype(), channels);
  keep_record();
}

void LabelledArraysDataSet::keep_record() {
  DataRecord& record = mutable_record();
  for (const Tensor& part :
       {arrays_.inputs, arrays_.labels, arrays_.test_inputs, arrays_.test_labels}) {
    if (part.defined()) record.hash += checksum(bytes_of(part));
  }
  record.class_names = arrays_.class_names;
  record.columns = arrays_.columns;
  record.target_column = arrays_.target_column;
  record.mean = scaling_.mean;
  record.deviation = scaling_.deviation;
}

std::int64_t LabelledArraysDataSet::size(Part part) const {
  if (part != Part::test) return split_.size(part);
  return static_cast<std::int64_t>(test_labels_.size());
}

Batch LabelledArraysDataSet::gather(Part part, std::span<const std::int64_t> samples,
                                    std::int64_t epoch) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  std::vector<std::int64_t> places(samples.begin(), samples.end());
  if (part != Part::test) {
    for (std::int64_t& place : places) place = split_.place(part, place);
  }
  std::vector<ImageView> views;
  if (part == Part::train && augment_.any()) {
    const RandomKey key = random_key(seed_, fmt::format("data/augment/epoch {}", epoch));
    for (const std::int64_t place : places) {
      // Four blocks a sample, of which three numbers are drawn.
      RandomStream stream(key, 4 * static_cast<std::uint64_t>(place));
      views.push_back(draw_view(augment_, stream));
    }
  }
  Shape shape{n};
  for (const std::int64_t axis : spec().input) shape.push_back(axis);
  Batch batch{.inputs = Tensor::empty(shape)};
  write_samples(part == Part::test ? arrays_.test_inputs : arrays_.inputs, places, scaling_,
                batch.inputs.mutable_data<float>(), views);
  if (arrays_.regression) {
    batch.targets = Tensor::empty({n, 1});
    write_samples(arrays_.labels, places, plain_scaling(DType::f32, 1),
                  batch.targets.mutable_data<float>());
  } else {
    batch.targets = Tensor::empty({n}, DType::i64);
    std::int64_t* to = batch.targets.mutable_data<std::int64_t>();
    const std::vector<std::int64_t>& labels = part == Part::test ? test_labels_ : labels_;
    for (const std::int64_t place : places) *to++ = labels[static_cast<std::size_t>(place)];
  }
  return batch;
}

}  // namespace norma
