// The vector instructions that the kernels use.
//
// Note [Instruction sets]. Kernels are compiled once for each of some instruction sets, and the
// program takes the best that the machine has. Longer vectors sum in another order, so that two
// machines agree in every bit only where they use the same set (and OpenBLAS the same kernels,
// where it computes). Asked for by name, a set of a lesser machine gives that machine's bits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace norma {

// Those that this program was compiled for and this machine has, by Highway's names, the best
// first: "AVX3" is AVX-512, "SCALAR" or "EMU128" plain code, which later versions of Highway have
// "SSE2" for.
[[nodiscard]] std::vector<std::string> instruction_sets();
// The one in use; the best unless set_instruction_set was called.
[[nodiscard]] std::string instruction_set();
// Uses another one, in the whole process. Throws Error for a name that is not in
// instruction_sets(). Not while another thread computes.
void set_instruction_set(std::string_view name);

}  // namespace norma
