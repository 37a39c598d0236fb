// Watching ops as they run, to find the first that gives something wrong.
#pragma once

#include <span>

#include "core/tensor.h"

namespace norma {

class Node;

// Is told of every op that is recorded, and of every node whose backward has run.
class OpWatcher {
 public:
  OpWatcher() = default;
  virtual ~OpWatcher() = default;
  OpWatcher(const OpWatcher&) = delete;
  OpWatcher& operator=(const OpWatcher&) = delete;

  // The outputs hold their values.
  virtual void recorded(const Node& node, std::span<const Tensor> outputs) = 0;
  // The gradients of the node's inputs have been handed on: they stand in `pending` of the nodes
  // that made them, or in grad() of leaves, perhaps as a part of a sum.
  virtual void differentiated(const Node& node) = 0;
};

// `watcher` is told of what this thread does while this lives.
class WatchOps {
 public:
  explicit WatchOps(OpWatcher& watcher);
  ~WatchOps();
  WatchOps(const WatchOps&) = delete;
  WatchOps& operator=(const WatchOps&) = delete;

 private:
  OpWatcher* before_;
};

// The watcher of this thread, or null.
[[nodiscard]] OpWatcher* op_watcher();

}  // namespace norma
