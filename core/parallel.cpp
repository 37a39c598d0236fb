#include "core/parallel.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace norma {
namespace {

int default_threads() {
#ifdef _OPENMP
  return std::max(1, omp_get_max_threads());
#else
  return 1;
#endif
}

std::atomic<int> g_threads{0};  // 0: not set
thread_local bool t_in_parallel = false;

}  // namespace

int num_threads() {
  static const int standard = default_threads();
  const int n = g_threads.load(std::memory_order_relaxed);
  return n > 0 ? n : standard;
}

void set_num_threads(int n) {
  require(n >= 1, "threads: expected at least 1; got {}", n);
  g_threads.store(n, std::memory_order_relaxed);
}

bool has_threads() {
#ifdef _OPENMP
  return true;
#else
  return false;
#endif
}

bool in_parallel() { return t_in_parallel; }

namespace {

using Body = void (*)(void* context, std::int64_t chunk);

// Marks the calling thread as inside of a loop.
class Inside {
 public:
  Inside() { t_in_parallel = true; }
  ~Inside() { t_in_parallel = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool before_ = t_in_parallel;
};

void run_alone(std::int64_t chunks, Body body, void* context) {
  const Inside inside;
  for (std::int64_t c = 0; c < chunks; ++c) body(context, c);
}

#ifdef _OPENMP

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Note [Helpers]. OpenMP says how many threads there are; the loops run on threads of our own,
// since a loop of OpenMP ends when *all* its threads have come by. A step of a deep network has
// some thousand loops of a few microseconds. Beside another program, a thread that waits for a core
// then holds up every one of them: with ten programs on two cores a step took 10 to 20 s in the
// place of 40 ms, and takes 2 to 3 s now. Here a loop ends when its chunks are done and
// told. Whoever has done its own takes what is left, and a helper that comes late finds none.
//
// Each thread has a part of the chunks, always the same one of as many, and takes from the parts of
// the others when its own is done. Loops that follow each other mostly work on the same rows: what
// one has written, the next finds in the cache of its own core. (Without that a step of a deep
// network takes a third more where the cores share no cache.)
//
// A part is the number of its job and how many of its chunks are left, in one word: a chunk is
// taken by counting that word down. That succeeds only while the job has chunks left, and until
// those are done the caller does not touch what else describes the job; so a late helper cannot mix
// two jobs up. All that a helper needs to know of a job lies in one line of memory, which it looks
// at, and what it has done it says once, at the end: where the cores share no cache, each line more
// is a tenth of a loop of a few microseconds. Between jobs a helper looks for work for some
// microseconds, then sleeps: waiting threads must not take the core of a working one. There are
// never more threads than cores; they would only wait for each other.
class Helpers {
 public:
  // Never destroyed: its threads end with the process.
  static Helpers& get() {
    static Helpers* helpers = new Helpers;
    return *helpers;
  }

