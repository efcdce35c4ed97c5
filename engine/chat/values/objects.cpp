#include "engine/chat/values/objects.h"

#include <fmt/format.h>

#include "engine/chat/values/counted.h"
#include "engine/chat/values/print.h"

namespace statescope::chat {
namespace {

Value next_of_cycler(Runtime&, const Value& self, const Call&) {
  auto* cycler = self.object_as<Cycler>();
  Value value = cycler->current();
  cycler->advance();
  return value;
}

Value reset_cycler(Runtime&, const Value& self, const Call&) {
  self.object_as<Cycler>()->reset();
  return {};
}

}  // namespace

std::string Range::repr() const {
  const Int end = at(count_);
  const std::string ends = fmt::format("{}, {}", begin_, end);
  return step_ == 1 ? fmt::format("range({})", ends) : fmt::format("range({}, {})", ends, step_);
}

std::optional<Value> Range::attribute(const std::string& name) {
  if (name == "start") return Int{begin_};
  if (name == "step") return Int{step_};
  return std::nullopt;
}

std::optional<Value> Range::item(const Value& key) {
  const auto index = key.integer();
  if (!index) return std::nullopt;
  const Int place = *index < 0 ? *index + static_cast<Int>(count_) : *index;
  if (place < 0 || place >= static_cast<Int>(count_)) return std::nullopt;
  return at(static_cast<std::size_t>(place));
}

Next Range::iterate() {
  return counted(count_, [copy = *this](std::size_t i) { return Value(copy.at(i)); });
}

Value Range::slice(const Value& from, const Value& to, const Value& step) const {
  const SliceRange taken = slice_range(static_cast<std::int64_t>(count_), from, to, step);
  const Int begin = begin_ + Int{taken.begin} * step_, by = Int{taken.step} * step_;
  if (by > INT64_MAX || by < INT64_MIN) throw Error("a range whose step is too large");
  return std::make_shared<Range>(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(by), taken.count);
}

bool items_equal(const Range& left, const Range& right) {
  const std::size_t count = *left.length();
  if (count != *right.length()) return false;
  return count == 0 || (left.at(0) == right.at(0) && left.at(count - 1) == right.at(count - 1));
}

Lazy::Lazy(Next next, std::size_t depth) : next_(std::move(next)), depth_(depth) {
  if (depth_ > kMostDepth) throw Error(fmt::format("filters of filters more than {} deep", kMostDepth));
}

Value lazy(const Value& source, std::function<Next()> make) {
  const auto next = std::make_shared<Next>();
  return std::make_shared<Lazy>(
      [next, made = std::move(make)]() mutable {
        if (!*next) *next = made();
        return (*next)();
      },
      source.depth() + 1);
}

std::string DictView::type() const { return what_ == What::keys ? "dict_keys" : what_ == What::values ? "dict_values" : "dict_items"; }

std::string DictView::repr() const {
  return fmt::format("{}({})", type(), chat::repr(Value::list(items_of(std::make_shared<DictView>(*this)))));
}

Value DictView::at(std::size_t i) const {
  const auto& [key, value] = dict_.dict().entries[i];
  return what_ == What::keys ? key : what_ == What::values ? value : Value::tuple({key, value});
}

Next DictView::iterate() {
  return counted(*length(), [copy = *this](std::size_t i) { return copy.at(i); });
}

std::string Namespace::repr() const {
  if (printing_) throw Error("printing a namespace that holds itself");
  struct Mark {
    bool& flag;
    explicit Mark(bool& mark) : flag(mark) { flag = true; }
    ~Mark() { flag = false; }
  } mark(printing_);
  return fmt::format("<Namespace {}>", chat::repr(Value::dict(values_)));
}

std::optional<Value> Namespace::attribute(const std::string& name) {
  const Value* found = values_.find(name);
  return found ? std::optional(*found) : std::nullopt;
}

void Namespace::set(const std::string& name, Value value) {
  if (name.starts_with('_')) throw Error(fmt::format("'{}': a namespace holds no names that start with _", name));
  values_.set(name, std::move(value));
}

Value Function::call(Runtime& runtime, const Arguments& arguments) {
  return entry_.apply(runtime, self_, Call(name_ + "()", entry_.parameters, arguments));
}

std::optional<Value> Cycler::attribute(const std::string& name) {
  if (name == "current") return current();
  if (name == "pos") return at_;
  if (name == "items") return Value::tuple(items_);
  if (name == "next") return std::make_shared<Function>("next", Entry{"", next_of_cycler}, shared_from_this());
  if (name == "reset") return std::make_shared<Function>("reset", Entry{"", reset_cycler}, shared_from_this());
  return std::nullopt;
}

Value Joiner::call(Runtime&, const Arguments&) {
  if (used_) return separator_;
  used_ = true;
  return "";
}

std::string Bytes::repr() const {
  const char mark = bytes_.find('\'') != std::string::npos && bytes_.find('"') == std::string::npos ? '"' : '\'';
  std::string out = std::string("b") + mark;
  for (const char c : bytes_) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == mark || c == '\\') {
      out += std::string("\\") + c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else {
      out += byte < 0x20 || byte > 0x7E ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    }
  }
  return out + mark;
}

std::optional<Value> Bytes::item(const Value& key) {
  const auto index = key.integer();
  if (!index) return std::nullopt;
  const Int place = *index < 0 ? *index + static_cast<Int>(bytes_.size()) : *index;
  if (place < 0 || place >= static_cast<Int>(bytes_.size())) return std::nullopt;
  return Int{static_cast<unsigned char>(bytes_[static_cast<std::size_t>(place)])};
}

Next Bytes::iterate() {
  return counted(bytes_.size(), [bytes = bytes_](std::size_t i) { return Value(Int{static_cast<unsigned char>(bytes[i])}); });
}

}  // namespace statescope::chat
