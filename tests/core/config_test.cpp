// The configuration system, on a small example that has every kind of field.
#include "core/config/config.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

using config::ConfigError;
using config::Fields;
using config::Json;

// --- The example. ------------------------------------------------------------------------------
enum class Precision { f32, bf16, f64 };
constexpr auto config_names(Precision) {
  return std::to_array<std::string_view>({"f32", "bf16", "f64"});
}

struct SgdConfig {
  static constexpr const char* type = "sgd";
  static constexpr const char* doc = "Stochastic gradient descent.";
  static constexpr const char* source = "by hand";
  double lr = 1e-3;
  double momentum = 0;
  static Fields fields() {
    using namespace config;
    return {
        field("lr", &SgdConfig::lr, "Rate of a step.", above(0), also_called("learning_rate")),
        field("momentum", &SgdConfig::momentum, "Share of the last step.", at_least(0), below(1))};
  }
};

struct AdamWConfig {
  static constexpr const char* type = "adamw";
  static constexpr const char* doc = "Adam with decoupled weight decay.";
  static constexpr const char* source = "by hand";
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double weight_decay = 0.01;
  static Fields fields() {
    using namespace config;
    return {
        field("lr", &AdamWConfig::lr, "Rate of a step.", above(0), also_called("learning_rate")),
        field("betas", &AdamWConfig::betas, "Of the two means.", at_least(0), below(1)),
        field("weight_decay", &AdamWConfig::weight_decay, "Shrinking.", at_least(0))};
  }
};

struct OptimizerConfig : config::OneOf<SgdConfig, AdamWConfig> {
  static constexpr const char* family = "optimizer";
  static constexpr const char* family_doc = "How a gradient becomes a step.";
  using OneOf::OneOf;
};

struct LinearConfig {
  static constexpr const char* type = "linear";
  static constexpr const char* doc = "y = x W^T + b.";
  static constexpr const char* source = "by hand";
  std::int64_t out = 0;
  bool bias = true;
  static Fields fields() {
    using namespace config;
    return {field("out", &LinearConfig::out, "Width of the output.", at_least(1), required()),
            field("bias", &LinearConfig::bias, "Add b.")};
  }
};

struct ReluConfig {
  static constexpr const char* type = "relu";
  static constexpr const char* doc = "max(x, 0).";
  static constexpr const char* source = "by hand";
  static Fields fields() { return {}; }
};

// A layer that contains layers: the family is declared ahead.
struct LayerConfig;
struct ResidualConfig {
  static constexpr const char* type = "residual";
  static constexpr const char* doc = "x + body(x).";
  static constexpr const char* source = "by hand";
  std::vector<LayerConfig> body;
  static Fields fields();
};

using ActivationTypes = config::TypeList<ReluConfig>;
struct LayerConfig : config::OneOf<LinearConfig, ActivationTypes, ResidualConfig> {
  static constexpr const char* family = "layer";
  static constexpr const char* family_doc = "A layer of a sequential model.";
  using OneOf::OneOf;
};
Fields ResidualConfig::fields() {
  using namespace config;
  return {field("body", &ResidualConfig::body, "What is added.", not_empty(), required())};
}

struct ModelConfig {
  std::vector<LayerConfig> layers;
  std::int64_t width = 32;
  std::int64_t heads = 2;
  std::optional<std::variant<std::int64_t, std::vector<std::int64_t>>> window;
  static Fields fields() {
    using namespace config;
    return {field("layers", &ModelConfig::layers, "In order."),
            field("width", &ModelConfig::width, "Features.", at_least(1)),
            field("heads", &ModelConfig::heads, "Of attention.", at_least(1)),
            field("window", &ModelConfig::window, "One, or one a layer.", at_least(1))};
  }
  void check(config::Problems& problems, const std::string& path) const {
    if (width % heads != 0) {
      problems.add(config::join(path, "heads"), "must divide the width; got {} for a width of {}",
                   heads, width);
    }
  }
};

struct ExampleConfig {
  std::string name = "run";
  std::int64_t batch = 8;
  Precision precision = Precision::f32;
  ModelConfig model;
  OptimizerConfig optimizer = AdamWConfig{};
  static Fields fields() {
    using namespace config;
    return {field("name", &ExampleConfig::name, "Of the run.", not_empty()),
            field("batch", &ExampleConfig::batch, "Samples a step.", between(1, 1e6)),
            field("precision", &ExampleConfig::precision, "Of the numbers."),
            field("model", &ExampleConfig::model, "What is trained."),
            field("optimizer", &ExampleConfig::optimizer, "How.")};
  }
};

