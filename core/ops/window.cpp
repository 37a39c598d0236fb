#include "core/ops/window.h"

#include "core/error.h"

namespace norma {

std::string to_string(const Extent& e) { return fmt::format("({}, {})", e.h, e.w); }

void check_extent(const char* op, const char* what, const Extent& e, std::int64_t least) {
  require(e.h >= least && e.w >= least, "{}: {} must be at least {}; got {}", op, what, least,
          to_string(e));
}

Extent window_counts(const char* op, const Extent& size, const Extent& kernel, const Extent& stride,
                     const Extent& padding, const Extent& dilation) {
  const Extent reach{dilation.h * (kernel.h - 1) + 1, dilation.w * (kernel.w - 1) + 1};
  const Extent padded{size.h + 2 * padding.h, size.w + 2 * padding.w};
  require(reach.h <= padded.h && reach.w <= padded.w,
          "{}: the kernel must not reach over more than the padded input; got kernel {} with "
          "dilation {} on an input of {} with padding {}",
          op, to_string(kernel), to_string(dilation), to_string(size), to_string(padding));
  return {(padded.h - reach.h) / stride.h + 1, (padded.w - reach.w) / stride.w + 1};
}

}  // namespace norma
