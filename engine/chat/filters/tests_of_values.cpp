#include "engine/chat/filters/tests_of_values.h"

#include <fmt/format.h>

#include <map>

#include "engine/chat/filters/filters.h"
#include "engine/chat/values/lookup.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"

namespace statescope::chat {
namespace {

template <int rest>
Value leaves(Runtime&, const Value& value, const Call&) {
  return equal(binary("%", value, 2), rest);
}

Value divisible(Runtime&, const Value& value, const Call& call) { return equal(binary("%", value, call.at(0)), 0); }

template <bool (Value::*is)() const>
Value is_kind(Runtime&, const Value& value, const Call&) {
  return (value.*is)();
}

Value is_defined(Runtime&, const Value& value, const Call&) { return !value.is_undefined(); }

template <bool which>
Value is_constant(Runtime&, const Value& value, const Call&) {
  return value.is_boolean() && value.boolean() == which;
}

template <bool (*exists)(const std::string&)>
Value is_named(Runtime&, const Value& value, const Call&) {
  return value.is_text() && exists(value.text());
}

/// Calls the method of that name on the printed value.
Value is_lower_text(Runtime& runtime, const Value& value, const Call&) {
  return attribute(printed(value), "islower")->object()->call(runtime, {});
}

Value is_upper_text(Runtime& runtime, const Value& value, const Call&) {
  return attribute(printed(value), "isupper")->object()->call(runtime, {});
}

Value is_sequence(Runtime&, const Value& value, const Call&) { return has_length(value) && (!value.object() || value.object()->indexed()); }

Value is_iterable(Runtime&, const Value& value, const Call&) {
  return value.is_undefined() || value.is_text() || value.sequence() || value.is_dict() || (value.object() && value.object()->iterate());
}

Value is_callable(Runtime&, const Value& value, const Call&) {
  return value.is_undefined() || (value.object() && value.object()->callable());
}
Value is_same(Runtime&, const Value& value, const Call& call) { return value.same(call.at(0)); }
Value is_escaped(Runtime&, const Value&, const Call&) { return false; }
Value is_in(Runtime&, const Value& value, const Call& call) { return contains(call.at(0), value); }
Value is_equal(Runtime&, const Value& a, const Call& call) { return equal(a, call.at(0)); }
Value is_unequal(Runtime&, const Value& a, const Call& call) { return !equal(a, call.at(0)); }
Value is_less(Runtime&, const Value& a, const Call& call) { return less(a, call.at(0)); }
Value is_less_or_equal(Runtime&, const Value& a, const Call& call) { return less_or_equal(a, call.at(0)); }
Value is_greater(Runtime&, const Value& a, const Call& call) { return less(call.at(0), a); }
Value is_greater_or_equal(Runtime&, const Value& a, const Call& call) { return less_or_equal(call.at(0), a); }

const std::map<std::string, Entry>& table() {
  static const std::map<std::string, Entry> tests{{"odd", {"", leaves<1>}},
                                                  {"even", {"", leaves<0>}},
                                                  {"divisibleby", {"num", divisible}},
                                                  {"defined", {"", is_defined}},
                                                  {"undefined", {"", is_kind<&Value::is_undefined>}},
                                                  {"filter", {"", is_named<is_filter>}},
                                                  {"test", {"", is_named<is_test>}},
                                                  {"none", {"", is_kind<&Value::is_none>}},
                                                  {"boolean", {"", is_kind<&Value::is_boolean>}},
                                                  {"false", {"", is_constant<false>}},
                                                  {"true", {"", is_constant<true>}},
                                                  {"integer", {"", is_kind<&Value::is_integer>}},
                                                  {"float", {"", is_kind<&Value::is_float>}},
                                                  {"lower", {"", is_lower_text}},
                                                  {"upper", {"", is_upper_text}},
                                                  {"string", {"", is_kind<&Value::is_text>}},
                                                  {"mapping", {"", is_kind<&Value::is_dict>}},
                                                  {"number", {"", is_kind<&Value::is_number>}},
                                                  {"sequence", {"", is_sequence}},
                                                  {"iterable", {"", is_iterable}},
                                                  {"callable", {"", is_callable}},
                                                  {"sameas", {"other", is_same}},
                                                  {"escaped", {"", is_escaped}},
                                                  {"in", {"seq", is_in}},
                                                  {"==", {"/ b", is_equal}},
                                                  {"eq", {"/ b", is_equal}},
                                                  {"equalto", {"/ b", is_equal}},
                                                  {"!=", {"/ b", is_unequal}},
                                                  {"ne", {"/ b", is_unequal}},
                                                  {">", {"/ b", is_greater}},
                                                  {"gt", {"/ b", is_greater}},
                                                  {"greaterthan", {"/ b", is_greater}},
                                                  {">=", {"/ b", is_greater_or_equal}},
                                                  {"ge", {"/ b", is_greater_or_equal}},
                                                  {"<", {"/ b", is_less}},
                                                  {"lt", {"/ b", is_less}},
                                                  {"lessthan", {"/ b", is_less}},
                                                  {"<=", {"/ b", is_less_or_equal}},
                                                  {"le", {"/ b", is_less_or_equal}}};
  return tests;
}

}  // namespace

bool is_test(const std::string& name) { return table().contains(name); }

bool test_value(Runtime& runtime, const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = table().find(name);
  if (found == table().end()) throw Error(fmt::format("no test named '{}'", name));
  return truth(found->second.apply(runtime, value, Call(fmt::format("the test '{}'", name), found->second.parameters, arguments)));
}

}  // namespace statescope::chat
