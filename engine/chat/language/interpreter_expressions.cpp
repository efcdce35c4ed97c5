#include <fmt/format.h>

#include <algorithm>

#include "engine/chat/filters/filters.h"
#include "engine/chat/filters/globals.h"
#include "engine/chat/filters/tests_of_values.h"
#include "engine/chat/language/interpreter.h"
#include "engine/chat/values/lookup.h"
#include "engine/chat/values/operators.h"

namespace statescope::chat {

/// Counts what was made.
Value Interpreter::made(Value value) {
  charge(value.is_text() ? 1 + value.text().size() / 16 : value.sequence() ? 1 + value.sequence()->items.size() : 1);
  return value;
}

Value Interpreter::filter(const std::string& name, const Value& value, const Arguments& arguments) {
  charge(value.weight());
  for (const Value& argument : arguments.positional) charge(argument.weight());
  return made(filtered(*this, name, value, arguments));
}

bool Interpreter::test(const std::string& name, const Value& value, const Arguments& arguments) {
  charge(value.weight());
  for (const Value& argument : arguments.positional) charge(argument.weight());
  return test_value(*this, name, value, arguments);
}

Value Interpreter::evaluate(const Expression& expression) {
  const Deeper deeper(*this);
  charge(1);
  line_ = expression.line;
  return evaluate_deeper(expression);
}

Value Interpreter::evaluate_deeper(const Expression& expression) {
  const auto part = [&](std::size_t i) { return evaluate(*expression.parts[i]); };
  using Kind = Expression::Kind;
  switch (expression.kind) {
    case Kind::constant:
      return expression.value;
    case Kind::name:
      return name(expression.name);
    case Kind::list:
    case Kind::tuple:
      return sequence(expression);
    case Kind::dict:
      return dict(expression);
    case Kind::condition:
      return condition(expression);
    case Kind::both: {
      Value left = part(0);
      return truth(left) ? part(1) : left;
    }
    case Kind::either: {
      Value left = part(0);
      return truth(left) ? left : part(1);
    }
    case Kind::negation:
      return !truth(part(0));
    case Kind::comparison:
      return comparison(expression);
    case Kind::binary:
      return binary_of(expression);
    case Kind::joined:
      return joined(expression);
    case Kind::negative:
      return negative(part(0));
    case Kind::positive:
      return positive(part(0));
    case Kind::attribute:
      return attribute_or_item(part(0), expression.name);
    case Kind::item: {
      const Value value = part(0);
      return item_or_attribute(value, part(1));
    }
    case Kind::slice:
      return sliced(expression);
    case Kind::call:
      return call(expression, nullptr);
    case Kind::filter: {
      const Value value = part(0);
      return filter(expression.name, value, arguments(expression.arguments));
    }
    case Kind::test: {
      const Value value = part(0);
      return test(expression.name, value, arguments(expression.arguments));
    }
  }
  return {};
}

Value Interpreter::name(const std::string& name) {
  if (const Value* found = frame_->find(name)) return *found;
  if (auto found = global(name)) return *found;
  if (name == "self") throw Error("'self' is not supported");
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Value Interpreter::sequence(const Expression& expression) {
  Items items;
  for (const auto& part : expression.parts) items.push_back(evaluate(*part));
  return made(expression.kind == Expression::Kind::list ? Value::list(std::move(items)) : Value::tuple(std::move(items)));
}

Value Interpreter::dict(const Expression& expression) {
  Dict dict;
  for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
    Value key = evaluate(*expression.parts[i]);
    dict.set(std::move(key), evaluate(*expression.parts[i + 1]));
  }
  return Value::dict(std::move(dict));
}

Value Interpreter::condition(const Expression& expression) {
  if (truth(evaluate(*expression.parts[1]))) return evaluate(*expression.parts[0]);
  if (expression.parts[2]) return evaluate(*expression.parts[2]);
  return Value::undefined("the condition was false and there is no else");
}

/// a < b < c: each is evaluated once, and no further than the first that does not hold.
Value Interpreter::comparison(const Expression& expression) {
  Value left = evaluate(*expression.parts[0]);
  for (std::size_t i = 0; i < expression.signs.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1]);
    charge(std::min(left.weight(), right.weight()) + (expression.signs[i].ends_with("in") ? right.weight() : 0));
    if (!compare(expression.signs[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::binary_of(const Expression& expression) {
  const Value left = evaluate(*expression.parts[0]), right = evaluate(*expression.parts[1]);
  charge(left.is_text() && expression.name == "%" ? right.weight() : 1);
  line_ = expression.line;
  return made(binary(expression.name, left, right));
}

Value Interpreter::joined(const Expression& expression) {
  Builder text;
  for (const auto& part : expression.parts) {
    const Value value = evaluate(*part);
    charge(value.weight());
    text.add(printed(value));
  }
  return made(text.take());
}

Value Interpreter::sliced(const Expression& expression) {
  Value parts[4];
  for (std::size_t i = 0; i < 4; ++i) {
    if (expression.parts[i]) parts[i] = evaluate(*expression.parts[i]);
  }
  charge(parts[0].is_text() ? parts[0].weight() : 1);
  return made(slice(parts[0], parts[1], parts[2], parts[3]));
}

Arguments Interpreter::arguments(const GivenArguments& given) {
  Arguments out;
  for (const auto& argument : given.positional) out.positional.push_back(evaluate(*argument));
  for (const auto& [name, argument] : given.named) out.named.emplace_back(name, evaluate(*argument));
  if (given.all_positional) {
    for (Value& value : items_of(evaluate(*given.all_positional))) out.positional.push_back(std::move(value));
  }
  if (!given.all_named) return out;
  const Value named = evaluate(*given.all_named);
  if (!named.is_dict()) throw Error("what follows ** is a mapping");
  for (const auto& [key, value] : named.dict().entries) {
    if (!key.is_text()) throw Error("keywords are strings");
    const bool twice = std::ranges::any_of(out.named, [&](const auto& other) { return other.first == key.text(); });
    if (twice) throw Error(fmt::format("two values for the keyword argument '{}'", key.text()));
    out.named.emplace_back(key.text(), value);
  }
  return out;
}

Value Interpreter::call(const Expression& expression, const Value* caller) {
  const Value callee = evaluate(*expression.parts[0]);
  Arguments given = arguments(expression.arguments);
  if (caller) given.named.emplace_back("caller", *caller);
  line_ = expression.line;
  defined(callee);
  if (!callee.object()) throw Error(fmt::format("'{}' object is not callable", callee.type()));
  charge(callee.weight());
  for (const Value& argument : given.positional) charge(argument.weight());
  return made(callee.object()->call(*this, given));
}

/// Of a filter block or a set block: one after the other, on what was printed.
Value Interpreter::filters(const Expression& expression, const std::string& innermost) {
  const Value value = expression.parts[0] ? filters(*expression.parts[0], innermost) : Value(innermost);
  return filter(expression.name, value, arguments(expression.arguments));
}

}  // namespace statescope::chat
