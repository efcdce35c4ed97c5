// What filters, tests, methods and functions are called with.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// A template ended on purpose, by raise_exception: what it says is for the user, as it stands.
class Complaint : public Error {
 public:
  using Error::Error;
};

/// The template that is being rendered, as its functions see it.
class Runtime {
 public:
  virtual ~Runtime() = default;
  /// `value | name(arguments)`. Throws Error: "no filter named …".
  virtual Value filter(const std::string& name, const Value& value, const Arguments& arguments) = 0;
  /// `value is name(arguments)`.
  virtual bool test(const std::string& name, const Value& value, const Arguments& arguments) = 0;
  /// Throws Error where the template has taken more steps than it may.
  virtual void charge(std::size_t steps) = 0;
  /// Holds what could hold itself until the template is done.
  virtual void keep(std::shared_ptr<Object> object) = 0;
  /// Local time, for strftime_now.
  virtual const std::tm& now() const = 0;
};

/// The arguments of a call, in the order of the parameters.
class Call {
 public:
  /// `parameters`: "old new count=", those with = may be missing; "/ chars=" takes none by name; "*" takes any. Throws Error where the
  /// arguments do not fit.
  Call(std::string_view what, std::string_view parameters, const Arguments& arguments);

  bool given(std::size_t i) const { return i < values_.size() && values_[i].has_value(); }
  /// None (the value) where it was not given.
  const Value& at(std::size_t i) const;
  Value at(std::size_t i, Value otherwise) const { return given(i) ? at(i) : std::move(otherwise); }
  /// Whether it is true; `otherwise` where it was not given.
  bool flag(std::size_t i, bool otherwise = false) const { return given(i) ? truth(at(i)) : otherwise; }
  /// Throws Error where it is no integer.
  std::int64_t integer(std::size_t i, std::int64_t otherwise = 0) const;
  /// Throws Error where it is no text.
  const std::string& text(std::size_t i) const;
  const Arguments& arguments() const { return arguments_; }

 private:
  void bind_named(std::string_view what, const std::vector<std::string>& names, bool positional_only);
  const Arguments& arguments_;
  std::vector<std::optional<Value>> values_;
};

using Apply = Value (*)(Runtime& runtime, const Value& value, const Call& call);
struct Entry {
  const char* parameters;
  Apply apply;
};

}  // namespace statescope::chat
