// Tensors and the storage below them: what fits, what is shared, and errors.
#include "core/tensor.h"

#include <limits>

#include "core/autograd.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

TEST_CASE("a shape that no memory could hold is an error, not an overflow", "[tensor]") {
  constexpr std::int64_t kBig = std::int64_t{1} << 31;
  NORMA_CHECK_ERROR(
      Tensor::empty(Shape{kBig, kBig, kBig}),
      "tensor: shape (2147483648, 2147483648, 2147483648) of f32 is too large for any memory");
  NORMA_CHECK_ERROR(Tensor::empty(Shape{std::numeric_limits<std::int64_t>::max()}, DType::u8),
                    "is too large for any memory");
  NORMA_CHECK_ERROR(Tensor::empty(Shape{kBig, 0, kBig, kBig}), "is too large for any memory");
  CHECK(Tensor::empty(Shape{kBig, 0}).numel() == 0);
  NORMA_CHECK_ERROR((Shape{kBig, kBig, 4}).numel(),
                    "(2147483648, 2147483648, 4) has more elements than can be counted");
  const Tensor x = Tensor::zeros(Shape{2}, DType::f64);
  NORMA_CHECK_ERROR(Tensor::view(x.storage(), 0, Shape{kBig, kBig, 4}, DType::f32),
                    "is too large for any memory");
}

TEST_CASE("a view shares memory and the version, a clone neither", "[tensor]") {
  Tensor x = Tensor::from(Shape{4}, {1, 2, 3, 4}, DType::f64);
  Tensor tail = Tensor::view(x.storage(), 16, Shape{2}, DType::f64);
  const Tensor copy = x.clone();
  const std::uint64_t version = x.version(), of_copy = copy.version();
  tail.fill_(9);
  CHECK(x.to_vector() == std::vector<double>{1, 2, 9, 9});
  CHECK(x.version() > version);
  CHECK(copy.to_vector() == std::vector<double>{1, 2, 3, 4});
  CHECK(copy.version() == of_copy);
  NORMA_CHECK_ERROR(Tensor::view(x.storage(), 24, Shape{2}, DType::f64),
                    "a view of 16 bytes at 24 does not fit into a storage of 32");
}

TEST_CASE("a carved part shares memory, and has a version of its own", "[tensor]") {
  const Tensor whole = Tensor::zeros(Shape{4}, DType::f64);
  const auto part = [&](std::int64_t offset) {
    return Tensor::view(Storage::carve(whole.storage(), offset, 16), 0, Shape{2}, DType::f64);
  };
  Tensor a = part(0);
  const Tensor b = part(16);
  const std::uint64_t version = b.version();
  a.fill_(5);
  CHECK(b.version() == version);
  CHECK(whole.to_vector() == std::vector<double>{5, 5, 0, 0});
  NORMA_CHECK_ERROR(Storage::carve(whole.storage(), 24, 16), "do not lie within 32");
}

TEST_CASE("numbers that an integer type does not hold are its ends, and NaN is 0", "[tensor]") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<double> bytes{0, 255, 0, 255, 0, 7};
  CHECK(Tensor::from(Shape{6}, {-1, 300, -kInf, kInf, kNan, 7.9}, DType::u8).to_vector() == bytes);
  CHECK(Tensor::full(Shape{}, -1, DType::u8).item() == 0);
  const Tensor wild = Tensor::from(Shape{4}, {kNan, kInf, -1e30, -2.5});
  const std::vector<std::int64_t> ids{0, kMost, kLeast, -2};
  CHECK(wild.to_ids() == ids);
  Tensor copied = Tensor::zeros(Shape{4}, DType::i64);
  copied.copy_(wild);
  CHECK(copied.to_ids() == ids);
}

TEST_CASE("wrong uses of a tensor say what is wrong", "[tensor]") {
  NORMA_CHECK_ERROR(Tensor().shape(), "tensor: this handle is empty");
  const Tensor x = Tensor::zeros(Shape{2, 3});
  NORMA_CHECK_ERROR(x.item(), "item: expected a tensor of one element; got shape (2, 3)");
  NORMA_CHECK_ERROR((void)x.data<double>(), "its elements are f32, but were asked for as f64");
  NORMA_CHECK_ERROR(Tensor::from(Shape{2}, {1, 2, 3}), "shape (2) needs 2 values; got 3");
  NORMA_CHECK_ERROR(Tensor::zeros(Shape{3}).copy_(x), "copy_: expected shape (3); got (2, 3)");
}

}  // namespace
}  // namespace norma::test
