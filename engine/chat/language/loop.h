// `loop`, as the body of a for sees it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  /// What a recursive loop does with `loop(iterable)`, one level deeper; null: it is not recursive.
  using Recurse = std::function<Value(const Value& iterable, std::size_t depth0)>;

  /// `length`: none where only reading on tells.
  Loop(Next next, std::optional<std::size_t> length, std::size_t depth0, Recurse recurse)
      : next_(std::move(next)), length_(length), depth0_(depth0), recurse_(std::move(recurse)) {}
  /// Goes to the next element, if there is one.
  bool advance();
  const Value& current() const { return *current_; }
  /// Lets go of what it was called with.
  void end();

  std::string type() const override { return "LoopContext"; }
  std::optional<Value> attribute(const std::string& name) override;
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override;
  /// Whether it differs from what was asked about last.
  bool changed(Items values);
  std::size_t index0() const { return read_ - 1; }

 private:
  const std::optional<Value>& peek();
  std::size_t total();

  Next next_;
  std::deque<std::optional<Value>> ahead_;  // read, but not yet passed; an empty one: the end
  std::optional<Value> current_, previous_, last_changed_;
  std::optional<std::size_t> length_;
  std::size_t depth0_, read_ = 0;
  Recurse recurse_;
};

}  // namespace statescope::chat
