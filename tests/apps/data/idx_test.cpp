// The idx reader: every element type, gzip, and files that are not what they say.
#include "apps/data/idx.h"

#include <zlib.h>

#include <functional>

#include "core/autograd.h"
#include "core/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int v : values) text.push_back(static_cast<char>(v));
  return text;
}

// The content of an idx file, read from a file of the name x.idx; or the error, without the path.
struct Reading {
  Tensor values;
  std::string error;
};
Reading read(const std::string& content) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.idx";
  write_file(path, content);
  try {
    return {read_idx(path), ""};
  } catch (const Error& e) {
    const std::string text = e.what();
    return {Tensor(), text.rfind(path + ": ", 0) == 0 ? text.substr(path.size() + 2) : text};
  }
}

std::string gzip(const std::string& content) {
  const TemporaryFolder folder;
  const gzFile file = gzopen((folder / "x.gz").c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(gzwrite(file, content.data(), static_cast<unsigned>(content.size())) ==
          static_cast<int>(content.size()));
  REQUIRE(gzclose(file) == Z_OK);
  return read_file(folder / "x.gz");
}

TEST_CASE("read_idx: every element type, big-endian") {
  using Values = std::vector<double>;
  const Reading u8 = read(bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 2, 3, 4, 255}));
  CHECK(u8.values.dtype() == DType::u8);
  CHECK(u8.values.shape() == Shape{2, 3});
  CHECK(u8.values.to_vector() == Values{0, 1, 2, 3, 4, 255});
  const Reading i8 = read(bytes({0, 0, 9, 1, 0, 0, 0, 2, 0xff, 5}));
  CHECK(i8.values.dtype() == DType::i32);
  CHECK(i8.values.to_vector() == Values{-1, 5});
  const Reading i16 = read(bytes({0, 0, 11, 1, 0, 0, 0, 2, 0xff, 0xfe, 1, 0}));
  CHECK(i16.values.to_vector() == Values{-2, 256});
  const Reading i32 = read(bytes({0, 0, 12, 1, 0, 0, 0, 1, 0x80, 0, 0, 1}));
  CHECK(i32.values.to_vector() == Values{-2147483647});
  const Reading f32 = read(bytes({0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}));
  CHECK(f32.values.dtype() == DType::f32);
  CHECK(f32.values.to_vector() == Values{1.5});
  const Reading f64 = read(bytes({0, 0, 14, 1, 0, 0, 0, 1, 0xc0, 4, 0, 0, 0, 0, 0, 0}));
  CHECK(f64.values.dtype() == DType::f64);
  CHECK(f64.values.to_vector() == Values{-2.5});
  const Reading empty = read(bytes({0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3}));
  CHECK(empty.values.shape() == Shape{0, 3});
}

TEST_CASE("read_idx: gzip and plain give the same, cut ones an error") {
  std::string content = bytes({0, 0, 8, 1, 0, 0, 0x20, 0});  // 8192 elements
  for (int i = 0; i < 8192; ++i) content.push_back(static_cast<char>(i * i * 31 >> 3));
  const std::string packed = gzip(content);
  CHECK(read(packed).values.to_vector() == read(content).values.to_vector());
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{9}, std::size_t{12}, packed.size() / 2, packed.size() - 8}) {
    INFO(n);
    CHECK_FALSE(read(packed.substr(0, n)).error.empty());
  }
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // in the checksum
  CHECK(read(damaged).error.find("cannot be unpacked") == 0);
}

TEST_CASE("read_idx: what is cut, too long, or something else") {
  const std::string good = bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 2, 3, 4, 5});
  CHECK(read(good).error.empty());
  CHECK(read(good.substr(0, 15)).error ==
        "expected 6 bytes of elements for shape (2, 3); got 3; the file was cut short: copy or "
        "download it again");
  CHECK(read(good + "ab").error ==
        "expected 6 bytes of elements for shape (2, 3); got 8; the header and the content do not "
        "belong together");
  CHECK(read(good.substr(0, 9)).error ==
        "expected 8 bytes of axis sizes; got 5; the file was cut short");
  CHECK(
      read("hello, world").error ==
      "not an idx file: expected the bytes 0, 0, an element type (8, 9, 11 to 14) and 1 to 8 axes; "
      "got 4 bytes: 104, 101, 108, 108");
  CHECK(read("").error.find("not an idx file") == 0);
  CHECK(read(bytes({0, 0, 10, 1, 0, 0, 0, 0})).error.find("not an idx file") == 0);
  CHECK(read(bytes({0, 0, 8, 0})).error.find("not an idx file") == 0);
  CHECK(read(bytes({0, 0, 8, 9})).error.find("not an idx file") == 0);
  // 2^96 elements, and 4 GB that are not there: refused without taking the memory.
  const std::string axis = bytes({0xff, 0xff, 0xff, 0xff});
  CHECK(read(bytes({0, 0, 8, 3}) + axis + axis + axis).error.find("too large") !=
        std::string::npos);
  CHECK(read(bytes({0, 0, 8, 1}) + axis + "abc").error.find("got 3;") != std::string::npos);
  CHECK_THROWS_WITH(read_idx("/nowhere/x.idx"),
                    "/nowhere/x.idx: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace norma
