#include "core/instructions.h"

#include <algorithm>

#include "core/ops/reduce.h"
#include "tests/support/op_case.h"

namespace norma {

TEST_CASE("kernels run with the instruction set that was asked for", "[core]") {
  const std::vector<std::string> all = instruction_sets();
  REQUIRE(!all.empty());
  CHECK(instruction_set() == all.front());
  const Tensor x = test::random_tensor({100'000}, 3, DType::f32);
  const Tensor best = sum(x);
  for (const std::string& name : all) {
    set_instruction_set(name);
    CHECK(instruction_set() == name);
    CHECK(instruction_sets() == all);  // those of the machine, not what is left of them
    CHECK(sum(x).item() == Approx(best.item()).epsilon(1e-5));
  }
  set_instruction_set(all.front());
  CHECK(test::same_bits(sum(x), best));
  NORMA_CHECK_ERROR(set_instruction_set("AVX9"), "got \"AVX9\"");
  CHECK(instruction_set() == all.front());
}

}  // namespace norma
