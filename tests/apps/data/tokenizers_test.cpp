// Byte-pair encoding and masked tokens. Pair counting and ties: karpathy/minbpe#72, minbpe#90.
#include <algorithm>
#include <map>

#include "apps/data/bpe.h"
#include "apps/data/data_set.h"
#include "apps/data/masking.h"
#include "apps/data/tokenizer.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using Ids = std::vector<std::int64_t>;
using Merges = std::vector<Bpe::Merge>;

TEST_CASE("bpe: the example of the paper, ties by the first that stands in the text") {
  const Bpe bpe = Bpe::train("aaabdaaabac", 259);
  CHECK(bpe.merges() == Merges{{'a', 'a'}, {256, 'a'}, {257, 'b'}});
  CHECK(bpe.encode("aaabdaaabac") == Ids{258, 'd', 258, 'a', 'c'});
  // bb and aa overlap themselves: "bbb" holds bb once, "aaaa" aa twice, "dddd" and "cccc" likewise.
  CHECK(Bpe::train("bbbaaaddddcccc", 257).merges() == Merges{{'d', 'd'}});
  CHECK(Bpe::train("ccccddddaaabbb", 257).merges() == Merges{{'c', 'c'}});
  CHECK(Bpe::train("aaaaa aaaaa", 257).merges() == Merges{{'a', 'a'}});
}

TEST_CASE("bpe: training ends where no pair stands twice") {
  CHECK(Bpe::train("abcd", 1000).vocab() == 256);
  CHECK(Bpe::train("", 1000).vocab() == 256);
  const Bpe bpe = Bpe::train("abab", 1000);
  CHECK(bpe.merges() == Merges{{'a', 'b'}});  // (256, 256) stands once
  NORMA_CHECK_ERROR(Bpe(Merges{{'a', 256}}),
                    "bpe: merge 0 joins the ids 97 and 256; expected ids in 0..255");
}

TEST_CASE("bpe: merges do not cross pieces") {
  const auto pieces = [](const std::string& text) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size(); at += all.back().size()) {
      all.emplace_back(next_piece(text, at));
    }
    return all;
  };
  CHECK(pieces("Hello, world 123!\n\n  x") ==
        std::vector<std::string>{"Hello", ",", " world", " 123", "!", "\n\n ", " x"});
  CHECK(pieces("a  ") == std::vector<std::string>{"a", "  "});
  // "e " is the most frequent pair of neighbours, and is not merged.
  const Bpe bpe = Bpe::train("the be me we the", 300);
  for (std::int64_t id = 256; id < bpe.vocab(); ++id) {
    CHECK(bpe.bytes(id).find(' ', 1) == std::string::npos);
  }
}

TEST_CASE("bpe: every text comes back, byte for byte") {
  std::string text = "the cat sat on the mat\r\nthe \xc3\xa9t\xc3\xa9 ";
  text += std::string("\0\xff\xfe\x80", 4);
  for (int i = 0; i < 3; ++i) text += text;
  const Tokenizer t = Tokenizer::byte_pairs(Bpe::train(text, 400));
  CHECK(t.vocab() > 270);
  RandomStream random(random_key(0, "test"));
  std::string noise;
  for (int i = 0; i < 1000; ++i) noise.push_back(static_cast<char>(random.below(256)));
  for (const std::string& s : {text, noise, std::string(), std::string("  the the")}) {
    CHECK(t.decode(t.encode(s)) == s);
  }
  CHECK(t.encode(text).size() < text.size() / 2);
  // Kept and read back.
  DataRecord record;
  t.keep(record);
  CHECK(record.tokenizer == "bpe");
  CHECK(Tokenizer::from(record).encode(text) == t.encode(text));
  NORMA_CHECK_ERROR(t.decode(Ids{t.vocab()}), "decode: expected ids in 0..");
}

// Trains as slowly as can be: counts all pairs anew for every merge.
Merges slow_merges(const std::string& text, std::int64_t vocab) {
  std::vector<Ids> pieces;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view piece = next_piece(text, at);
    at += piece.size();
    Ids ids;
    for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
    pieces.push_back(ids);
  }
  Merges merges;
  while (256 + static_cast<std::int64_t>(merges.size()) < vocab) {
    std::map<Bpe::Merge, std::pair<int, int>> pairs;  // count, first place
    int place = 0;
    for (const Ids& ids : pieces) {
      bool counted = false;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i, ++place) {
        counted = !(counted && ids[i - 1] == ids[i] && ids[i] == ids[i + 1]);
        if (!counted) continue;
        auto& [count, first] = pairs.try_emplace({ids[i], ids[i + 1]}, 0, place).first->second;
        ++count;
      }
    }
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second.first, -a.second.second) <
                 std::pair(b.second.first, -b.second.second);
        });
    if (best == pairs.end() || best->second.first < 2) break;
    const Bpe::Merge merge = best->first;
    const std::int64_t id = 256 + static_cast<std::int64_t>(merges.size());
    merges.push_back(merge);
    for (Ids& ids : pieces) {
      Ids out;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const bool pair = i + 1 < ids.size() && ids[i] == merge[0] && ids[i + 1] == merge[1];
        out.push_back(pair ? id : ids[i]);
        i += pair;
      }
      ids = out;
    }
  }
  return merges;
}

TEST_CASE("bpe: counting as one goes gives what counting anew gives") {
  RandomStream random(random_key(1, "test"));
  for (int trial = 0; trial < 20; ++trial) {
    std::string text;
    for (int i = 0; i < 300; ++i) text.push_back("aab c"[random.below(5)]);
    INFO(text);
    REQUIRE(Bpe::train(text, 290).merges() == slow_merges(text, 290));
  }
}

TEST_CASE("masked tokens: 15 %, of which 80 % blank, 10 % random, 10 % as they were") {
  std::int64_t drawn = 0, blank = 0, same = 0, other = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Ids ids(100, 7), targets(100, 0);
    RandomStream stream(masking_key(Part::train, 3, 0, trial));
    mask_tokens(stream, ids, targets, 1000, 1000);
    REQUIRE(std::count(targets.begin(), targets.end(), 7) == 15);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (targets[i] == kIgnored) {
        REQUIRE(ids[i] == 7);
        continue;
      }
      ++drawn;
      blank += ids[i] == 1000;
      same += ids[i] == 7;
      other += ids[i] != 7 && ids[i] < 1000;
    }
  }
  CHECK(drawn == 3000);
  CHECK(std::abs(blank - 2400) < 5 * 22);
  CHECK(std::abs(same - 300) < 5 * 17);
  CHECK(std::abs(other - 300) < 5 * 17);
  // A short sample has one.
  Ids one(2, 7), target(2, 0);
  RandomStream stream(masking_key(Part::train, 3, 0, 0));
  mask_tokens(stream, one, target, 10, 10);
  CHECK(std::count(target.begin(), target.end(), 7) == 1);
}

}  // namespace
}  // namespace norma
