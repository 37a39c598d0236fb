#include "core/parameters.h"

namespace norma {

const NamedTensor* find_tensor(const std::vector<NamedTensor>& tensors, std::string_view name) {
  for (const NamedTensor& t : tensors) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

bool matches_glob(std::string_view name, std::string_view glob) {
  // Greedy with one way back: after a mismatch the last `*` takes one character more. Linear in
  // practice, |name| * |glob| at worst.
  std::size_t n = 0, g = 0;
  std::size_t star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = n;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[n])) {
      ++g;
      ++n;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace norma