  void run(std::int64_t chunks, Body body, void* context) {
    const std::unique_lock busy(caller_, std::try_to_lock);
    if (!busy) return run_alone(chunks, body, context);
    const int wanted = static_cast<int>(std::min<std::int64_t>(threads_to_use(), chunks)) - 1;
    const int helpers = start(wanted);
    if (helpers < 1) return run_alone(chunks, body, context);
    const std::int64_t parts = helpers + 1;
    job_ = (job_ + 1) & kLeft;
    bool asleep = false;
    // The caller's own part last. A helper that comes meanwhile finds none of the job in the parts
    // that are not written yet, and leaves them to others.
    for (std::int64_t i = parts - 1; i >= 0; --i) {
      Part& p = part(i);
      p.body.store(body, std::memory_order_relaxed);
      p.context.store(context, std::memory_order_relaxed);
      p.chunks.store(chunks, std::memory_order_relaxed);
      p.parts.store(parts, std::memory_order_relaxed);
      const std::int64_t size = part_end(i, parts, chunks) - part_end(i - 1, parts, chunks);
      p.left.store(job_ << kShift | static_cast<std::uint64_t>(size));
      asleep = p.asleep.load() || asleep;
    }
    if (asleep) {
      const std::lock_guard lock(sleep_);
      wake_.notify_all();
    }
    {
      const Inside inside;
      expected_ += static_cast<std::uint64_t>(chunks - take_chunks(job_, 0));
    }
    for (int i = 0; done_.load(std::memory_order_acquire) != expected_; ++i) {
      i < kLooks ? pause() : std::this_thread::yield();
    }
    if (failed_.load(std::memory_order_relaxed)) {
      failed_.store(false, std::memory_order_relaxed);
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

 private:
  static constexpr int kShift = 32;
  static constexpr std::uint64_t kLeft = (std::uint64_t{1} << kShift) - 1;
  static constexpr int kLooks = 4000;  // 50 us
  static constexpr std::chrono::microseconds kPatience{20};
  using Clock = std::chrono::steady_clock;

  static int cores() {
    static const int cores = std::max(1, omp_get_num_procs());
    return cores;
  }
  static int threads_to_use() { return std::min(num_threads(), cores()); }

  // Starts threads until there are `wanted`; how many of these there are. Where the system refuses
  // one, fewer give the same result; it is not asked again.
  int start(int wanted) {
    wanted = std::min(wanted, most_);
    try {
      for (; started_ < wanted; ++started_) {
        std::thread([this, index = started_] { serve(index); }).detach();
      }
    } catch (const std::system_error&) {
      most_ = started_;
    }
    return std::min(wanted, started_);
  }

  // Part i of `parts` ends before this chunk.
  static std::int64_t part_end(std::int64_t i, std::int64_t parts, std::int64_t chunks) {
    return (i + 1) * chunks / parts;
  }

  // A thread's part of a job, and the job.
  struct alignas(64) Part {
    std::atomic<std::uint64_t> left{0};
    std::atomic<bool> asleep{false};  // the thread
    std::atomic<Body> body{nullptr};
    std::atomic<void*> context{nullptr};
    std::atomic<std::int64_t> chunks{0}, parts{0};
  };
  Part& part(std::int64_t i) { return parts_[static_cast<std::size_t>(i)]; }

  // Takes chunks of the job until none is left, from part `own` first; how many it took. Before it
  // takes those of another it waits, once a job: a quarter of the time that its own took, at most
  // kPatience.
  std::int64_t take_chunks(std::uint64_t job, std::int64_t own) {
    const Part& mine = part(own);
    const Body body = mine.body.load(std::memory_order_relaxed);
    void* const context = mine.context.load(std::memory_order_relaxed);
    const std::int64_t chunks = mine.chunks.load(std::memory_order_relaxed);
    const std::int64_t parts = mine.parts.load(std::memory_order_relaxed);
    const Clock::time_point begin = Clock::now();
    bool waited = false;
    std::int64_t taken = 0;
    for (std::int64_t k = 0; k < parts; ++k) {
      const std::int64_t i = (own + k) % parts, end = part_end(i, parts, chunks);
      std::atomic<std::uint64_t>& word = part(i).left;
      std::uint64_t left = word.load(std::memory_order_acquire);
      const auto is_left = [&] { return left >> kShift == job && (left & kLeft) > 0; };
      if (k > 0 && !waited && is_left()) {
        waited = true;
        const Clock::time_point now = Clock::now();
        const Clock::time_point until =
            now + std::min<Clock::duration>((now - begin) / 4, kPatience);
        while (is_left() && Clock::now() < until) {
          pause();
          left = word.load(std::memory_order_acquire);
        }
      }
      while (is_left()) {
        if (!word.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
          continue;
        }
        run_chunk(body, context, end - static_cast<std::int64_t>(left & kLeft));
        ++taken;
        left = word.load(std::memory_order_acquire);
      }
    }
    return taken;
  }

  void run_chunk(Body body, void* context, std::int64_t chunk) {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      body(context, chunk);
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  void serve(int index) {
    const Inside inside;
    const std::int64_t own = index + 1;
    const auto job = [&] { return part(own).left.load() >> kShift; };
    std::uint64_t seen = 0;
    for (int looks = 0;; ++looks) {
      if (const std::uint64_t now = job(); now != seen) {
        seen = now;
        looks = 0;
        const std::int64_t taken = take_chunks(now, own);
        if (taken > 0) {
          done_.fetch_add(static_cast<std::uint64_t>(taken), std::memory_order_release);
        }
      } else if (looks < kLooks) {
        pause();
      } else {
        std::unique_lock lock(sleep_);
        part(own).asleep.store(true);
        wake_.wait(lock, [&] { return job() != seen; });
        part(own).asleep.store(false);
      }
    }
  }

  std::mutex caller_;  // one loop at a time; others run on their callers' threads
  int started_ = 0;
  int most_ = std::numeric_limits<int>::max();
  std::uint64_t job_ = 0;       // the caller's
  std::uint64_t expected_ = 0;  // what done_ will be
  // What is read beside a part lies apart from what every job writes. The first part is the
  // caller's.
  alignas(64) std::vector<Part> parts_{static_cast<std::size_t>(cores())};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  alignas(64) std::atomic<std::uint64_t> done_{0};  // chunks that helpers have ever done
  std::mutex sleep_;
  std::condition_variable wake_;
};

#endif

}  // namespace

namespace detail {

void run_chunks(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context) {
#ifdef _OPENMP
  Helpers::get().run(chunks, body, context);
#else
  run_alone(chunks, body, context);
#endif
}

}  // namespace detail
}  // namespace norma