ExampleConfig read(const std::string& text) {
  return config::parse<ExampleConfig>(config::parse_json(text));
}
std::string error_of(const std::string& text) {
  return test::error_of([&] { (void)read(text); });
}

// --- Reading. ----------------------------------------------------------------------------------
TEST_CASE("a configuration is read, and what is absent keeps its default") {
  const ExampleConfig c = read(R"(// a comment
    {"$schema": "schema.json", "batch": 16, "precision": "bf16", /* another */
     "model": {"layers": [{"type": "linear", "out": 3}, "relu",
               {"type": "residual", "body": ["relu", {"type": "residual", "body": ["relu"]}]}],
               "window": [4, 8]},
     "optimizer": {"type": "adamw", "betas": [0.8, 0.9]}})");
  CHECK(c.name == "run");
  CHECK(c.batch == 16);
  CHECK(c.precision == Precision::bf16);
  REQUIRE(c.model.layers.size() == 3);
  REQUIRE(c.model.layers[0].get_if<LinearConfig>());
  CHECK(c.model.layers[0].get_if<LinearConfig>()->out == 3);
  CHECK(c.model.layers[0].get_if<LinearConfig>()->bias);
  CHECK(std::string(c.model.layers[1].type()) == "relu");
  const auto* residual = c.model.layers[2].get_if<ResidualConfig>();
  REQUIRE(residual);
  CHECK(residual->body[1].get_if<ResidualConfig>()->body.size() == 1);
  CHECK(std::get<1>(*c.model.window) == std::vector<std::int64_t>{4, 8});
  const auto* adamw = c.optimizer.get_if<AdamWConfig>();
  REQUIRE(adamw);
  CHECK(adamw->betas == std::array{0.8, 0.9});
  CHECK(adamw->weight_decay == 0.01);
  CHECK(std::string(read(R"({"optimizer": "sgd"})").optimizer.type()) == "sgd");
  CHECK(read(R"({"batch": 1e3})").batch == 1000);
  CHECK(!read(R"({"model": {"window": null}})").model.window);
}

