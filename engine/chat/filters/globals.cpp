#include "engine/chat/filters/globals.h"

#include <fmt/format.h>
#include <locale.h>

#include <array>
#include <map>

#include "engine/chat/values/objects.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/strings.h"

namespace statescope::chat {
namespace {

constexpr Int kMostOfRange = 100'000;  // as the sandbox has it

Value range(Runtime&, const Value&, const Call& call) {
  const std::int64_t first = call.integer(0), begin = call.given(1) ? first : 0, end = call.given(1) ? call.integer(1) : first;
  const std::int64_t step = call.integer(2, 1);
  if (step == 0) throw Error("range() arg 3 must not be zero");
  const Int distance = step > 0 ? Int{end} - begin : Int{begin} - end, by = step > 0 ? Int{step} : -Int{step};
  const Int count = distance <= 0 ? 0 : (distance - 1) / by + 1;
  if (count > kMostOfRange) throw Error(fmt::format("a range of more than {} elements", kMostOfRange));
  return std::make_shared<Range>(begin, step, static_cast<std::size_t>(count));
}

/// dict(mapping or pairs, name=value, …).
Dict dict_of(const Arguments& arguments) {
  if (arguments.positional.size() > 1) throw Error("dict takes at most 1 positional argument");
  Dict dict;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is_dict()) {
      dict = source.dict();
    } else {
      for (const Value& pair : items_of(source)) {
        const Items parts = items_of(pair);
        if (parts.size() != 2) throw Error("dict is made of pairs");
        dict.set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) dict.set(name, value);
  return dict;
}

Value dict(Runtime&, const Value&, const Call& call) { return Value::dict(dict_of(call.arguments())); }

Value make_namespace(Runtime& runtime, const Value&, const Call& call) {
  auto made = std::make_shared<Namespace>(Dict{});
  for (const auto& [key, value] : dict_of(call.arguments()).entries) {
    if (!key.is_text()) throw Error("the names of a namespace are strings");
    made->set(key.text(), value);
  }
  runtime.keep(made);
  return std::shared_ptr<Object>(made);
}

Value raise_exception(Runtime&, const Value&, const Call& call) { throw Complaint(printed(call.at(0))); }

/// C's strftime; the microseconds and the zone are Python's: 0, and none.
Value strftime_now(Runtime& runtime, const Value&, const Call& call) {
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  std::string format = replaced(call.text(0), "%%", "%%%%", -1);
  for (const auto& [sign, text] : {std::pair{"%f", "000000"}, std::pair{"%z", ""}, std::pair{"%Z", ""}})
    format = replaced(format, sign, text, -1);
  format = replaced(format, "%%%%", "%%", -1) + ".";
  std::array<char, 1 << 16> buffer{};
  const std::size_t size = ::strftime_l(buffer.data(), buffer.size(), format.c_str(), &runtime.now(), plain);
  if (size == 0) throw Error("strftime_now: a format that is too long");
  return std::string(buffer.data(), size - 1);
}

Value cycler(Runtime&, const Value&, const Call& call) {
  const Arguments& given = call.arguments();
  if (!given.named.empty() || given.positional.empty()) throw Error("cycler takes one item or more");
  return std::make_shared<Cycler>(given.positional);
}

Value joiner(Runtime&, const Value&, const Call& call) { return std::make_shared<Joiner>(call.at(0, ", ")); }
Value lipsum(Runtime&, const Value&, const Call&) { throw Error("lipsum is not supported"); }

const std::map<std::string, Entry> kGlobals{{"range", {"/ start stop= step=", range}},
                                            {"dict", {"*", dict}},
                                            {"namespace", {"*", make_namespace}},
                                            {"raise_exception", {"message", raise_exception}},
                                            {"strftime_now", {"format", strftime_now}},
                                            {"cycler", {"*", cycler}},
                                            {"joiner", {"sep=", joiner}},
                                            {"lipsum", {"*", lipsum}}};

}  // namespace

std::optional<Value> global(const std::string& name) {
  const auto found = kGlobals.find(name);
  if (found == kGlobals.end()) return std::nullopt;
  return std::make_shared<Function>(name, found->second, Value());
}

}  // namespace statescope::chat
