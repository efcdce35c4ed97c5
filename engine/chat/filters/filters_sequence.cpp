// Filters that go through sequences, element by element.
#include <fmt/format.h>

#include <algorithm>

#include "engine/chat/filters/filters.h"
#include "engine/chat/values/lookup.h"
#include "engine/chat/values/objects.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/strings.h"

namespace statescope::chat {
namespace {

Next nothing() {
  return [] { return std::nullopt; };
}

Next of_items(Items items) {
  return [items = std::move(items), i = std::size_t{0}]() mutable -> std::optional<Value> {
    if (i >= items.size()) return std::nullopt;
    return items[i++];
  };
}

Value default_filter(Runtime&, const Value& value, const Call& call) {
  const bool replaced = value.is_undefined() || (call.flag(1) && !truth(value));
  return replaced ? call.at(0, "") : value;
}

Value first(Runtime&, const Value& value, const Call&) {
  auto item = iterate(value)();
  return item ? *item : Value::undefined("no first item, the sequence was empty");
}

bool reversible(const Value& value) { return has_length(value) && !value.object_as<Bytes>(); }

Value last(Runtime&, const Value& value, const Call&) {
  if (!reversible(value)) throw Error(fmt::format("'{}' object is not reversible", value.type()));
  const Items items = items_of(value);
  return items.empty() ? Value::undefined("no last item, the sequence was empty") : items.back();
}

Value reverse(Runtime&, const Value& value, const Call&) {
  if (value.is_text()) return slice(value, {}, {}, -1);
  Items items = items_of(value);
  std::ranges::reverse(items);
  if (!reversible(value)) return Value::list(std::move(items));
  return lazy(value, [items]() { return of_items(items); });
}

Value join(Runtime&, const Value& value, const Call& call) {
  const auto path = path_of(call.at(1));
  Items parts;
  for (const Value& item : items_of(value)) parts.emplace_back(printed(follow(item, path)));
  return joined_text(call.given(0) ? printed(call.at(0)) : "", parts);
}

Value list(Runtime&, const Value& value, const Call&) { return Value::list(items_of(value)); }

Value items(Runtime&, const Value& value, const Call&) {
  return lazy(value, [value]() -> Next {
    if (value.is_undefined()) return nothing();
    if (!value.is_dict()) throw Error("only a mapping has pairs of items");
    return iterate(std::make_shared<DictView>(value, DictView::What::items));
  });
}

/// What `map` does to an element.
std::function<Value(const Value&)> mapping(Runtime& runtime, Arguments arguments) {
  if (!arguments.positional.empty()) {
    const Value name = arguments.positional[0];
    if (!name.is_text()) throw Error("map needs the name of a filter");
    arguments.positional.erase(arguments.positional.begin());
    return [&runtime, name, arguments](const Value& item) { return runtime.filter(name.text(), item, arguments); };
  }
  Value otherwise;
  std::optional<Value> attribute;
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute") {
      attribute = value;
    } else if (name == "default") {
      otherwise = value;
    } else {
      throw Error(fmt::format("map takes no keyword argument '{}'", name));
    }
  }
  if (!attribute) throw Error("map needs a filter or an attribute");
  return [path = path_of(*attribute), otherwise](const Value& item) { return follow(item, path, otherwise); };
}

Value map(Runtime& runtime, const Value& value, const Call& call) {
  return lazy(value, [&runtime, value, arguments = call.arguments()]() -> Next {
    if (!truth(value)) return nothing();
    return [&runtime, apply = mapping(runtime, arguments), next = iterate(value)]() -> std::optional<Value> {
      const auto item = next();
      if (!item) return std::nullopt;
      runtime.charge(1);
      return apply(*item);
    };
  });
}

/// Whether an element is one, by its truth or a test, of itself or an attribute.
std::function<bool(const Value&)> condition(Runtime& runtime, Arguments arguments, bool of_attribute) {
  std::vector<Value> path;
  auto& given = arguments.positional;
  if (of_attribute) {
    if (given.empty()) throw Error("the name of an attribute is missing");
    path = path_of(given[0]);
    given.erase(given.begin());
  }
  if (given.empty()) return [path](const Value& item) { return truth(follow(item, path)); };
  const Value name = given[0];
  if (!name.is_text()) throw Error("the name of a test is a string");
  given.erase(given.begin());
  return [&runtime, path, name, arguments](const Value& item) { return runtime.test(name.text(), follow(item, path), arguments); };
}