TEST_CASE("every wrong value is told, with its path and what was expected") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"batch": 0})", "batch: must be in [1, 1000000]; got 0"},
      {R"({"batch": 2.5})", "batch: expected an integer; got 2.5"},
      {R"({"batch": "8"})",
       "batch: expected an integer number; got \"8\"; write it without quotes"},
      {R"({"batch": true})", "batch: expected an integer number; got true"},
      {R"({"batch": null})", "batch: expected an integer number; got null"},
      {R"({"batch": 18446744073709551615})",
       "batch: must be at most 9223372036854775807; got 18446744073709551615"},
      {R"({"name": 3})", "name: expected a string; got 3; write it in quotes"},
      {R"({"name": ""})", "name: must not be empty; got \"\""},
      {R"({"bacth": 8})", "bacth: unknown key; the nearest known name is \"batch\""},
      {R"({"Batch": 8})", "Batch: unknown key; the nearest known name is \"batch\""},
      {R"({"batch_size": 8})", "batch_size: unknown key; the nearest known name is \"batch\""},
      {R"({"learning_rate": 1})",
       "learning_rate: unknown key; the nearest known key is \"optimizer.lr\""},
      {R"({"lr": 1})", "lr: unknown key; the nearest known key is \"optimizer.lr\""},
      // In another section, and a value in the place of a key.
      {R"({"model": {"lr": 1}})",
       "model.lr: unknown key; the nearest known key is \"optimizer.lr\""},
      {R"({"sgd": 1})", "sgd: unknown key; it is a value: \"optimizer\": \"sgd\""},
      {R"({"zzz": 1})", "zzz: unknown key; known: name, batch, precision, model, optimizer"},
      {R"({"precision": "bf61"})",
       "precision: unknown name \"bf61\"; the nearest known name is \"bf16\""},
      {R"({"precision": 16})", "precision: expected \"f32\" or \"bf16\" or \"f64\"; got 16"},
      {R"({"optimizer": {"type": "adamv"}})",
       "optimizer.type: unknown type \"adamv\"; the nearest known name is \"adamw\""},
      {R"({"optimizer": "adamv"})", "optimizer.type: unknown type \"adamv\""},
      {R"({"optimizer": {"lr": 1}})", "optimizer.type: missing; known: sgd, adamw"},
      {R"({"optimizer": {"type": 1}})",
       "optimizer.type: expected the name of a type; got 1; known: sgd, adamw"},
      {R"({"optimizer": 1})",
       "optimizer: expected a type of optimizer (a name, or an object); got 1"},
      {R"({"optimizer": {"type": "adamw", "lr": "1e-3"}})",
       "optimizer.lr: expected a number; got \"1e-3\"; write it without quotes"},
      {R"({"optimizer": {"type": "adamw", "lr": 0}})", "optimizer.lr: must be above 0; got 0"},
      {R"({"optimizer": {"type": "adamw", "weigth_decay": 0.1}})",
       "optimizer.weigth_decay: unknown key; the nearest known name is \"weight_decay\""},
      {R"({"optimizer": {"type": "adamw", "tpye": "sgd"}})",
       "optimizer.tpye: unknown key; the nearest known name is \"type\""},
      {R"({"optimizer": {"type": "adamw", "momentum": 0.9}})",
       "optimizer.momentum: unknown key of optimizer \"adamw\"; it belongs to sgd"},
      {R"({"optimizer": {"type": "adamw", "learning_rate": 1}})",
       "optimizer.learning_rate: unknown key; the nearest known key is \"lr\""},
      {R"({"optimizer": {"type": "adamw", "betas": [0.9]}})",
       "optimizer.betas: expected 2 elements; got 1"},
      {R"({"optimizer": {"type": "adamw", "betas": [0.9, 1]}})",
       "optimizer.betas.1: must be in [0, 1); got 1"},
      {R"({"model": []})", "model: expected an object; got []"},
      {R"({"model": {"layers": ["linear"]}})", "model.layers.0.out: missing; expected an integer"},
      {R"({"model": {"layers": ["relu", {"type": "residual", "body": []}]}})",
       "model.layers.1.body: expected at least 1 element; got 0"},
      {R"({"model": {"layers": [{"type": "residual", "body": ["relv"]}]}})",
       "model.layers.0.body.0.type: unknown type \"relv\"; the nearest known name is \"relu\""},
      {R"({"model": {"window": "4"}})",
       "model.window: expected null or an integer or a list, each an integer; got \"4\""},
      {R"({"model": {"heads": 3}})", "model.heads: must divide the width; got 3 for a width of 32"},
      {R"({"model": {"heads": 0}})", "model.heads: must be at least 1; got 0"},
      {R"([])", "expected an object; got []"},
  };
  for (const auto& [text, expected] : cases) {
    INFO(text);
    const std::string message = error_of(text);
    INFO("message: " << message);
    CHECK(message.substr(0, expected.size()) == expected);
  }
}

TEST_CASE("all problems are told at once") {
  try {
    (void)config::parse<ExampleConfig>(
        config::parse_json(R"({"bacth": 1, "optimizer": {"type": "sgd", "lr": -1}, "batch": 0})"),
        "", "x.json");
    FAIL("accepted");
  } catch (const ConfigError& e) {
    REQUIRE(e.problems().size() == 3);
    CHECK(e.problems()[0].path == "bacth");
    CHECK(e.problems()[1].path == "optimizer.lr");
    CHECK(e.problems()[2].path == "batch");
    CHECK(std::string(e.what()) ==
          "x.json: 3 problems\n"
          "  bacth: unknown key; the nearest known name is \"batch\"\n"
          "  optimizer.lr: must be above 0; got -1\n"
          "  batch: must be in [1, 1000000]; got 0");
  }
}

