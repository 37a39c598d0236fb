// Loads and stores of f32 and f64 through vectors of f64, for sums that must not lose digits.
// Include it behind hwy/highway.h in a file that is compiled once an instruction set.
#if defined(NORMA_KERNELS_WIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_KERNELS_WIDE_INL_H_
#undef NORMA_KERNELS_WIDE_INL_H_
#else
#define NORMA_KERNELS_WIDE_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {

using WideTag = hwy::HWY_NAMESPACE::ScalableTag<double>;
using WideVec = hwy::HWY_NAMESPACE::Vec<WideTag>;

// for (i < Lanes(WideTag)) v[i] = p[i];
HWY_INLINE WideVec load_f64(const double* p) { return hwy::HWY_NAMESPACE::LoadU(WideTag(), p); }
HWY_INLINE WideVec load_f64(const float* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::PromoteTo(WideTag(), hn::LoadU(hn::Rebind<float, WideTag>(), p));
}

// for (i < Lanes(WideTag)) p[i] = v[i];
HWY_INLINE void store_f64(WideVec v, double* p) { hwy::HWY_NAMESPACE::StoreU(v, WideTag(), p); }
HWY_INLINE void store_f64(WideVec v, float* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<float, WideTag> narrow;
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, p);
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
