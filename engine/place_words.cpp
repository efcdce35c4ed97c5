#include "engine/place_words.h"

#include <fmt/format.h>

#include "engine/error.h"

namespace statescope {

std::string no_such(std::string_view what, std::int64_t index, std::int64_t count, std::int64_t first) {
  const std::string there = count > 1    ? fmt::format("{}s are {} to {}", what, first, first + count - 1)
                            : count == 1 ? fmt::format("the only one is {}", first)
                                         : "there are none";
  return fmt::format("there is no {} {} ({})", what, index, there);
}

void check_index(std::string_view what, std::int64_t index, std::int64_t count, std::int64_t first) {
  if (index < first || index >= first + count) throw Error(no_such(what, index, count, first));
}

std::int64_t token_place(std::int64_t token, std::int64_t prompt_length, std::int64_t tokens) {
  const std::int64_t place = token < 0 ? prompt_length + token : token;
  if (place < 0) throw Error(no_such("token", token, prompt_length + tokens, -prompt_length));
  check_index("token", place, tokens);
  return place;
}

std::string listed(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ", numbers[i]);
  return text;
}

std::string counted(std::string_view what, const std::vector<std::int64_t>& numbers) {
  return numbers.empty() ? "" : fmt::format("{}{} {}", what, numbers.size() > 1 ? "s" : "", listed(numbers));
}

}  // namespace statescope
