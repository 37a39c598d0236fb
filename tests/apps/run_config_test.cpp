// The configuration of a whole run: the conformance cases, what the sections must agree in, and the
// generated files.
#include "apps/training/run_config.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using config::Json;

const std::string kSource = test::source_dir();

// A run that is fine, to be spoilt in one place.
const char* const kGood = R"({"data": {"type": "shift", "vocab": 64, "length": 24},
  "model": {"type": "transformer", "layers": 2, "width": 32, "heads": 8, "hidden": 64},
  "train": {"steps": 10, "batch": 8}})";

RunConfig with(const std::vector<std::string>& sets) {
  Json json = config::parse_json(kGood);
  config::apply_sets(json, sets);
  return parse_run_config(json);
}

std::string error_with(const std::vector<std::string>& sets) {
  return test::error_of([&] { (void)with(sets); });
}

// Unknown and misspelt keys: unslothai/unsloth#10452.
TEST_CASE("the conformance cases of configurations") {
  const Json cases = config::parse_json(read_file(kSource + "/tests/cases/config.json"));
  int wrong = 0;
  for (const Json& one : cases) {
    INFO(one["name"].get<std::string>());
    const std::string text =
        one.contains("text") ? one["text"].get<std::string>() : one["config"].dump();
    const std::string message =
        test::error_of([&] { (void)parse_run_config(config::parse_json(text)); });
    INFO("message: " << message);
    CHECK(message.empty() == one["expect_error"].empty());
    for (const Json& part : one["expect_error"]) {
      CHECK(test::contains(message, part.get<std::string>()));
      ++wrong;
    }
  }
  CHECK(wrong >= 20);
}

TEST_CASE("what --set makes wrong is not blamed on the file") {
  const TemporaryFolder folder;
  const std::string path = folder / "run.json";
  write_file(path, kGood);
  const auto error = [&](const std::vector<std::string>& sets) {
    return test::error_of([&] { (void)load_run_config(path, sets); });
  };
  CHECK(error({"optimizer=sgd", "optimizer.momentun=0.5"}) ==
        "--set: optimizer.momentun: unknown key; the nearest known name is \"momentum\"");
  CHECK(test::contains(error({"model.heads=x"}), "--set: model.heads: expected"));
  // A whole section that is set.
  CHECK(error({R"(optimizer={"type": "sgd", "nesterov": true})"}).starts_with("--set: optimizer"));
  // Two keys that no longer go together, of which the file has the one that is named.
  const std::string together = error({"train.log_logits=false", "loss=mse", "train.best=accuracy"});
  CHECK(together.starts_with("--set: train.best: "));
  write_file(path, R"({"extends": "good.json", "train": {"best": "accuracy"}})");
  write_file(folder / "good.json", kGood);
  CHECK(error({}).empty());
  CHECK(error({"loss=mse"}) == path +
                                   ": train.best: only cross_entropy has an accuracy; with mse "
                                   "leave it out, for the loss (with --set loss=mse)");
  // The file's own mistakes stay the file's.
  write_file(path, R"({"extends": "good.json", "sed": 1})");
  CHECK(error({"seed=2"}).starts_with(path + ": sed: unknown key"));
  const std::string both = error({"train.batch=-3"});
  CHECK(both.starts_with(path + ": 2 problems\n"));
  CHECK(test::contains(both, "\n  sed: unknown key"));
  CHECK(test::contains(both, "\n  --set train.batch: must be in "));
}

TEST_CASE("a whole run reads back the same from its resolved form") {
  const RunConfig run = with({"optimizer=sgd", "schedule=cosine", "schedule.warmup_steps=5",
                              "model.norm=rms_norm", "model.placement=deepnorm"});
  const Json json = config::to_json(run);
  CHECK(json["optimizer"]["lr"] == 0.001);
  CHECK(json["model"]["placement"]["type"] == "deepnorm");
  CHECK(json["loss"]["type"] == "cross_entropy");
  const RunConfig again = parse_run_config(config::parse_json(json.dump()));
  CHECK(config::to_json(again) == json);
  CHECK(config::hash(config::to_json(again)) == config::hash(json));
}