// --- Text. -------------------------------------------------------------------------------------
TEST_CASE("text that is not JSON is refused with its place") {
  NORMA_CHECK_ERROR(config::parse_json(""), "the text is empty");
  NORMA_CHECK_ERROR(config::parse_json(" \n// nothing\n"), "the text is empty");
  NORMA_CHECK_ERROR(config::parse_json("{\"name\": \"x\","), "line 1, column 14");
  NORMA_CHECK_ERROR(config::parse_json("{\n\"a\": 1,\n}"), "line 3");
  NORMA_CHECK_ERROR(config::parse_json("{\"a\": 1,}"), "is there a comma too many before it?");
  NORMA_CHECK_ERROR(config::parse_json("[1, 2,]"), "is there a comma too many before it?");
  NORMA_CHECK_ERROR(config::parse_json("{\"a\": 1 \"b\": 2}"), "is a comma missing before it?");
  NORMA_CHECK_ERROR(config::parse_json("[1 2]"), "is a comma missing before it?");
  NORMA_CHECK_ERROR(config::parse_json("{\"a\": 1} 2"), "line 1");
  NORMA_CHECK_ERROR(config::parse_json("{\"a\": NaN}"), "line 1");
  NORMA_CHECK_ERROR(config::parse_json("{\n\"a\": 1e999}"), "line 2");
  NORMA_CHECK_ERROR(config::parse_json("{\"a\": \"\xff\"}"), "line 1");
  NORMA_CHECK_ERROR(config::parse_json("{\"a\": 1}\n/* open"), "line 2");
  NORMA_CHECK_ERROR(config::parse_json(std::string(100000, '[')), "more than 100 levels");
  CHECK(config::parse_json("\xEF\xBB\xBF{\"a\": 1}\r\n")["a"] == 1);
}

// nlohmann/json#375.
TEST_CASE("a key that stands twice is refused at every level") {
  NORMA_CHECK_ERROR(config::parse_json("{\"lr\": 1, \"b\": 2,\n\"lr\": 3}"),
                    "lr: the key stands twice, in line 1 and in line 2");
  NORMA_CHECK_ERROR(config::parse_json(R"({"a": [0, {"b": {"c": 1, "c": 1}}]})"),
                    "a.1.b.c: the key stands twice");
  CHECK(config::parse_json(R"({"a": {"x": 1}, "b": {"x": 1}})").size() == 2);
}

// --- extends, --set. ---------------------------------------------------------------------------
void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST_CASE("extends merges objects, replaces lists, and refuses a circle") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "base");
  write(folder / "base/a.json",
        R"({"name": "a", "batch": 4, "optimizer": {"type": "adamw", "lr": 0.1},
            "model": {"layers": ["relu", "relu"], "width": 8}})");
  write(folder / "b.json", R"({"extends": "base/a.json", "name": "b", "optimizer": {"lr": 0.2}})");
  write(folder / "c.json",
        R"({"extends": "b.json", "optimizer": {"type": "sgd"}, "model": {"layers": ["relu"]}})");
  const Json b = config::load_json(folder / "b.json");
  CHECK(b == Json::parse(R"({"name": "b", "batch": 4, "optimizer": {"type": "adamw", "lr": 0.2},
                             "model": {"layers": ["relu", "relu"], "width": 8}})"));
  const auto c = config::parse<ExampleConfig>(config::load_json(folder / "c.json"));
  CHECK(c.name == "b");
  CHECK(c.model.width == 8);
  CHECK(c.model.layers.size() == 1);
  CHECK(c.optimizer.get_if<SgdConfig>()->lr == 1e-3);  // another type: its keys do not merge

  write(folder / "x.json", R"({"extends": "y.json"})");
  write(folder / "y.json", R"({"extends": "./x.json"})");
  NORMA_CHECK_ERROR(config::load_json(folder / "x.json"),
                    "extends: a circle: x.json -> y.json -> x.json");
  write(folder / "z.json", R"({"extends": "absent.json"})");
  NORMA_CHECK_ERROR(config::load_json(folder / "z.json"), "absent.json: cannot be opened");
  write(folder / "w.json", R"({"extends": 1})");
  NORMA_CHECK_ERROR(config::load_json(folder / "w.json"), "extends: expected a path");
  NORMA_CHECK_ERROR(config::load_json(folder.path()), "cannot be read");
}

