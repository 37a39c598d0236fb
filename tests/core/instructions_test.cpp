#include "core/instructions.h"

#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "tests/support/op_case.h"

namespace norma {

TEST_CASE("kernels run with the instruction set that was asked for", "[core]") {
  const std::vector<std::string> all = instruction_sets();
  REQUIRE(!all.empty());
  CHECK(instruction_set() == all.front());
  const Tensor x = test::random_tensor({100'000}, 3, DType::f32);
  const Tensor best = sum(x);
  const test::BestInstructions afterwards;
  for (const std::string& name : all) {
    set_instruction_set(name);
    CHECK(instruction_set() == name);
    CHECK(instruction_sets() == all);  // those of the machine, not what is left of them
    CHECK(sum(x).item() == Approx(best.item()).epsilon(1e-5));
  }
  // The last set of x86 sums in other lanes, without fused products: other bits show that it ran.
  const Tensor a = test::random_tensor({64, 64}, 4, DType::f32);
  set_instruction_set(all.back());
  const Tensor last = matmul(a, a);
  set_instruction_set(all.front());
  CHECK(test::same_bits(sum(x), best));
  CHECK(test::same_bits(matmul(a, a), last) == (all.size() == 1));
  NORMA_CHECK_ERROR(set_instruction_set("AVX9"), "got \"AVX9\"");
  CHECK(instruction_set() == all.front());
}

}  // namespace norma
