#include "apps/data/bpe.h"

#include <algorithm>

#include "core/error.h"

namespace norma {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kBytes = 256;

enum class Kind : std::uint8_t { letter, digit, space, sign };

Kind kind_of(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0) return Kind::letter;
  if (c >= '0' && c <= '9') return Kind::digit;
  if (c == ' ' || (c >= '\t' && c <= '\r')) return Kind::space;
  return Kind::sign;
}

std::uint64_t key_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint64_t>(b);
}

Ids bytes_of(std::string_view piece) {
  Ids ids;
  for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

// Puts `id` where the pair (a, b) stands, from the left.
void join(Ids& ids, std::int64_t a, std::int64_t b, std::int64_t id) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < ids.size(); ++i, ++out) {
    const bool pair = i + 1 < ids.size() && ids[i] == a && ids[i + 1] == b;
    ids[out] = pair ? id : ids[i];
    i += pair;
  }
  ids.resize(out);
}

// Calls f(a, b) for the pairs of neighbours; of overlapping equal ones, for every other.
template <class F>
void for_each_pair(const Ids& ids, F&& f) {
  bool counted = false;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    counted = !(counted && ids[i - 1] == ids[i] && ids[i] == ids[i + 1]);
    if (counted) f(ids[i], ids[i + 1]);
  }
}

// The distinct pieces of a text, in the order in which they first stand there, and their pairs.
class PairCounts {
 public:
  explicit PairCounts(std::string_view text) {
    std::unordered_map<std::string_view, std::size_t> place;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view piece = next_piece(text, at);
      at += piece.size();
      const auto [found, fresh] = place.try_emplace(piece, pieces_.size());
      if (fresh) pieces_.push_back({bytes_of(piece), 0});
      ++pieces_[found->second].count;
    }
    for (std::size_t p = 0; p < pieces_.size(); ++p) add(p, +1, kNone);
  }

  // The pair to merge next; false if none stands twice.
  [[nodiscard]] bool best(Bpe::Merge& merge) {
    std::int64_t most = 1;
    Place first;
    for (auto& [key, pair] : pairs_) {
      if (pair.count < most || (pair.count == most && most == 1)) continue;
      const auto a = static_cast<std::int64_t>(key >> 32);
      const auto b = static_cast<std::int64_t>(key & 0xFFFFFFFF);
      const Place place = first_place(pair, a, b);
      if (pair.count == most && !(place < first)) continue;
      most = pair.count;
      first = place;
      merge = {a, b};
    }
    return most > 1;
  }

  void apply(const Bpe::Merge& pair, std::int64_t id) {
    const std::vector<std::size_t> where = pairs_.at(key_of(pair[0], pair[1])).where;
    for (const std::size_t p : where) {
      add(p, -1, kNone);
      join(pieces_[p].ids, pair[0], pair[1], id);
      add(p, +1, id);
    }
    std::erase_if(pairs_, [](const auto& entry) { return entry.second.count == 0; });
  }

 private:
  static constexpr std::int64_t kNone = -1;
  struct Piece {
    Ids ids;
    std::int64_t count = 0;
  };
  struct Pair {
    std::int64_t count = 0;
    // Pieces that held it when its newer id was made, ascending: no later merge adds any. Those
    // before `from` hold it no more.
    std::vector<std::size_t> where = {};
    std::size_t from = 0;
  };
  struct Place {
    std::size_t piece = 0, at = 0;
    auto operator<=>(const Place&) const = default;
  };

  // Counts the pairs of a piece in (+1) or out (-1). `id` is the newest one, whose pairs are new.
  void add(std::size_t p, int sign, std::int64_t id) {
    const Piece& piece = pieces_[p];
    for_each_pair(piece.ids, [&](std::int64_t a, std::int64_t b) {
      Pair& pair = pairs_[key_of(a, b)];
      pair.count += sign * piece.count;
      const bool fresh = id == kNone || a == id || b == id;
      if (sign > 0 && fresh && (pair.where.empty() || pair.where.back() != p)) {
        pair.where.push_back(p);
      }
    });
  }

  [[nodiscard]] Place first_place(Pair& pair, std::int64_t a, std::int64_t b) const {
    for (; pair.from < pair.where.size(); ++pair.from) {
      const Ids& ids = pieces_[pair.where[pair.from]].ids;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        if (ids[i] == a && ids[i + 1] == b) return {pair.where[pair.from], i};
      }
    }
    return {pieces_.size(), 0};
  }

  std::vector<Piece> pieces_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
};

}  // namespace

std::string_view next_piece(std::string_view text, std::size_t at) {
  const auto run_end = [&](std::size_t i) {
    const Kind kind = kind_of(text[i]);
    while (i < text.size() && kind_of(text[i]) == kind) ++i;
    return i;
  };
  std::size_t end = run_end(at);
  if (kind_of(text[at]) == Kind::space && end < text.size() && text[end - 1] == ' ') {
    end = end - 1 == at ? run_end(end) : end - 1;  // the last space goes with what follows
  }
  return text.substr(at, end - at);
}

Bpe::Bpe(std::vector<Merge> merges) : merges_(std::move(merges)) {
  for (std::int64_t b = 0; b < kBytes; ++b) bytes_.emplace_back(1, static_cast<char>(b));
  for (const Merge& pair : merges_) {
    const std::int64_t id = vocab();
    require(pair[0] >= 0 && pair[0] < id && pair[1] >= 0 && pair[1] < id,
            "bpe: merge {} joins the ids {} and {}; expected ids in 0..{}", id - kBytes, pair[0],
            pair[1], id - 1);
    rank_.try_emplace(key_of(pair[0], pair[1]), id - kBytes);
    bytes_.push_back(bytes(pair[0]) + bytes(pair[1]));
  }
}

Bpe Bpe::train(std::string_view text, std::int64_t vocab) {
  PairCounts counts(text);
  std::vector<Merge> merges;
  Merge pair{};
  while (kBytes + static_cast<std::int64_t>(merges.size()) < vocab && counts.best(pair)) {
    counts.apply(pair, kBytes + static_cast<std::int64_t>(merges.size()));
    merges.push_back(pair);
  }
  return Bpe(std::move(merges));
}

std::vector<std::int64_t> Bpe::encode(std::string_view text) const {
  std::vector<std::int64_t> out;
  std::unordered_map<std::string_view, Ids> known;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view piece = next_piece(text, at);
    at += piece.size();
    const auto [found, fresh] = known.try_emplace(piece);
    Ids& ids = found->second;
    if (fresh) {
      ids = bytes_of(piece);
      while (true) {
        auto first = static_cast<std::int64_t>(merges_.size());
        for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
          const auto rank = rank_.find(key_of(ids[i], ids[i + 1]));
          if (rank != rank_.end()) first = std::min(first, rank->second);
        }
        if (first == static_cast<std::int64_t>(merges_.size())) break;
        const Merge& pair = merges_[static_cast<std::size_t>(first)];
        join(ids, pair[0], pair[1], kBytes + first);
      }
    }
    out.insert(out.end(), ids.begin(), ids.end());
  }
  return out;
}

}  // namespace norma
