#include "engine/chat/values/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/chat/values/objects.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/text_methods.h"

namespace statescope::chat {
namespace {

using Methods = std::map<std::string, Entry>;

Value index_in_list(Runtime&, const Value& self, const Call& call) {
  const Items& items = self.sequence()->items;
  const SliceRange range = slice_range(static_cast<std::int64_t>(items.size()), call.at(1), call.at(2), {});
  for (std::size_t i = 0; i < range.count; ++i) {
    const auto place = static_cast<std::size_t>(range.begin) + i;
    if (items[place].same(call.at(0)) || equal(items[place], call.at(0))) return place;
  }
  throw Error(fmt::format("the value is not in the {}", self.type()));
}

Value count_in_list(Runtime&, const Value& self, const Call& call) {
  const auto is = [&](const Value& item) { return item.same(call.at(0)) || equal(item, call.at(0)); };
  return static_cast<std::size_t>(std::ranges::count_if(self.sequence()->items, is));
}

Value copy_list(Runtime&, const Value& self, const Call&) { return Value::list(self.sequence()->items); }

Value get(Runtime&, const Value& self, const Call& call) {
  const Value* found = self.dict().find(call.at(0));
  return found ? *found : call.at(1);
}

template <DictView::What what>
Value view(Runtime&, const Value& self, const Call&) {
  return std::make_shared<DictView>(self, what);
}

Value copy_dict(Runtime&, const Value& self, const Call&) { return Value::dict(self.dict()); }

const Methods kList{{"index", {"/ value start= stop=", index_in_list}}, {"count", {"/ value", count_in_list}}, {"copy", {"", copy_list}}};
const Methods kTuple{{"index", {"/ value start= stop=", index_in_list}}, {"count", {"/ value", count_in_list}}};
const Methods kDict{{"get", {"/ key default=", get}},
                    {"keys", {"", view<DictView::What::keys>}},
                    {"values", {"", view<DictView::What::values>}},
                    {"items", {"", view<DictView::What::items>}},
                    {"copy", {"", copy_dict}}};

/// What would change a value.
const std::set<std::string> kListChanges{"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
const std::set<std::string> kDictChanges{"clear", "pop", "popitem", "setdefault", "update"};

/// Of Python, but not of this program.
const std::set<std::string> kTextOthers{"expandtabs", "format_map", "isidentifier", "isnumeric", "istitle", "maketrans", "translate"};
const std::set<std::string> kDictOthers{"fromkeys"};
const std::set<std::string> kNumberOthers{"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
                                          "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
                                          "numerator",        "real",      "to_bytes"};
const std::set<std::string> kObjectOthers{"arguments", "caller",     "catch_kwargs", "catch_varargs", "close", "count", "decode",
                                          "index",     "isdisjoint", "mapping",      "name",          "send",  "stop",  "throw"};

struct Kind {
  const Methods* methods = nullptr;
  const std::set<std::string>*changes = nullptr, *others = nullptr;
};

Kind kind_of(const Value& value) {
  if (value.is_text()) return {&text_methods(), nullptr, &kTextOthers};
  if (value.is_list()) return {&kList, &kListChanges, nullptr};
  if (value.is_tuple()) return {&kTuple, nullptr, nullptr};
  if (value.is_dict()) return {&kDict, &kDictChanges, &kDictOthers};
  if (value.is_number()) return {nullptr, nullptr, &kNumberOthers};
  return {nullptr, nullptr, value.object() && !value.object_as<Namespace>() ? &kObjectOthers : nullptr};
}

std::optional<Value> of_group(const Value& value, const std::string& name) {
  if (!value.is_tuple() || !value.sequence()->group || (name != "grouper" && name != "list")) return std::nullopt;
  return value.sequence()->items[name == "list"];
}

}  // namespace

std::optional<Value> method_of(const Value& value, const std::string& name) {
  if (auto part = of_group(value, name)) return part;
  const Kind kind = kind_of(value);
  if (kind.changes && kind.changes->contains(name)) {
    return Value::undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe", name, value.type()));
  }
  if (kind.others && kind.others->contains(name)) throw Error(fmt::format("{}.{} is not supported", value.type(), name));
  if (!kind.methods) return std::nullopt;
  const auto found = kind.methods->find(name);
  if (found == kind.methods->end()) return std::nullopt;
  return std::make_shared<Function>(name, found->second, value);
}

}  // namespace statescope::chat
