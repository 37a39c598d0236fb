// Errors. Every message says: the op, what it expected, what it got, and what to do about it.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace norma {

// The base of all errors that the library throws. One wording everywhere:
//   rms_norm: weight must have shape (768), the last axis of x (8, 128, 768); got (512)
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  template <class... Args>
  [[nodiscard]] static Error format(fmt::format_string<Args...> text, Args&&... args) {
    return Error(fmt::format(text, std::forward<Args>(args)...));
  }
};

// Throws Error when a contract of the caller does not hold. Checked in every build.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) [[unlikely]]
    throw Error(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace norma
