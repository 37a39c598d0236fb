// What the norms over rows read and write, whatever the instruction set.
#pragma once

#include <cstdint>

#include "core/kernels/norm_rows.h"

namespace norma::kernels {

template <class T>
struct RowsForward {
  RowsShape shape;
  const T* x;
  const T* gain;  // never null
  const T* bias;
  T* y;
  T* mean;
  T* rstd;
  T* var;
  bool known;         // mean and rstd are read, not written
  bool past = false;  // see Note [Past the cache]
};

template <class T>
struct RowsBackward {
  RowsShape shape;
  const T* dy;
  const T* x;
  const T* gain;  // never null
  const T* mean;
  const T* rstd;
  T* dx;
  bool accumulate_dx;
  bool past = false;
};

}  // namespace norma::kernels
