// Byte-pair encoding (Gage 1994; Sennrich et al. 2016, arXiv 1508.07909), over bytes as in GPT-2.
//
// Note [Pieces]. A text is cut into pieces that no merge crosses: a run of letters, of digits or of
// other signs, with the space before it; or a run of white space. Bytes from 0x80 count as letters.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace norma {

class Bpe {
 public:
  using Merge = std::array<std::int64_t, 2>;

  // Ids 0..255 are the bytes, id 256 + k stands for the two ids of merges[k]. Throws Error if a
  // merge names an id that does not come before its own.
  explicit Bpe(std::vector<Merge> merges);
  // Makes the most frequent pair one id, again and again, until there are `vocab` ids or no pair
  // stands twice. Of overlapping pairs every other one counts ("aaa" holds aa once, "aaaa" twice);
  // of equally frequent ones, the one that stands first in the text is taken. So the result depends
  // on the text alone.
  [[nodiscard]] static Bpe train(std::string_view text, std::int64_t vocab);

  [[nodiscard]] const std::vector<Merge>& merges() const { return merges_; }
  [[nodiscard]] std::int64_t vocab() const { return static_cast<std::int64_t>(bytes_.size()); }
  // Every text has ids: the merges are applied to each piece in the order in which they were found.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const;
  // The bytes of one id in 0..vocab-1.
  [[nodiscard]] const std::string& bytes(std::int64_t id) const {
    return bytes_[static_cast<std::size_t>(id)];
  }

 private:
  std::vector<Merge> merges_;
  std::vector<std::string> bytes_;                        // by id
  std::unordered_map<std::uint64_t, std::int64_t> rank_;  // of a pair: its place in merges_
};

// The piece of `text` that begins at `at`. See Note [Pieces].
[[nodiscard]] std::string_view next_piece(std::string_view text, std::size_t at);

}  // namespace norma
