#include "apps/study/ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/error.h"

#ifdef NORMA_MPI
#include <mpi.h>
#endif

namespace norma::study {

bool Ranks::launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size = std::getenv(name);
    if (size && std::atoi(size) > 1) return true;
  }
  return false;
}

#ifdef NORMA_MPI

namespace {

constexpr int kSizeTag = 1, kBodyTag = 2;
constexpr std::int64_t kLargest = 1 << 28;            // bytes of a part: MPI counts in int
constexpr auto kPatience = std::chrono::seconds(30);  // for the rest of a message
// Between looks: MPI has no wait with a deadline, and one without keeps a core busy.
constexpr auto kNap = std::chrono::milliseconds(1);

// Calls `f` with the begin and the length of each part of a text.
template <class F>
void each_part(std::int64_t size, F&& f) {
  for (std::int64_t at = 0; at < size; at += kLargest)
    f(at, static_cast<int>(std::min(kLargest, size - at)));
}

}  // namespace

struct Ranks::Outgoing {
  std::int64_t size = 0;
  std::string text;
  std::vector<MPI_Request> requests;
};

bool Ranks::available() { return true; }

Ranks::Ranks() {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Ranks::~Ranks() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (clear_sent(); !outgoing_.empty() && !lost_; clear_sent()) {
    if (std::chrono::steady_clock::now() > deadline) lost_ = true;
    std::this_thread::sleep_for(kNap);
  }
  std::fflush(nullptr);
  if (lost_) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
}

void Ranks::post(int to, std::string text) {
  outgoing_.push_back(std::make_unique<Outgoing>());
  Outgoing& message = *outgoing_.back();
  message.size = static_cast<std::int64_t>(text.size());
  message.text = std::move(text);
  const auto send = [&](const void* data, int count, MPI_Datatype type, int tag) {
    message.requests.emplace_back();
    MPI_Isend(data, count, type, to, tag, MPI_COMM_WORLD, &message.requests.back());
  };
  send(&message.size, 1, MPI_INT64_T, kSizeTag);
  each_part(message.size, [&](std::int64_t at, int count) {
    send(message.text.data() + at, count, MPI_BYTE, kBodyTag);
  });
}

void Ranks::clear_sent() {
  std::erase_if(outgoing_, [](const std::unique_ptr<Outgoing>& message) {
    int done = 0;
    MPI_Testall(static_cast<int>(message->requests.size()), message->requests.data(), &done,
                MPI_STATUSES_IGNORE);
    return done != 0;
  });
}

std::optional<Message> Ranks::receive() {
  clear_sent();
  int here = 0;
  MPI_Status status{};
  MPI_Iprobe(MPI_ANY_SOURCE, kSizeTag, MPI_COMM_WORLD, &here, &status);
  if (!here) return std::nullopt;
  std::int64_t size = 0;
  MPI_Recv(&size, 1, MPI_INT64_T, status.MPI_SOURCE, kSizeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  Message message{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
  std::vector<MPI_Request> requests;
  each_part(size, [&](std::int64_t at, int count) {
    requests.emplace_back();
    MPI_Irecv(message.text.data() + at, count, MPI_BYTE, message.from, kBodyTag, MPI_COMM_WORLD,
              &requests.back());
  });
  // Not waited for without end: the rank may be gone.
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int done = 0; !done;) {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done) break;
    require(std::chrono::steady_clock::now() < deadline,
            "rank {} went away in the middle of a message; start the study again, it goes on",
            message.from);
    std::this_thread::sleep_for(kNap);
  }
  return message;
}

#else

struct Ranks::Outgoing {};

bool Ranks::available() { return false; }

Ranks::Ranks() {
  throw Error(
      "this program was built without MPI, and mpirun starts it several times; leave mpirun out "
      "and give --jobs, or configure with -DNORMA_MPI=ON (Debian: libopenmpi-dev, openmpi-bin)");
}

Ranks::~Ranks() = default;
void Ranks::post(int, std::string) {}
void Ranks::clear_sent() {}
std::optional<Message> Ranks::receive() { return std::nullopt; }

#endif

}  // namespace norma::study