TEST_CASE("--set changes one value by its path") {
  Json json = config::parse_json(
      R"({"batch": 4, "optimizer": "adamw", "model": {"layers": [{"type": "linear", "out": 3}]}})");
  config::apply_sets(json,
                     std::vector<std::string>{"batch=5", "model.layers.0.out=7", "name=a=b",
                                              "optimizer.betas=[0.5, 0.6]", "model.width=64"});
  const auto c = config::parse<ExampleConfig>(json);
  CHECK(c.batch == 5);
  CHECK(c.name == "a=b");
  CHECK(c.model.layers[0].get_if<LinearConfig>()->out == 7);
  CHECK(c.optimizer.get_if<AdamWConfig>()->betas == std::array{0.5, 0.6});
  CHECK(c.model.width == 64);
  config::apply_set(json, "precision=f64");
  CHECK(json["precision"] == "f64");
  NORMA_CHECK_ERROR(config::apply_set(json, "batch"), "expected KEY=VALUE; got \"batch\"");
  NORMA_CHECK_ERROR(config::apply_set(json, "=1"), "expected KEY=VALUE");
  NORMA_CHECK_ERROR(config::apply_set(json, "a..b=1"), "the path has an empty part");
  NORMA_CHECK_ERROR(config::apply_set(json, "model.layers.1.out=1"),
                    "model.layers is a list of 1; got 1 where an index from 0 belongs");
  NORMA_CHECK_ERROR(config::apply_set(json, "model.layers.x=1"), "got x where an index");
  NORMA_CHECK_ERROR(config::apply_set(json, "batch.x=1"), "batch is 5, which has no keys");
  NORMA_CHECK_ERROR(config::apply_set(json, "model={\"a\":1"), "--set model");
  NORMA_CHECK_ERROR(config::apply_set(json, "model={\"a\":1,\"a\":2}"), "twice");
  NORMA_CHECK_ERROR(config::apply_set(json, "name=\xff"), "not valid UTF-8");
}

// --- Writing. ----------------------------------------------------------------------------------
TEST_CASE("the resolved configuration has every default, and reads back the same") {
  const auto c = read(
      R"({"model": {"layers": [{"type": "residual", "body": ["relu"]}], "window": 4},
          "optimizer": {"type": "sgd", "lr": 0.1, "momentum": 0.30000000000000004}})");
  const Json json = config::to_json(c);
  CHECK(json.dump() ==
        R"({"name":"run","batch":8,"precision":"f32","model":{"layers":[{"type":"residual",)"
        R"("body":[{"type":"relu"}]}],"width":32,"heads":2,"window":4},)"
        R"("optimizer":{"type":"sgd","lr":0.1,"momentum":0.30000000000000004}})");
  const auto again = config::parse<ExampleConfig>(config::parse_json(json.dump()));
  CHECK(config::to_json(again) == json);
  for (const double x : {1e-3, 0.1, 1.0 / 3, 5e-324, 0.9999999999999999}) {
    SgdConfig s;
    s.lr = x;
    CHECK(config::parse<SgdConfig>(config::parse_json(config::to_json(s).dump())).lr == x);
  }
}

TEST_CASE("the hash depends on the values, and not on order or spelling") {
  const auto hash_of = [](const std::string& text) {
    return config::hash(config::to_json(read(text)));
  };
  const std::string h = hash_of(R"({"batch": 16, "optimizer": {"type": "adamw", "lr": 0.001}})");
  CHECK(h.size() == 16);
  CHECK(h == hash_of(R"({"optimizer": "adamw", "batch": 16.0})"));
  CHECK(h != hash_of(R"({"optimizer": "adamw", "batch": 17})"));
  // FNV-1a of the text {"a":1,"b":[true,null]}, by an independent program.
  CHECK(config::hash(Json::parse(R"({"b": [true, null], "a": 1})")) == "595cf28929e773ea");
}

TEST_CASE("the difference of two configurations names the paths") {
  const Json a = config::to_json(read(R"({"model": {"layers": ["relu"]}})"));
  const Json b = config::to_json(
      read(R"({"batch": 9, "model": {"layers": [{"type": "linear", "out": 2}], "heads": 4}})"));
  CHECK(config::to_text(config::difference(a, b)) ==
        "batch: 8 -> 9\n"
        "model.layers.0.type: \"relu\" -> \"linear\"\n"
        "model.layers.0.out: (absent) -> 2\n"
        "model.layers.0.bias: (absent) -> true\n"
        "model.heads: 2 -> 4\n");
  CHECK(config::difference(a, a).empty());
}

