#include "engine/chat/language/loop.h"

#include "engine/chat/values/objects.h"
#include "engine/chat/values/operators.h"

namespace statescope::chat {
namespace {

Value cycle(Runtime&, const Value& self, const Call& call) {
  const Items& items = call.arguments().positional;
  if (items.empty() || !call.arguments().named.empty()) throw Error("loop.cycle takes one item or more");
  return items[self.object_as<Loop>()->index0() % items.size()];
}

Value has_changed(Runtime&, const Value& self, const Call& call) {
  if (!call.arguments().named.empty()) throw Error("loop.changed takes no keyword argument");
  return self.object_as<Loop>()->changed(call.arguments().positional);
}

}  // namespace

bool Loop::advance() {
  std::optional<Value> item = peek();
  if (!item) return false;
  ahead_.pop_front();
  previous_ = std::exchange(current_, std::move(item));
  ++read_;
  return true;
}

void Loop::end() {
  next_ = [] { return std::nullopt; };
  recurse_ = nullptr;
}

const std::optional<Value>& Loop::peek() {
  if (ahead_.empty()) ahead_.push_back(next_());
  return ahead_.front();
}

std::size_t Loop::total() {
  if (length_) return *length_;
  if (!ahead_.empty() && !ahead_.back()) ahead_.pop_back();
  for (auto item = next_(); item; item = next_()) {
    if (ahead_.size() >= kMostItems) throw Error("a loop that is too long");
    ahead_.push_back(std::move(item));
  }
  length_ = read_ + ahead_.size();
  return *length_;
}

std::optional<Value> Loop::attribute(const std::string& name) {
  if (name == "index0") return index0();
  if (name == "index") return read_;
  if (name == "first") return read_ == 1;
  if (name == "last") return !peek().has_value();
  if (name == "length") return total();
  if (name == "revindex") return Int{static_cast<std::int64_t>(total())} - static_cast<Int>(index0());
  if (name == "revindex0") return Int{static_cast<std::int64_t>(total())} - static_cast<Int>(read_);
  if (name == "previtem") return read_ == 1 || !previous_ ? Value::undefined("there is no previous item") : *previous_;
  if (name == "nextitem") return peek() ? *peek() : Value::undefined("there is no next item");
  if (name == "depth") return depth0_ + 1;
  if (name == "depth0") return depth0_;
  if (name == "cycle") return std::make_shared<Function>(name, Entry{"*", cycle}, shared_from_this());
  if (name == "changed") return std::make_shared<Function>(name, Entry{"*", has_changed}, shared_from_this());
  return std::nullopt;
}

bool Loop::changed(Items values) {
  Value now = Value::tuple(std::move(values));
  if (last_changed_ && equal(*last_changed_, now)) return false;
  last_changed_ = std::move(now);
  return true;
}

Value Loop::call(Runtime&, const Arguments& arguments) {
  if (!recurse_) throw Error("only a loop with 'recursive' can be called");
  if (arguments.positional.size() != 1 || !arguments.named.empty()) throw Error("loop() takes one argument");
  return recurse_(arguments.positional[0], depth0_ + 1);
}

}  // namespace statescope::chat
