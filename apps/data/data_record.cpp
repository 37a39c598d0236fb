#include "apps/data/data_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"

namespace norma {

config::Fields DataRecord::fields() {
  using namespace config;
  using R = DataRecord;
  return {field("type", &R::type, "Type of the data set."),
          field("hash", &R::hash, "Hash of what was read."),
          field("input", &R::input, "Shape of an input."),
          field("target", &R::target, "Shape of a target."),
          field("source", &R::source, "Shape of a source."),
          field("vocab", &R::vocab, "Ids of the inputs."),
          field("classes", &R::classes, "Classes of the targets."),
          field("edge", &R::edge, "The id that begins and ends a sequence; -1: none."),
          field("answers", &R::answers, "Whether the targets of a sample are one answer."),
          field("tokenizer", &R::tokenizer, "Kind of the tokenizer."),
          field("characters", &R::characters, "Its characters, by id."),
          field("merges", &R::merges, "The pairs that its ids from 256 stand for."),
          field("class_names", &R::class_names, "Names of the classes."),
          field("columns", &R::columns, "Names of the features."),
          field("target_column", &R::target_column, "Name of the target."),
          field("mean", &R::mean, "Mean of a channel or feature."),
          field("deviation", &R::deviation, "What it is divided by.")};
}

void write_data_record(const std::string& path, const DataRecord& record) {
  write_file(path, config::to_json(record).dump(1) + "\n");
}

DataRecord read_data_record(const std::string& path) {
  return config::parse<DataRecord>(config::parse_json(read_file(path), path), {}, path);
}

void check_same_data(const DataRecord& kept, const DataRecord& now, const std::string& run) {
  require(kept.hash == now.hash && kept.vocab == now.vocab && kept.classes == now.classes,
          "data: what {} was trained on has changed: expected content of hash {}; got {}; put the "
          "old data back, or start a new run",
          run, kept.hash, now.hash);
}

}  // namespace norma
