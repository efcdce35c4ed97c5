// Filters that compare elements with each other.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "engine/chat/filters/filters.h"
#include "engine/chat/values/lookup.h"
#include "engine/chat/values/objects.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

Value without_case(const Value& value, bool case_sensitive) {
  return case_sensitive || !value.is_text() ? value : Value(lower(value.text()));
}

struct Keyed {
  Value key, item;
};

/// By their keys; those of equal keys stay in order, in reverse too.
void sort(std::vector<Keyed>& items, bool reverse) {
  std::ranges::stable_sort(items, [&](const Keyed& a, const Keyed& b) { return reverse ? less(b.key, a.key) : less(a.key, b.key); });
}

Value list_of(const std::vector<Keyed>& items) {
  Items out;
  for (const Keyed& keyed : items) out.push_back(keyed.item);
  return Value::list(std::move(out));
}

/// The paths of "a,b.c"; one of no parts where no attribute is given.
std::vector<std::vector<Value>> paths_of(const Value& attribute) {
  if (!attribute.is_text()) return {path_of(attribute)};
  std::vector<std::vector<Value>> paths;
  std::istringstream names(attribute.text() + ",");
  for (std::string name; std::getline(names, name, ',');) paths.push_back(path_of(name));
  return paths;
}

Value sort_filter(Runtime&, const Value& value, const Call& call) {
  const auto paths = paths_of(call.at(2));
  std::vector<Keyed> items;
  for (const Value& item : items_of(value)) {
    Items key;
    for (const auto& path : paths) key.push_back(without_case(follow(item, path), call.flag(1)));
    items.push_back({Value::list(std::move(key)), item});
  }
  sort(items, call.flag(0));
  return list_of(items);
}

Value dictsort(Runtime&, const Value& value, const Call& call) {
  const Value by = call.at(1, "key");
  if (!by.is_text() || (by.text() != "key" && by.text() != "value")) throw Error("you can only sort by either 'key' or 'value'");
  if (!defined(value).is_dict()) throw Error(fmt::format("only a mapping is sorted by its keys, not '{}'", value.type()));
  std::vector<Keyed> items;
  for (const auto& [key, item] : value.dict().entries) {
    items.push_back({without_case(by.text() == "key" ? key : item, call.flag(0)), Value::tuple({key, item})});
  }
  sort(items, call.flag(2));
  return list_of(items);
}

Value unique(Runtime&, const Value& value, const Call& call) {
  const bool case_sensitive = call.flag(0);
  const Value attribute = call.at(1);
  return lazy(value, [value, case_sensitive, path = path_of(attribute)]() -> Next {
    return [next = iterate(value), case_sensitive, path, seen = std::set<std::string>()]() mutable -> std::optional<Value> {
      for (auto item = next(); item; item = next()) {
        if (seen.insert(key_of(without_case(follow(*item, path), case_sensitive))).second) return item;
      }
      return std::nullopt;
    };
  });
}

template <bool largest>
Value extreme(Runtime&, const Value& value, const Call& call) {
  const auto path = path_of(call.at(1));
  std::optional<Keyed> best;
  for (const Value& item : items_of(value)) {
    const Value key = without_case(follow(item, path), call.flag(0));
    if (!best || (largest ? less(best->key, key) : less(key, best->key))) best = Keyed{key, item};
  }
  return best ? best->item : Value::undefined("no aggregated item, the sequence was empty");
}

Value group(const Value& key, Items items) {
  List pair{{key, Value::list(std::move(items))}, true, true};
  const Value plain = Value::tuple(pair.items);
  pair.depth = plain.depth();
  pair.weight = plain.weight();
  return Value::from(std::make_shared<const List>(std::move(pair)));
}

Value groupby(Runtime&, const Value& value, const Call& call) {
  const auto path = path_of(call.at(0));
  std::vector<Keyed> items;
  for (const Value& item : items_of(value)) items.push_back({without_case(follow(item, path, call.at(1)), call.flag(2)), item});
  sort(items, false);
  Items groups;
  for (std::size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    Items members;
    for (; end < items.size() && equal(items[begin].key, items[end].key); ++end) members.push_back(items[end].item);
    if (end == begin) ++end;  // NaN equals nothing
    groups.push_back(group(follow(items[begin].item, path, call.at(1)), std::move(members)));
  }
  return Value::list(std::move(groups));
}

}  // namespace

const std::map<std::string, Entry>& order_filters() {
  static const std::map<std::string, Entry> table{{"sort", {"reverse= case_sensitive= attribute=", sort_filter}},
                                                  {"dictsort", {"case_sensitive= by= reverse=", dictsort}},
                                                  {"unique", {"case_sensitive= attribute=", unique}},
                                                  {"min", {"case_sensitive= attribute=", extreme<false>}},
                                                  {"max", {"case_sensitive= attribute=", extreme<true>}},
                                                  {"groupby", {"attribute default= case_sensitive=", groupby}}};
  return table;
}

}  // namespace statescope::chat
