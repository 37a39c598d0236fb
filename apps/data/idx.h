// IDX: one array a file, the format of MNIST (yann.lecun.com/exdb/mnist).
//
// Layout: 0, 0, the code of the element type, the number of axes; each axis's size as a big-endian
// 32-bit number; the elements, big-endian, the last axis fastest. Gzip files are unpacked on the
// way.
#pragma once

#include <string>

#include "core/tensor.h"

namespace norma {

// The array in `path`, plain or gzipped: u8, i32 (also for signed 8 and 16 bits), f32 or f64.
// Throws Error if the file is no idx file, or is shorter or longer than its header says.
[[nodiscard]] Tensor read_idx(const std::string& path);

}  // namespace norma
