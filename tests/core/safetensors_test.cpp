// The safetensors reader and writer. See safetensors/safetensors#414, safetensors/safetensors#401,
// MinishLab/model2vec#341, Blaizzy/mlx-audio#902, Lightning-AI/pytorch-lightning#688.
#include "core/safetensors.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>

#include "core/autograd.h"
#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

using test::contains;
using test::error_of;

// A file with this header and so many bytes of data.
std::string make_file(const std::string& header, std::size_t data_bytes = 0) {
  std::string text(8, '\0');
  const std::uint64_t n = header.size();
  for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(n >> (8 * i));
  return text + header + std::string(data_bytes, '\1');
}

std::string length_prefix(std::uint64_t n) {
  std::string text(8, '\0');
  for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(n >> (8 * i));
  return text;
}

std::string error_of_file(const TemporaryFolder& folder, const std::string& content) {
  const std::string path = folder / "x.safetensors";
  write_file(path, content);
  std::string error = error_of([&] { (void)SafetensorsFile(path); });
  const std::string prefix = path + ": ";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

const char* const kTensorA = R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})";

TEST_CASE("safetensors: every dtype, empty and scalar tensors, and odd names come back") {
  const TemporaryFolder folder;
  const std::string path = folder / "all.safetensors";
  const std::vector<NamedTensor> tensors = {
      {"f32", Tensor::from({2, 3}, {1, 2, 3, 4, 5, 6})},
      {"f64", Tensor::from({2}, {0.1, -1e300}, DType::f64)},
      {"bf16", Tensor::from({3}, {1, 2.5, -3}, DType::bf16)},
      {"f16", Tensor::from({3}, {1, 2.5, -3}, DType::f16)},
      {"i32", Tensor::from({1}, {-7}, DType::i32)},
      {"i64", Tensor::from({1, 1}, {1LL << 40}, DType::i64)},
      {"u8", Tensor::from({5}, {0, 1, 2, 254, 255}, DType::u8)},
      {"empty", Tensor::zeros({0, 3})},
      {"scalar", Tensor::scalar(4.25)},
      {"a \"quoted\"\nname \xc3\xa9\\", Tensor::scalar(1)},
  };
  const Metadata metadata = {{"step", "17"}, {"odd \"key\"", "line\nline \xe2\x82\xac"}};
  write_safetensors(path, tensors, metadata);

  const SafetensorsFile file(path);
  CHECK(file.metadata() == metadata);
  CHECK(file.entries().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    const Tensor got = file.read(name);
    CHECK(got.dtype() == tensor.dtype());
    CHECK(got.shape() == tensor.shape());
    CHECK(got.to_vector() == tensor.to_vector());
  }
  CHECK(file.find("nothing") == nullptr);
  CHECK(contains(error_of([&] { (void)file.read("nothing"); }), "none of that name"));
  // The same tensors in another order give the same bytes.
  const std::string bytes = read_file(path);
  write_safetensors(path, std::vector<NamedTensor>(tensors.rbegin(), tensors.rend()), metadata);
  CHECK(read_file(path) == bytes);
}

// tests/cases/python.safetensors was written by Python's safetensors 0.8.0 with torch 2.13.0, and
// norma.safetensors by write_safetensors; Python read the same values from it.
TEST_CASE("safetensors: files go to and from Python in every dtype") {
  std::vector<NamedTensor> tensors;
  const std::vector<double> values{0, -1.5, 2.25, 3e4, -0.0078125, 65504};
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const std::string name(name_of(dtype));
    tensors.push_back({"values." + name, Tensor::from({2, 3}, values, dtype)});
    tensors.push_back({"scalar." + name, Tensor::scalar(-0.375, dtype)});
  }
  tensors.push_back({"values.i32", Tensor::from({2, 3}, {0, -1, 2147483647.0, -2147483648.0, 7, 42},
                                                DType::i32)});
  const std::vector<std::int64_t> large{0, -1, 9007199254740993, INT64_MIN, 7, 42};
  tensors.push_back({"values.i64", Tensor::from_ids({2, 3}, large)});
  tensors.push_back({"values.u8", Tensor::from({2, 3}, {0, 1, 255, 128, 7, 42}, DType::u8)});
  tensors.push_back({"empty.f32", Tensor::zeros({0, 3})});

  const SafetensorsFile python(test::source_dir() + "/tests/cases/python.safetensors");
  CHECK(python.entries().size() == tensors.size());
  CHECK(python.metadata() == Metadata{{"format", "pt"}});
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    const Tensor got = python.read(name);
    CHECK(got.dtype() == tensor.dtype());
    CHECK(got.shape() == tensor.shape());
    CHECK(got.to_vector() == tensor.to_vector());
    if (tensor.dtype() == DType::i64) CHECK(got.to_ids() == tensor.to_ids());
  }
  const TemporaryFolder folder;
  write_safetensors(folder / "norma.safetensors", tensors, {{"format", "pt"}});
  CHECK(read_file(folder / "norma.safetensors") ==
        read_file(test::source_dir() + "/tests/cases/norma.safetensors"));
}

