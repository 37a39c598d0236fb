// CSV files: their form, the errors with line and column, classes and numbers.
#include "apps/data/csv_data_set.h"

#include <nlohmann/json.hpp>

#include "apps/data/data_sets.h"
#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

using Fields = std::vector<std::string>;

Fields fields(const std::string& text) {
  Fields all;
  for (const CsvRow& row : parse_csv(text, "x.csv")) {
    all.push_back(std::to_string(row.line) + ":");
    for (const std::string& field : row.fields) all.push_back(field);
  }
  return all;
}

TEST_CASE("csv: quotes, line breaks of all kinds, spaces, empty lines") {
  CHECK(fields("a,b\n1,2\n") == Fields{"1:", "a", "b", "2:", "1", "2"});
  CHECK(fields("\xef\xbb\xbf"
               "a,b\r\n1,2") == Fields{"1:", "a", "b", "2:", "1", "2"});
  CHECK(fields("\"a \"\"x\"\"\", b c \n\n\"1\n2\" ,\n") ==
        Fields{"1:", "a \"x\"", "b c", "3:", "1\n2", ""});
  CHECK(fields("a,b\r1,2\r") == Fields{"1:", "a", "b", "2:", "1", "2"});
  NORMA_CHECK_ERROR(fields(std::string("\xff\xfe"
                                       "a\0,\0",
                                       6)),
                    "if it is UTF-16 or packed");
  NORMA_CHECK_ERROR(fields("a,b\n1,2,3\n"),
                    "x.csv: line 2: expected 2 fields, as in line 1; got 3");
  NORMA_CHECK_ERROR(fields("a,b\n1,\"2\n3"), "x.csv: line 2: the quote that begins there does not");
  NORMA_CHECK_ERROR(fields("\"a\"b,c\n"), "x.csv: line 1: expected a comma or the end of the line");
  NORMA_CHECK_ERROR(fields("\n\n"), "x.csv: there are no rows in it");
  CHECK(csv_field("a,\"b\"") == "\"a,\"\"b\"\"\"");
}

struct Fixture {
  TemporaryFolder folder;
  std::unique_ptr<DataSet> make(const std::string& text, const std::string& more = {}) {
    write_file(folder / "x.csv", text);
    return make_data_set(config::parse<DataConfig>(config::parse_json(fmt::format(
                             R"({{"type": "csv", "path": "{}/x.csv" {}}})", folder.path(), more))),
                         {});
  }
};

TEST_CASE("csv: classes by name, features scaled by the training part") {
  Fixture f;
  const auto data = f.make("a,b,kind\n1,10,dog\n3,10,cat\n5,10,dog\n", R"(, "validation": 0)");
  CHECK(data->spec().input == Shape{2});
  CHECK(data->spec().classes == 2);
  CHECK(data->record().class_names == Fields{"cat", "dog"});
  CHECK(data->record().columns == Fields{"a", "b"});
  CHECK(data->record().target_column == "kind");
  const Batch batch = data->batch(Part::train, 0, 3);
  CHECK(batch.targets.to_ids() == std::vector<std::int64_t>{1, 0, 1});
  const std::vector<double> x = batch.inputs.to_vector();
  CHECK(x[0] == Approx(-std::sqrt(1.5)));
  CHECK(x[1] == 0);  // a feature that never changes
  CHECK(x[2] == Approx(0).margin(1e-7));
  // Numbers as classes are ordered as numbers; the target may be told by number.
  const auto numbers = f.make("10,1\n9,2\n10,3\n", R"(, "target": 1, "validation": 0)");
  CHECK(numbers->record().class_names == Fields{"9", "10"});
  CHECK(numbers->record().columns.empty());
  CHECK(numbers->batch(Part::train, 0, 3).targets.to_ids() == std::vector<std::int64_t>{1, 0, 1});
}

TEST_CASE("csv: regression has one number a row") {
  Fixture f;
  const auto data =
      f.make("y,x\n1.5,0\n-2e3,1\n", R"(, "target": "y", "task": "regression", "validation": 0)");
  CHECK(data->spec().classes == 0);
  CHECK(data->spec().target == Shape{1});
  const Batch batch = data->batch(Part::train, 0, 2);
  CHECK(batch.targets.shape() == Shape{2, 1});
  CHECK(batch.targets.to_vector() == std::vector<double>{1.5, -2000});
}

TEST_CASE("csv: what is wrong is told with its line and column") {
  Fixture f;
  const std::string path = f.folder / "x.csv";
  NORMA_CHECK_ERROR(f.make("a,b,y\n1,2,u\n1,,v\n"),
                    path + ": line 3, column 2 (\"b\"): the value is missing; fill it in");
  NORMA_CHECK_ERROR(f.make("a,b,y\n1,2,u\n1,x,v\n"),
                    path + ": line 3, column 2 (\"b\"): expected a number; got \"x\"");
  NORMA_CHECK_ERROR(f.make("a,b,y\n1,nan,u\n"), "line 2, column 2 (\"b\"): expected a number");
  NORMA_CHECK_ERROR(f.make("a,2,y\n1,2,u\n"),
                    "line 1, column 1: expected a number; got \"a\"; if the line holds names");
  NORMA_CHECK_ERROR(f.make("a,b,y\n1,2,\n"), "line 2, column 3: the class is missing");
  NORMA_CHECK_ERROR(f.make("a,a,y\n1,2,u\n"), "line 1: the column \"a\" stands twice");
  NORMA_CHECK_ERROR(f.make("price,b\n1,2\n", R"(, "target": "prise")"),
                    "has no column \"prise\"; the nearest known name is \"price\"");
  NORMA_CHECK_ERROR(f.make("1,2\n3,4\n", R"(, "target": "y")"), "has no line of names");
  NORMA_CHECK_ERROR(f.make("1,2\n3,4\n", R"(, "target": 3)"), "has columns 1 to 2; got 3");
  NORMA_CHECK_ERROR(f.make("a,b\n"), "there are no rows below the names");
  NORMA_CHECK_ERROR(f.make("1\n2\n"), "expected features beside the target");
  NORMA_CHECK_ERROR(f.make("1,2\n"), "csv: 1 samples leave none to train on");
  NORMA_CHECK_ERROR(f.make(""), "there are no rows in it");
  NORMA_CHECK_ERROR(f.make("a;b;y\n1;2;u\n3;4;v\n"), "\"a;b;y\"; separate the columns by commas");
  NORMA_CHECK_ERROR(f.make("a,b,y\n1,red,u\n2,blue,v\n"), "words are no features");
  NORMA_CHECK_ERROR(f.make("a,y\n1,0.5\n2,1\n3,1.5\n4,1\n"),
                    "the target \"y\" has 3 different numbers in 4 rows; give task: regression");
  CHECK_NOTHROW(f.make("a,y\n1,0.5\n2,1\n3,0.5\n4,1\n"));
  const std::string words = "a,b,y\n1,2,u\n3,4,v\n";
  const char* const regression = R"(, "task": "regression")";
  NORMA_CHECK_ERROR(f.make(words, regression),
                    "line 2, column 3 (\"y\"): the target must be a number; got \"u\"; to predict "
                    "a class, give task: classification");
  CHECK_FALSE(test::contains(test::error_of([&] { (void)f.make(words, regression); }), "features"));
  NORMA_CHECK_ERROR(f.make("a,b,y\n1,1e39,u\n2,0,v\n"), "1e39 is beyond the range of f32");
  NORMA_CHECK_ERROR(f.make("a,b,y\n1,2,u\n3,4,u\n"), "all labels are of one class");
}

}  // namespace
}  // namespace norma
