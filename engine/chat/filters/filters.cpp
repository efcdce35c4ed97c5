#include "engine/chat/filters/filters.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace statescope::chat {
namespace {

/// Of Jinja, but not of this program.
const std::set<std::string> kOthers{"filesizeformat", "random", "urlize", "wordwrap", "xmlattr"};

const Entry* find_filter(const std::string& name) {
  for (const auto* table : {&text_filters(), &number_filters(), &sequence_filters(), &order_filters()}) {
    const auto found = table->find(name);
    if (found != table->end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

bool is_filter(const std::string& name) { return find_filter(name) || kOthers.contains(name); }

Value filtered(Runtime& runtime, const std::string& name, const Value& value, const Arguments& arguments) {
  if (kOthers.contains(name)) throw Error(fmt::format("the filter '{}' is not supported", name));
  const Entry* entry = find_filter(name);
  if (!entry) throw Error(fmt::format("no filter named '{}'", name));
  return entry->apply(runtime, value, Call(fmt::format("the filter '{}'", name), entry->parameters, arguments));
}

}  // namespace statescope::chat