TEST_CASE("sizes that do not fit are told with both numbers, before anything is made") {
  const auto check = [](const std::vector<std::string>& sets, std::vector<std::string> parts) {
    const std::string message = error_with(sets);
    INFO("message: " << message);
    for (const std::string& part : parts) CHECK(test::contains(message, part));
  };
  check({"model.heads=7"}, {"model.heads: ", "7", "32"});
  check({"model.heads=0"}, {"model.heads: must be in [1, 1000000000]; got 0"});
  check({"model.heads=-1"}, {"model.heads: must be in [1, 1000000000]; got -1"});
  check({"model.heads=8192"}, {"model.heads: ", "8192", "32"});
  check({"model.kv_heads=3"}, {"model.kv_heads: ", "3", "8"});
  check({"model.kv_heads=0"}, {"model.kv_heads: must be in [1, 1000000000]; got 0"});
  check({"model.width=8", "model.position=rope"}, {"model.position: ", "1"});
  check({"model.norm={\"type\": \"group_norm\", \"groups\": 0}"}, {"model.norm.groups: ", "0"});
  check({"data.vocab=0"}, {"data.vocab: ", "0"});
  check({"model.dropout=1.5"}, {"model.dropout: ", "1.5"});
  check({"model.dropout=-0.1"}, {"model.dropout: ", "-0.1"});
  check({"optimizer={\"type\": \"adamw\", \"eps\": -1}"}, {"optimizer.eps: ", "-1"});
  check({"train.clip_norm=0"}, {"train.clip_norm: must be above 0; got 0"});
  // Sizes that no memory holds, and whose products would not fit 64 bits.
  for (const char* key : {"data.vocab", "data.length", "data.limit", "model.layers", "model.width",
                          "model.heads", "model.hidden", "model.head_width", "model.context",
                          "model.vocab", "train.batch", "train.accumulate"}) {
    check({fmt::format("{}=9223372036854775807", key)}, {key, "must be in ["});
  }
  check({"model.layers=0", "model.norm=[]"}, {"model.norm: expected one norm"});
}

TEST_CASE("the sections must agree") {
  CHECK(error_with({}).empty());
  CHECK(test::contains(error_with({"train.epochs=1", "data.limit=100"}),
                       "train.steps: expected either steps or epochs; got both"));
  CHECK(test::contains(error_with({"train={\"epochs\": 1}"}),
                       "train.epochs: data of type shift have no end"));
  CHECK(error_with({"train={\"epochs\": 1}", "data.limit=100"}).empty());
  CHECK(test::contains(error_with({"train={}"}), "got neither"));
  CHECK(test::contains(error_with({"data=fashion_mnist"}),
                       "model.type: a transformer model reads ids; data of type fashion_mnist"));
  CHECK(test::contains(
      error_with({"data=fashion_mnist", "model={\"type\":\"sequential\",\"layers\":[\"flatten\"]}",
                  "schedule={\"type\":\"cosine\",\"warmup_tokens\":100}"}),
      "schedule.warmup_tokens: data of type fashion_mnist have no tokens"));
  CHECK(test::contains(error_with({"name=a/b"}), "name: names a folder"));
  CHECK(test::contains(error_with({"name=\"a\\nb\""}), "name: names a folder"));
  CHECK(test::contains(error_with({"name=" + std::string(300, 'a')}), "at most 200 bytes"));
  CHECK(test::contains(error_with({"train.best=accuracy", "loss=mse"}),
                       "train.best: only cross_entropy has an accuracy"));
  CHECK(error_with({"train.ema=0.9", "train.recompute=true", "train.precision=bf16"}).empty());
  CHECK(test::contains(error_with({"train.precision=bf16", "train.probe_sharpness=true"}),
                       "train.probe_sharpness: second derivatives need f32 or f64"));
}

TEST_CASE("keys under the wrong roof are pointed home") {
  CHECK(test::contains(error_with({"learning_rate=0.1"}),
                       "learning_rate: unknown key; the nearest known key is \"optimizer.lr\""));
  CHECK(test::contains(error_with({"optimizer={\"type\":\"adamw\",\"weigth_decay\":0.1}"}),
                       "the nearest known name is \"weight_decay\""));
  CHECK(test::contains(error_with({"optimizer={\"type\":\"adamw\",\"momentum\":0.9}"}),
                       "unknown key of optimizer \"adamw\"; it belongs to sgd"));
  CHECK(test::contains(error_with({"batch_size=4"}), "the nearest known key is \"train.batch\""));
  const std::vector<std::pair<std::string, std::string>> cases = {
      // Of another section.
      {"train.lr=0.1", "train.lr: unknown key; the nearest known key is \"optimizer.lr\""},
      {"train.warmup_steps=5", "the nearest known key is \"schedule.warmup_steps\""},
      {"optimizer.batch_size=5", "the nearest known key is \"train.batch\""},
      {"data.weight_decay=0", "the nearest known key is \"optimizer.weight_decay\""},
      {"optimizer.momentum=0.9", "it belongs to sgd"},
      // Other programs' names.
      {"optimizer.learning_rate=0.1", "the nearest known key is \"lr\""},
      {"optimizer.beta2=0.9", "the nearest known key is \"betas\""},
      {"train.batch_size=5", "the nearest known key is \"batch\""},
      {"train.epochs_total=5", "the nearest known name is \"epochs\""},
      {"model.n_layer=5", "the nearest known key is \"layers\""},
      {"model.num_layers=5", "the nearest known key is \"layers\""},
      {"model.n_head=5", "the nearest known key is \"heads\""},
      {"model.d_model=5", "the nearest known key is \"width\""},
      {"model.hidden_size=5", "the nearest known key is \"width\""},
      {"train.warmup=5", "the nearest known key is \"schedule.warmup_steps\""},
      {"lr_scheduler=cosine", "the nearest known key is \"schedule\""},
      // The name of a value.
      {"model.rope=true", "model.rope: unknown key; it is a value: \"position\": \"rope\""},
      {"train.rope=true", "unknown key; it is a value: \"model.position\": \"rope\""},
      {"adamw=true", "unknown key; it is a value: \"optimizer\": \"adamw\""},
      {"model.swiglu=true", "unknown key; it is a value: \"activation\": \"swiglu\""},
      {"model.nonsense=1", "unknown key; known: type, kind, layers, "},
  };
  for (const auto& [set, part] : cases) {
    const std::string message = error_with({"optimizer=adamw", set});
    INFO(set << ": " << message);
    CHECK(test::contains(message, part));
  }
}

