// The values that are none of the plain kinds.
#pragma once

#include <map>
#include <string>

#include "engine/chat/values/operators.h"
#include "engine/chat/values/runtime.h"
#include "engine/chat/values/value.h"

namespace statescope::chat {

/// range(begin, end, step).
class Range : public Object {
 public:
  Range(std::int64_t begin, std::int64_t step, std::size_t count) : begin_(begin), step_(step), count_(count) {}
  std::string type() const override { return "range"; }
  std::string repr() const override;
  std::optional<Value> attribute(const std::string& name) override;
  std::optional<Value> item(const Value& key) override;
  std::optional<std::size_t> length() const override { return count_; }
  Next iterate() override;
  bool indexed() const override { return true; }
  Value slice(const Value& from, const Value& to, const Value& step) const;
  Int at(std::size_t i) const { return Int{begin_} + static_cast<Int>(i) * step_; }

 private:
  std::int64_t begin_, step_;
  std::size_t count_;
};
bool items_equal(const Range& left, const Range& right);

/// What map, select, … give: made as it is read, once.
class Lazy : public Object {
 public:
  Lazy(Next next, std::size_t depth);
  std::string type() const override { return "generator"; }
  Next iterate() override { return next_; }
  std::size_t depth() const override { return depth_; }

 private:
  Next next_;
  std::size_t depth_;
};
/// Over `source`; `make` is called when the first element is asked for.
Value lazy(const Value& source, std::function<Next()> make);

/// A dict's keys(), values() or items().
class DictView : public Object {
 public:
  enum class What { keys, values, items };
  DictView(Value dict, What what) : dict_(std::move(dict)), what_(what) {}
  std::string type() const override;
  std::string repr() const override;
  std::optional<std::size_t> length() const override { return dict_.dict().entries.size(); }
  Next iterate() override;
  std::size_t depth() const override { return dict_.depth() + 1; }
  std::size_t weight() const override { return dict_.weight(); }
  Value at(std::size_t i) const;

 private:
  Value dict_;
  What what_;
};

/// namespace(…): what a template may change.
class Namespace : public Object {
 public:
  explicit Namespace(Dict values) : values_(std::move(values)) {}
  std::string type() const override { return "Namespace"; }
  std::string repr() const override;
  std::optional<Value> attribute(const std::string& name) override;
  /// Throws Error for a name that starts with _.
  void set(const std::string& name, Value value);
  void clear() { values_ = {}; }

 private:
  Dict values_;
  mutable bool printing_ = false;
};

/// A method of a value, or a global.
class Function : public Object {
 public:
  Function(std::string name, Entry entry, Value self) : name_(std::move(name)), entry_(entry), self_(std::move(self)) {}
  std::string type() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override;
  std::size_t depth() const override { return self_.depth() + 1; }
  std::size_t weight() const override { return self_.weight(); }

 private:
  std::string name_;
  Entry entry_;
  Value self_;
};

class Cycler : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(Items items) : items_(std::move(items)) {}
  std::string type() const override { return "Cycler"; }
  std::optional<Value> attribute(const std::string& name) override;
  const Value& current() const { return items_[at_]; }
  void advance() { at_ = (at_ + 1) % items_.size(); }
  void reset() { at_ = 0; }

 private:
  Items items_;
  std::size_t at_ = 0;
};

class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string type() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override;

 private:
  Value separator_;
  bool used_ = false;
};

/// What str.encode gives.
class Bytes : public Object {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string type() const override { return "bytes"; }
  std::string repr() const override;
  std::optional<Value> item(const Value& key) override;
  std::optional<std::size_t> length() const override { return bytes_.size(); }
  Next iterate() override;
  bool indexed() const override { return true; }
  std::size_t weight() const override { return 1 + bytes_.size() / 256; }

 private:
  std::string bytes_;
};

}  // namespace statescope::chat