// --- Schema and documentation. -----------------------------------------------------------------
TEST_CASE("the schema says keys, ranges, names and families") {
  const Json s = config::schema<ExampleConfig>("example");
  CHECK(s["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(s["additionalProperties"] == false);
  const Json& p = s["properties"];
  CHECK(p["batch"] == Json::parse(R"({"type": "integer", "minimum": 1, "maximum": 1000000,
                                      "description": "Samples a step.", "default": 8})"));
  CHECK(p["precision"]["enum"] == Json::parse(R"(["f32", "bf16", "f64"])"));
  CHECK(p["optimizer"]["$ref"] == "#/$defs/optimizer");
  const Json& layer = s["$defs"]["layer"]["oneOf"];
  CHECK(layer[0]["enum"] == Json::parse(R"(["relu"])"));  // the others have keys that must be given
  CHECK(layer[1]["properties"]["type"]["const"] == "linear");
  CHECK(layer[1]["required"] == Json::parse(R"(["type", "out"])"));
  CHECK(layer[3]["properties"]["body"]["items"]["$ref"] == "#/$defs/layer");
  const Json& betas = s["$defs"]["optimizer"]["oneOf"][2]["properties"]["betas"];
  CHECK(betas["minItems"] == 2);
  CHECK(betas["items"]["exclusiveMaximum"] == 1);
}

TEST_CASE("the documentation has a table a structure and every family once") {
  const std::string text = config::markdown<ExampleConfig>("Example");
  for (const char* expected :
       {"# Example\n", "| `batch` | an integer | `8` | in [1, 1000000] | Samples a step. |\n",
        "\n## layer\n\nA layer of a sequential model.\n",
        "### `adamw`\n\nAdam with decoupled weight decay. Source: by hand.\n",
        "| `out` | an integer | must be given | at least 1 | Width of the output. |\n"}) {
    INFO(text);
    CHECK(test::contains(text, expected));
  }
  CHECK(text.find("## layer\n") == text.rfind("## layer\n"));
  CHECK(config::families(config::type_of<ExampleConfig>()).size() == 2);
}

struct LevelConfig {
  double level = 1;
  static config::Fields fields() {
    return {config::field("level", &LevelConfig::level, "The level.")};
  }
};
struct LevelsConfig {
  static constexpr const char* type = "levels";
  static constexpr const char* doc = "Levels.";
  static constexpr const char* source = "by hand";
  std::optional<LevelConfig> one;
  std::vector<LevelConfig> many;
  std::optional<std::vector<std::string>> names;
  static config::Fields fields() {
    using namespace config;
    return {field("one", &LevelsConfig::one, "One."), field("many", &LevelsConfig::many, "Many."),
            field("names", &LevelsConfig::names, "Names.")};
  }
};

struct LevelFamily : config::OneOf<LevelsConfig> {
  static constexpr const char* family = "levels";
  static constexpr const char* family_doc = "Levels.";
  using OneOf::OneOf;
};
struct HolderConfig {
  LevelFamily levels;
  static config::Fields fields() {
    return {config::field("levels", &HolderConfig::levels, "Levels.")};
  }
};

TEST_CASE("the documentation tells a list from an object, and what may be null") {
  const std::string text = config::markdown<HolderConfig>("Holder");
  INFO(text);
  for (const char* expected :
       {"| `one` | an object or null |", "| `many` | a list, each an object |",
        "| `names` | null or a list, each a string |", "| `one.level` |", "| `many[].level` |"}) {
    CHECK(test::contains(text, expected));
  }
}

// --- Names. ------------------------------------------------------------------------------------
TEST_CASE("edit distance and the nearest name") {
  CHECK(config::edit_distance("", "abc") == 3);
  CHECK(config::edit_distance("kitten", "sitting") == 3);
  CHECK(config::edit_distance("bacth", "batch") == 1);
  CHECK(config::edit_distance("ADAM", "adam") == 0);
  CHECK(config::nearest_name("adamv", {"sgd", "adam", "adamw"}) == "adamw");
  CHECK(config::nearest_name("adanw", {"sgd", "adam", "adamw"}) == "adamw");
  CHECK(config::nearest_name("optimiser", {"name", "optimizer"}) == "optimizer");
  CHECK(config::nearest_name("xyz", {"name", "optimizer"}).empty());
  CHECK(config::nearest_name("", {"a"}).empty());
}

TEST_CASE("a NUL byte does not end a configuration") {
  NORMA_CHECK_ERROR(config::parse_json(std::string_view("{}\0garbage{", 11)), "holds a NUL byte");
}

}  // namespace
}  // namespace norma
