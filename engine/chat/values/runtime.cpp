#include "engine/chat/values/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "engine/chat/values/operators.h"

namespace statescope::chat {

Call::Call(std::string_view what, std::string_view parameters, const Arguments& arguments) : arguments_(arguments) {
  if (parameters == "*") return;
  std::istringstream words{std::string(parameters)};
  std::vector<std::string> names;
  std::size_t required = 0;
  bool positional_only = false;
  for (std::string word; words >> word;) {
    if (word == "/") {
      positional_only = true;
    } else if (word.ends_with('=')) {
      names.push_back(word.substr(0, word.size() - 1));
    } else {
      names.push_back(word);
      required = names.size();
    }
  }
  if (arguments.positional.size() > names.size()) throw Error(fmt::format("{} takes at most {} arguments", what, names.size()));
  values_.resize(names.size());
  std::ranges::copy(arguments.positional, values_.begin());
  bind_named(what, names, positional_only);
  for (std::size_t i = 0; i < required; ++i) {
    if (!values_[i]) throw Error(fmt::format("{} misses the argument '{}'", what, names[i]));
  }
}

void Call::bind_named(std::string_view what, const std::vector<std::string>& names, bool positional_only) {
  for (const auto& [name, value] : arguments_.named) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end() || positional_only) throw Error(fmt::format("{} takes no keyword argument '{}'", what, name));
    auto& place = values_[static_cast<std::size_t>(found - names.begin())];
    if (place) throw Error(fmt::format("{} got two values for '{}'", what, name));
    place = value;
  }
}

const Value& Call::at(std::size_t i) const {
  static const Value none;
  return given(i) ? *values_[i] : none;
}

std::int64_t Call::integer(std::size_t i, std::int64_t otherwise) const { return given(i) ? index_of(defined(at(i))) : otherwise; }

const std::string& Call::text(std::size_t i) const {
  if (!at(i).is_text()) throw Error(fmt::format("a string is needed, not '{}'", at(i).type()));
  return at(i).text();
}

}  // namespace statescope::chat
