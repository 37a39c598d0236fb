#include "apps/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/autograd.h"
#include "core/error.h"
#include "core/file.h"

namespace norma {
namespace {

struct ElementType {
  int code;
  int bytes;
  DType dtype;  // of the tensor
};
constexpr ElementType kElementTypes[] = {{0x08, 1, DType::u8},  {0x09, 1, DType::i32},
                                         {0x0B, 2, DType::i32}, {0x0C, 4, DType::i32},
                                         {0x0D, 4, DType::f32}, {0x0E, 8, DType::f64}};

// Memory grows with what the file really holds: a header may claim anything.
constexpr std::size_t kReadBytes = 1 << 22;

// A gzip file, or a plain one, which zlib hands through.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    const InputFile check(path);  // the reason, where it cannot be opened
    file_.reset(gzopen(path.c_str(), "rb"));
    require(file_ != nullptr, "{}: cannot be opened", path);
    gzbuffer(file_.get(), 1 << 17);
  }

  // Reads up to `count` bytes; less only at the end.
  std::size_t read(void* to, std::size_t count) {
    const int got = gzread(file_.get(), to, static_cast<unsigned>(count));
    if (got >= 0 && static_cast<std::size_t>(got) == count) return count;
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    // A gzip file that ends early still gave its first bytes.
    if (code == Z_BUF_ERROR && got >= 0) {
      cut_ = true;
      return static_cast<std::size_t>(got);
    }
    require(got >= 0 && code == Z_OK, "{}: cannot be unpacked: {}", path_, text);
    return static_cast<std::size_t>(got);
  }
  // True iff the file is gzipped and its end was missing.
  [[nodiscard]] bool cut() const { return cut_; }

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  bool cut_ = false;
};

std::uint32_t big_endian_32(const unsigned char* b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

// Big-endian bytes of From as values of To.
template <class From, class To>
void convert(const unsigned char* bytes, std::int64_t n, To* out) {
  static_assert(std::endian::native == std::endian::little);
  for (std::int64_t i = 0; i < n; ++i) {
    std::array<unsigned char, sizeof(From)> swapped{};
    std::reverse_copy(bytes + i * sizeof(From), bytes + (i + 1) * sizeof(From), swapped.begin());
    out[i] = static_cast<To>(std::bit_cast<From>(swapped));
  }
}

Tensor to_tensor(const ElementType& type, const Shape& shape, const unsigned char* bytes) {
  Tensor values = Tensor::empty(shape, type.dtype);
  const std::int64_t n = values.numel();
  switch (type.code) {
    case 0x08:
      std::copy(bytes, bytes + n, values.mutable_data<std::uint8_t>());
      break;
    case 0x09:
      convert<std::int8_t>(bytes, n, values.mutable_data<std::int32_t>());
      break;
    case 0x0B:
      convert<std::int16_t>(bytes, n, values.mutable_data<std::int32_t>());
      break;
    case 0x0C:
      convert<std::int32_t>(bytes, n, values.mutable_data<std::int32_t>());
      break;
    case 0x0D:
      convert<float>(bytes, n, values.mutable_data<float>());
      break;
    default:
      convert<double>(bytes, n, values.mutable_data<double>());
      break;
  }
  return values;
}

}  // namespace

Tensor read_idx(const std::string& path) {
  Reader reader(path);
  unsigned char magic[4] = {};
  const std::size_t magic_bytes = reader.read(magic, 4);
  const ElementType* type = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                         [&](const ElementType& t) { return t.code == magic[2]; });
  const int rank = magic[3];
  require(
      magic_bytes == 4 && magic[0] == 0 && magic[1] == 0 && type != std::end(kElementTypes) &&
          rank >= 1 && rank <= kMaxRank,
      "{}: not an idx file: expected the bytes 0, 0, an element type (8, 9, 11 to 14) and 1 to {} "
      "axes; got {} bytes: {}, {}, {}, {}",
      path, kMaxRank, magic_bytes, magic[0], magic[1], magic[2], magic[3]);

  unsigned char sizes[4 * kMaxRank];
  const auto size_bytes = static_cast<std::size_t>(4 * rank);
  const std::size_t got_sizes = reader.read(sizes, size_bytes);
  require(got_sizes == size_bytes,
          "{}: expected {} bytes of axis sizes; got {}; the file was cut short", path, size_bytes,
          got_sizes);
  Shape shape;
  std::int64_t expected = type->bytes;
  bool overflow = false, empty = false;
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t size = big_endian_32(sizes + 4 * axis);
    shape.push_back(size);
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(expected, size, &expected);
  }
  if (empty) expected = 0;
  require(empty || !overflow, "{}: not an idx file: its axes are too large", path);

  std::vector<unsigned char> bytes;
  while (static_cast<std::int64_t>(bytes.size()) < expected) {
    const std::size_t before = bytes.size();
    const std::size_t part =
        std::min<std::size_t>(kReadBytes, static_cast<std::size_t>(expected) - before);
    bytes.resize(before + part);
    const std::size_t got = reader.read(bytes.data() + before, part);
    bytes.resize(before + got);
    if (got < part) break;
  }
  require(static_cast<std::int64_t>(bytes.size()) == expected,
          "{}: expected {} bytes of elements for shape {}; got {}; the file was cut short: copy or "
          "download it again",
          path, expected, shape.to_string(), bytes.size());
  std::int64_t more = 0;
  std::vector<unsigned char> rest(1 << 16);
  while (const std::size_t got = reader.read(rest.data(), rest.size())) {
    more += static_cast<std::int64_t>(got);
  }
  require(more == 0,
          "{}: expected {} bytes of elements for shape {}; got {}; the header and the "
          "content do not belong together",
          path, expected, shape.to_string(), expected + more);
  require(!reader.cut(), "{}: the end of the gzip file is missing; copy or download it again",
          path);
  return to_tensor(*type, shape, bytes.data());
}

}  // namespace norma
