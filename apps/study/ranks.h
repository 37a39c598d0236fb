// The ranks that mpirun starts, and messages between them. ranks.cpp is the one file that knows
// MPI; a build without it has no ranks.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

namespace norma::study {

struct Message {
  int from = 0;
  std::string text;  // any bytes
};

class Ranks {
 public:
  // True iff this build has MPI.
  [[nodiscard]] static bool available();
  // True iff mpirun has started this process as one of several.
  [[nodiscard]] static bool launched();

  // Starts MPI. Throws Error in a build without.
  Ranks();
  // Waits until what was posted has gone, and ends MPI; if a rank was lost, ends all at once.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  // Sends a message; returns at once.
  void post(int to, std::string text);
  // A message that has come, if any.
  [[nodiscard]] std::optional<Message> receive();
  // A rank does not answer any more: nothing is waited for at the end.
  void lose() { lost_ = true; }

 private:
  struct Outgoing;
  void clear_sent();

  int rank_ = 0, size_ = 1;
  bool lost_ = false;
  std::list<std::unique_ptr<Outgoing>> outgoing_;
};

}  // namespace norma::study