TEST_CASE("safetensors: a file of no tensors") {
  const TemporaryFolder folder;
  const std::string path = folder / "none.safetensors";
  write_safetensors(path, {});
  CHECK(SafetensorsFile(path).entries().empty());
  CHECK(error_of_file(folder, make_file(R"({"__metadata__":{}})")) == "");
  CHECK(error_of_file(folder, make_file("{}")) == "");
  CHECK(error_of_file(folder, make_file("{}      ")) == "");
}

TEST_CASE("safetensors: legal files with unusual content are read") {
  const TemporaryFolder folder;
  CHECK(error_of_file(
            folder,
            make_file(
                fmt::format(R"({{{},"e":{{"dtype":"F32","shape":[0,3],"data_offsets":[16,16]}},)"
                            R"("z":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}},)"
                            R"("s":{{"dtype":"F32","shape":[],"data_offsets":[16,20]}}}})",
                            kTensorA),
                20)) == "");
  // A header of exactly 100,000 bytes.
  const std::string header = fmt::format("{{{}}}", kTensorA);
  CHECK(error_of_file(folder, make_file(header + std::string(100000 - header.size(), ' '), 16)) ==
        "");
  // A type that Tensor does not have can be listed, and not read.
  const std::string path = folder / "bool.safetensors";
  write_file(path, make_file(R"({"m":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2));
  const SafetensorsFile file(path);
  CHECK(file.entries()[0].dtype_name == "BOOL");
  CHECK(error_of([&] { (void)file.read("m"); }) ==
        path +
            ": tensor \"m\": expected one of F64, F32, F16, BF16, I64, I32, U8; got BOOL; convert "
            "it first");
}

TEST_CASE("safetensors: what is no safetensors file is named as such") {
  const TemporaryFolder folder;
  CHECK(
      error_of_file(folder, "") ==
      "expected a safetensors file, with the header's length in the first 8 bytes; got 0 bytes; it "
      "was cut short, or is no safetensors file");
  CHECK(contains(error_of_file(folder, "1234567"), "got 7 bytes"));
  CHECK(contains(error_of_file(folder, length_prefix(0)), "the header must be a JSON object"));
  CHECK(error_of_file(folder, length_prefix(1000000000000) + "{}") ==
        "the header's length is given as 1000000000000 bytes; the file has 2 after it; it was cut "
        "short, or is no safetensors file");
  for (const std::uint64_t n : {std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    CHECK(contains(error_of_file(folder, length_prefix(n) + std::string(100, 'x')),
                   fmt::format("given as {} bytes", n)));
  }
  // Of 20 bytes, 13 announced behind the first 8: one more than there are.
  CHECK(contains(error_of_file(folder, length_prefix(13) + std::string(12, ' ')),
                 "the file has 12 after it"));
  CHECK(contains(error_of_file(folder, "PK\x03\x04" + std::string(40, '\0')), "zip file"));
  CHECK(
      contains(error_of_file(folder, "version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
               "git-lfs pointer"));
  CHECK(contains(error_of_file(folder, "<!DOCTYPE html><html>nothing here</html>"), "web page"));
  CHECK(contains(error_of_file(folder, make_file("[1]")), "must be a JSON object"));
  CHECK(contains(error_of_file(folder, make_file("{\"a\":")), "header: not valid JSON"));
  CHECK(contains(error_of_file(folder, make_file("{} x")), "header: not valid JSON"));
  CHECK(contains(error_of_file(folder, make_file("{\"a\":" + std::string(50, '['))),
                 "header: nested too deeply"));
  CHECK(contains(error_of([&] { (void)SafetensorsFile(folder / "nowhere"); }),
                 "No such file or directory"));
  CHECK(contains(error_of([&] { (void)SafetensorsFile(folder.path()); }), "it is a folder"));
}

TEST_CASE("safetensors: a header that contradicts itself or the file is refused") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& entries, std::size_t bytes) {
    return error_of_file(folder, make_file("{" + entries + "}", bytes));
  };
  const std::string a = kTensorA;
  CHECK(error(a, 16) == "");
  CHECK(error(a, 13) ==
        "expected 16 bytes of tensors after the header; got 13; the file was cut short: copy or "
        "download it again");
  CHECK(contains(error(a, 18), "the last 2 belong to no tensor"));
  CHECK(error(a + "," + a, 16) == "header: the name \"a\" stands twice");
  CHECK(error(R"("__metadata__":{"k":"1","k":"2"})", 0) == "header: the name \"k\" stands twice");
  CHECK(error(R"("__metadata__":{"k":1})", 0) == "header: __metadata__.k must be a string; got 1");
  CHECK(contains(error(R"("__metadata__":[])", 0), "must be an object of strings"));
  CHECK(error(a + R"(,"b":{"dtype":"I64","shape":[1],"data_offsets":[8,16]})", 24) ==
        "tensors \"a\" (bytes 0 to 16) and \"b\" (bytes 8 to 16) overlap");
  CHECK(error(a + R"(,"b":{"dtype":"I64","shape":[1],"data_offsets":[20,28]})", 28) ==
        "bytes 16 to 20 belong to no tensor");
  CHECK(error(R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,12]})", 12) ==
        "header: tensor \"a\": F32 (2, 2) takes 16 bytes; its data_offsets are [0, 12]");
  CHECK(contains(error(R"("a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]})", 4),
                 "unknown dtype \"F99\""));
  CHECK(contains(error(R"("a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4), "got -1"));
  CHECK(contains(error(R"("a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", 4), "got 1.0"));
  CHECK(contains(
      error(R"("a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
      "too large"));
  CHECK(contains(
      error(R"("a":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0]})", 1),
      "expected a whole number"));
  CHECK(
      contains(error(R"("a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})", 4),
               "at most 8 axes"));
  CHECK(contains(error(R"("a":{"dtype":"F32","shape":[1]})", 4), "header: tensor \"a\": expected"));
  CHECK(contains(error(R"("a":7)", 4), "header: tensor \"a\": expected"));
}

TEST_CASE("safetensors: cut at any byte, a file is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "whole.safetensors";
  write_safetensors(path, std::vector<NamedTensor>{{"w", Tensor::ones({3})}}, {{"k", "v"}});
  const std::string whole = read_file(path);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    INFO(n);
    CHECK(error_of_file(folder, whole.substr(0, n)) != "");
  }
  CHECK(error_of_file(folder, whole) == "");
}

TEST_CASE("safetensors: a view writes its own elements alone") {
  const TemporaryFolder folder;
  const Tensor x = Tensor::from({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor rows = Tensor::view(x.storage(), x.offset_bytes() + 8, {2, 2}, DType::f32);
  write_safetensors(folder / "v", std::vector<NamedTensor>{{"rows", rows}});
  CHECK(SafetensorsFile(folder / "v").read("rows").to_vector() == std::vector<double>{3, 4, 5, 6});
}

TEST_CASE("safetensors: the writer refuses what could not be read again") {
  const TemporaryFolder folder;
  const std::string path = folder / "w";
  const Tensor x = Tensor::scalar(1);
  const auto error = [&](std::vector<NamedTensor> tensors, Metadata metadata = {}) {
    return error_of([&] { write_safetensors(path, tensors, metadata); });
  };
  CHECK(contains(error({{"a", x}, {"a", x}}), "the name \"a\" stands twice"));
  CHECK(contains(error({{"__metadata__", x}}), "cannot have the name"));
  CHECK(contains(error({{"\xff", x}}), "UTF-8"));
  CHECK(contains(error({{"a", x}}, {{"k", "\xff"}}), "UTF-8"));
  CHECK(contains(error({{"a", Tensor()}}), "undefined"));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("load_safetensors: all problems at once, and nothing changed") {
  const TemporaryFolder folder;
  const std::string path = folder / "w";
  write_safetensors(path, std::vector<NamedTensor>{{"a", Tensor::ones({3, 4})},
                                                   {"b", Tensor::ones({1})},
                                                   {"c", Tensor::ones({2}, DType::f16)},
                                                   {"d", Tensor::ones({2})},
                                                   {"renamed", Tensor::ones({2})}});
  const SafetensorsFile file(path);
  std::vector<NamedTensor> targets = {{"a", Tensor::zeros({4, 3})},
                                      {"b", Tensor::zeros({4})},
                                      {"c", Tensor::zeros({2})},
                                      {"d", Tensor::zeros({2})},
                                      {"e", Tensor::zeros({2})}};
  CHECK(error_of([&] { load_safetensors(file, targets); }) ==
        path +
            ": the tensors do not fit:"
            "\n  a: expected shape (4, 3); got (3, 4)"
            "\n  b: expected shape (4); got (1)"
            "\n  c: expected F32; got F16"
            "\n  e: not in the file"
            "\n  renamed: in the file, but not asked for");
  // Shapes count even where names may be missing.
  CHECK(error_of([&] { load_safetensors(file, targets, {.strict = false, .convert = true}); }) ==
        path +
            ": the tensors do not fit:"
            "\n  a: expected shape (4, 3); got (3, 4)"
            "\n  b: expected shape (4); got (1)");
  for (const auto& [name, target] : targets) {
    CHECK(target.to_vector() == std::vector<double>(static_cast<std::size_t>(target.numel()), 0.0));
  }
  targets.erase(targets.begin(), targets.begin() + 2);
  const LoadReport report = load_safetensors(file, targets, {.strict = false, .convert = true});
  CHECK(report.missing == std::vector<std::string>{"e"});
  CHECK(std::set<std::string>(report.extra.begin(), report.extra.end()) ==
        std::set<std::string>{"a", "b", "renamed"});
  CHECK(targets[0].tensor.to_vector() == std::vector<double>{1, 1});
  CHECK(targets[1].tensor.to_vector() == std::vector<double>{1, 1});
  CHECK(targets[2].tensor.to_vector() == std::vector<double>{0, 0});
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST_CASE("write_safetensors: a failed write leaves the old file as it was") {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.safetensors";
  write_safetensors(path, std::vector<NamedTensor>{{"w", Tensor::ones({8})}});
  const std::string before = read_file(path);
  const std::vector<NamedTensor> large = {{"w", Tensor::zeros({100000})}};

  SECTION("a limit on the size of files, as of a full disk") {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{4096, limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string error = error_of([&] { write_safetensors(path, large); });
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(error == path + ": cannot be written: File too large; the file is as it was");
  }
  SECTION("a folder that cannot be written") {
    const std::string nowhere = folder / "nowhere/x.safetensors";
    CHECK(contains(error_of([&] { write_safetensors(nowhere, large); }),
                   "cannot be written: No such file or directory"));
  }
  SECTION("the name of a folder") {
    CHECK(contains(error_of([&] { write_safetensors(folder.path(), large); }), "it is a folder"));
  }
  SECTION("an exception in the middle") {
    AtomicFile file(path);
    file.write("half");
  }
  CHECK(read_file(path) == before);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"checkpoint.safetensors"});
}

TEST_CASE("write_safetensors: killed at any moment, a whole file is there") {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.safetensors";
  const std::vector<NamedTensor> versions[] = {{{"w", Tensor::full({50000}, 1)}},
                                               {{"w", Tensor::full({50000}, 2)}}};
  write_safetensors(path, versions[0]);
  for (useconds_t k = 0; k < 50; ++k) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int i = 0;; ++i) write_safetensors(path, versions[i % 2]);
    }
    usleep(200 + 137 * k);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::vector<double> values = SafetensorsFile(path).read("w").to_vector();
    REQUIRE(values.size() == 50000);
    REQUIRE((values[0] == 1 || values[0] == 2));
    REQUIRE(std::count(values.begin(), values.end(), values[0]) == 50000);
  }
  for (const std::string& name : names_in(folder.path())) {
    CHECK((name == "checkpoint.safetensors" || is_temporary(name)));
  }
}

TEST_CASE("write_safetensors: /dev/full reports that there is no space") {
  CHECK(contains(
      error_of([] {
        write_safetensors("/dev/full", std::vector<NamedTensor>{{"w", Tensor::zeros({100000})}});
      }),
      "No space left on device"));
  CHECK(std::filesystem::is_character_file("/dev/full"));
  // Small enough to wait in the buffer until the end.
  CHECK(contains(error_of([] { write_file("/dev/full", "x"); }), "No space left on device"));
}

TEST_CASE("write_file: through a link, and with the old file's permissions") {
  const TemporaryFolder folder;
  write_file(folder / "real", "old");
  std::filesystem::permissions(folder / "real", std::filesystem::perms(0600));
  std::filesystem::create_symlink("real", folder / "link");
  write_file(folder / "link", "new");
  CHECK(read_file(folder / "real") == "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::status(folder / "real").permissions() == std::filesystem::perms(0600));
}

TEST_CASE("temporary names are known again, and differ") {
  const std::string a = temporary_beside("/x/step-10"), b = temporary_beside("/x/step-10");
  CHECK(a != b);
  CHECK(is_temporary(a));
  CHECK_FALSE(is_temporary("/x/step-10"));
}

TEST_CASE("read_file: empty, long, and absent files") {
  const TemporaryFolder folder;
  const std::string text(1000003, 'y');
  write_file(folder / "long", text);
  write_file(folder / "empty", "");
  CHECK(read_file(folder / "long") == text);
  CHECK(read_file(folder / "empty").empty());
  CHECK(contains(error_of([&] { (void)read_file(folder / "absent"); }),
                 "absent: cannot be opened: No such file or directory"));
}

}  // namespace
}  // namespace norma