template <bool wanted, bool of_attribute>
Value select(Runtime& runtime, const Value& value, const Call& call) {
  return lazy(value, [&runtime, value, arguments = call.arguments()]() -> Next {
    if (!truth(value)) return nothing();
    return [&runtime, is = condition(runtime, arguments, of_attribute), next = iterate(value)]() -> std::optional<Value> {
      for (auto item = next(); item; item = next()) {
        runtime.charge(1);
        if (is(*item) == wanted) return item;
      }
      return std::nullopt;
    };
  });
}

Value sum(Runtime& runtime, const Value& value, const Call& call) {
  const auto path = path_of(call.at(0));
  Value total = call.at(1, 0);
  if (total.is_text()) throw Error("strings are joined, not summed");
  for (const Value& item : items_of(value)) {
    total = binary("+", total, follow(item, path));
    runtime.charge(total.weight());
  }
  return total;
}

Value batch(Runtime&, const Value& value, const Call& call) {
  const std::int64_t size = call.integer(0);
  const Value fill = call.at(1);
  return lazy(value, [value, size, fill]() {
    Items batches, row;
    for (const Value& item : items_of(value)) {
      if (static_cast<std::int64_t>(row.size()) == size) batches.push_back(Value::list(std::exchange(row, {})));
      row.push_back(item);
    }
    const auto filled = static_cast<std::size_t>(std::clamp<std::int64_t>(size, 0, kMostItems + 1));
    if (!row.empty() && !fill.is_none() && row.size() < filled) row.resize(filled, fill);
    if (!row.empty()) batches.push_back(Value::list(std::move(row)));
    return of_items(std::move(batches));
  });
}

Value slice_filter(Runtime&, const Value& value, const Call& call) {
  const std::int64_t count = call.integer(0);
  const Value fill = call.at(1);
  return lazy(value, [value, count, fill]() {
    const Items all = items_of(value);
    if (count == 0) throw Error("integer division or modulo by zero");
    if (count > static_cast<std::int64_t>(kMostItems)) throw Error(fmt::format("a list of more than {} elements", kMostItems));
    const auto slices = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
    Items columns;
    for (std::size_t i = 0, begin = 0; i < slices; ++i) {
      const bool longer = i < all.size() % slices;
      const std::size_t end = begin + all.size() / slices + longer;
      Items column(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
      if (!fill.is_none() && !longer) column.push_back(fill);
      columns.push_back(Value::list(std::move(column)));
      begin = end;
    }
    return of_items(std::move(columns));
  });
}

Value attr(Runtime&, const Value& value, const Call& call) {
  const std::string& name = call.text(0);
  const auto found = attribute(value, name);
  return found ? *found : Value::undefined(fmt::format("'{} object' has no attribute '{}'", value.type(), name));
}

}  // namespace

const std::map<std::string, Entry>& sequence_filters() {
  static const std::map<std::string, Entry> table{{"default", {"default_value= boolean=", default_filter}},
                                                  {"d", {"default_value= boolean=", default_filter}},
                                                  {"first", {"", first}},
                                                  {"last", {"", last}},
                                                  {"reverse", {"", reverse}},
                                                  {"join", {"d= attribute=", join}},
                                                  {"list", {"", list}},
                                                  {"items", {"", items}},
                                                  {"map", {"*", map}},
                                                  {"select", {"*", select<true, false>}},
                                                  {"reject", {"*", select<false, false>}},
                                                  {"selectattr", {"*", select<true, true>}},
                                                  {"rejectattr", {"*", select<false, true>}},
                                                  {"sum", {"attribute= start=", sum}},
                                                  {"batch", {"linecount fill_with=", batch}},
                                                  {"slice", {"slices fill_with=", slice_filter}},
                                                  {"attr", {"name", attr}}};
  return table;
}

}  // namespace statescope::chat