TEST_CASE("the shipped configurations are valid") {
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSource + "/configs")) {
    const fs::path& path = entry.path();
    // Studies, and what they extend, have a form of their own.
    if (path.extension() != ".json" || path.filename() == "schema.json" ||
        path.string().find("/experiments/") != std::string::npos) {
      continue;
    }
    INFO(path.string());
    std::vector<std::string> sets;
    CHECK(test::error_of([&] { (void)load_run_config(path.string(), sets); }) == "");
    ++count;
  }
  CHECK(count >= 1);
}

TEST_CASE("the generated files are fresh") {
  INFO("write it anew: build/release/bin/norma schema > configs/schema.json");
  CHECK((read_file(kSource + "/configs/schema.json") == run_config_schema()));  // not printed
  INFO("write it anew: build/release/bin/norma schema --markdown > docs/config.md");
  CHECK((read_file(kSource + "/docs/config.md") == run_config_markdown()));
}

// Every cut and many changes of one letter: an error or a configuration, never a crash.
TEST_CASE("broken texts are refused in good order") {
  const std::string good = config::to_json(with({})).dump();
  int refused = 0;
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    try {
      (void)parse_run_config(config::parse_json(good.substr(0, cut)));
    } catch (const config::ConfigError&) {
      ++refused;
    }
  }
  CHECK(refused == static_cast<int>(good.size()));
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char c : {'\0', '"', '{', ']', '9', '-', '\xff'}) {
      std::string text = good;
      text[i] = c;
      try {
        (void)parse_run_config(config::parse_json(text));
      } catch (const config::ConfigError&) {
        ++refused;
      }
    }
  }
  CHECK(refused > static_cast<int>(good.size()));
}

TEST_CASE("both steps and epochs: the advice names what is to be taken out") {
  const TemporaryFolder folder;
  const std::string path = folder / "run.json";
  const auto error = [&](const std::string& train, const std::vector<std::string>& sets) {
    Json json = config::parse_json(kGood);
    json["data"]["limit"] = 100;
    json["train"] = config::parse_json(train);
    write_file(path, json.dump());
    return test::error_of([&] { (void)load_run_config(path, sets); });
  };
  const std::string both = "train.steps: expected either steps or epochs; got both";
  const char* const steps = R"({"steps": 10})";
  const char* const epochs = R"({"epochs": 2})";
  const std::string plain = both + "; leave one of them out, or set it to null";
  CHECK(error(R"({"steps": 10, "epochs": 2})", {}) == path + ": " + plain);
  CHECK(error(steps, {"train.epochs=2"}) ==
        path + ": " + plain +
            "; --set train.steps=null takes out what the file gives (with --set train.epochs=2)");
  CHECK(error(epochs, {"train.steps=10"}) ==
        "--set: " + plain + "; --set train.epochs=null takes out what the file gives");
  // The advice helps.
  CHECK(error(steps, {"train.epochs=2", "train.steps=null"}).empty());
  CHECK(error(epochs, {"train.steps=10", "train.epochs=null"}).empty());
  // Given by --set alone, or in the file alone, it would not.
  CHECK(error(steps, {"train.steps=5", "train.epochs=2"}) == "--set: " + plain);
  CHECK(error(steps, {R"(train={"steps": 5, "epochs": 2})"}) == "--set: " + plain);
  CHECK(error(R"({"steps": 10, "epochs": 2})", {"train.steps=5"}) == path + ": " + plain);
  CHECK(error(R"({"steps": 10, "epochs": 2})", {"seed=5"}) == path + ": " + plain);
  // Data without an end have no epochs: without the steps it would be no better.
  CHECK(error(steps, {"train.epochs=2", "data.limit=null"}) ==
        path + ": " + plain + " (with --set train.epochs=2 --set data.limit=null)");
}

}  // namespace
}  // namespace norma
