// What BatchNorm's kernels share, whatever the instruction set: sizes, memory, pieces.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/kernels/norm_channels.h"

namespace norma::kernels {

// Note [Channels in pieces]. A channel's values lie apart: in an image a run of `space` elements a
// sample, on plain features (space 1) one element. What lies apart is slow to read, and where the
// distance is a power of two no cache keeps it. So the array is read in the order of memory, twice.
// The first time each piece of it gives two sums a column: the mean and the squared deviations from
// it (backward: the sums of dy and of dy z). They are added up in the order of the samples, the
// deviations as Chan, Golub and LeVeque (1983) do. The second time the result is written,
// each piece by the thread that has read it. An array of long runs takes these turns with some
// channels at a time, which the last cache keeps from one to the other.
//
// A long run is a column by itself. Where runs are short, the vectors go across the channels: every
// element of a sample is a column, and those of a channel are added up at the end.
constexpr std::int64_t kShortRun = 16;
constexpr std::int64_t kColumns = 1024;       // most columns of a piece, where they are elements
constexpr std::int64_t kRows = 64;            // its samples: as many are summed in T
constexpr std::int64_t kRunElements = 16384;  // about so many elements of a sample in long runs
constexpr std::int64_t kRunRows = 2;
constexpr std::int64_t kNearBytes = std::int64_t{8} << 20;  // of x and dy in the last cache

// Note [Panels]. A large array would come from memory twice that way. So a thread takes a panel of
// it, some channels of all samples, and reads it once; what the second reading needs is in the
// caches then. A step reads a panel and, vector by vector between, writes the result of the one
// before past the cache (Note [Past the cache]): memory reads and writes at the same time. A column
// is summed in the order of its pieces as above, so that the bits are the same.
//
// A panel of runs is read again where it lies. Of a matrix, whose rows lie apart, a thread keeps
// the panel in memory of its own, row beside row: no distance between rows drives it from the
// caches, and the panel that is read takes the place of the one that is written. The sums of its
// pieces are added up at once; of first and second it writes the first row alone. Arrays of short
// runs have no panels.
struct Panels {
  std::int64_t width = 0;  // channels
  std::int64_t count = 0;  // of whole panels; 0 where they do not pay
};
// Of a row, in x and dy. Less wastes what memory sends, more takes more registers than there are.
constexpr std::int64_t kPanelBytes = 512;
constexpr std::int64_t kPanelRun = 512;  // elements of a sample, at least: whole runs
// Of x and dy, for each thread: what the last cache of two cores keeps beside all else.
constexpr std::int64_t kMostInPanel = std::int64_t{8} << 20;
constexpr std::int64_t kNoPanel = -1;

template <class T>
constexpr std::int64_t panel_width(bool backward) {  // of a matrix
  return kPanelBytes / static_cast<std::int64_t>(sizeof(T)) / (backward ? 2 : 1);
}
template <class T>
[[nodiscard]] Panels panels_of(const ChannelsShape& s, bool backward, int threads) {
  if (s.space > 1 && s.space < kShortRun) return {};
  const std::int64_t width =
      s.space == 1 ? panel_width<T>(backward) : (kPanelRun + s.space - 1) / s.space;
  const std::int64_t element = static_cast<std::int64_t>(sizeof(T)) * (backward ? 2 : 1);
  const Panels panels{width, s.channels / width};
  // With fewer than two a thread, some threads would wait for the last.
  const bool pay = panels.count >= 2 * threads && s.count() * width * element <= kMostInPanel;
  return pay ? panels : Panels{};
}

struct Pieces {
  bool runs = false;
  std::int64_t rows = 1;     // samples of a piece
  std::int64_t width = 1;    // its channels
  std::int64_t across = 1;   // pieces side by side
  std::int64_t down = 1;     // pieces one below the other
  std::int64_t columns = 1;  // columns of a channel
  std::int64_t length = 1;   // values of a column in a sample
};

// What both directions read and write; unused members are null.
template <class T>
struct ChannelsTask {
  ChannelsShape shape;
  bool given;  // mean and rstd are inputs
  const T* x;
  const T* dy;
  const T* weight;
  const T* bias;
  T* y;
  T* mean;
  T* var;
  T* rstd;
  NormGradients<T> out;
  Pieces pieces{};
  bool past = false;  // see Note [Past the cache]
  // (pieces.down, columns()): mean and squared deviations, or the sums of dy and of dy z.
  double* first = nullptr;
  double* second = nullptr;
  // What the results are computed with, for each column: mean, rstd, gain, shift; in backward mean,
  // rstd, gain * rstd, sum(dy) / m, sum(dy z) / m.
  static constexpr std::int64_t kLines = 5;
  T* lines[kLines] = {};

  [[nodiscard]] std::int64_t stride() const { return shape.channels * shape.space; }
  [[nodiscard]] std::int64_t columns() const { return shape.channels * pieces.columns; }
  [[nodiscard]] const T* result() const { return dy ? out.dx : y; }
  // Bytes that are read for each element of x; and that are read and written in all.
  [[nodiscard]] std::int64_t element_bytes() const {
    return static_cast<std::int64_t>(sizeof(T)) * (dy ? 2 : 1);
  }
  [[nodiscard]] std::int64_t moved_bytes() const {
    return shape.count() * shape.channels *
           (element_bytes() + static_cast<std::int64_t>(sizeof(T)));
  }
  // Of a column, in the pieces of row `down`.
  [[nodiscard]] std::int64_t values(std::int64_t down) const {
    return std::min(pieces.rows, shape.samples - down * pieces.rows) * pieces.length;
  }
};

// A piece: rows r0..r1-1 of channels c0..c1-1.
struct Piece {
  template <class T>
  Piece(const ChannelsTask<T>& a, std::int64_t i, std::int64_t j)
      : down(i),
        r0(down * a.pieces.rows),
        r1(std::min(a.shape.samples, r0 + a.pieces.rows)),
        c0(j * a.pieces.width),
        c1(std::min(a.shape.channels, c0 + a.pieces.width)),
        column(c0 * a.pieces.columns),
        offset(r0 * a.stride() + c0 * a.shape.space),
        cols((c1 - c0) * a.shape.space) {}
  std::int64_t down, r0, r1, c0, c1;
  std::int64_t column;        // the first of the array's columns
  std::int64_t offset, cols;  // the first element, and the elements of a row
  [[nodiscard]] std::int64_t rows() const { return r1 - r0; }
};

}  // namespace norma::kernels
