// `statescope tokenize`: texts to ids and back, a line of JSON each.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "engine/error.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

using nlohmann::json;

std::string quoted(const std::string& text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

std::string ids_text(const std::vector<std::int32_t>& ids) { return fmt::format("[{}]", fmt::join(ids, ", ")); }

std::string offsets_text(const Encoding& encoding) {
  std::string text = "[";
  for (std::size_t i = 0; i < encoding.ids.size(); ++i)
    text += fmt::format("{}[{}, {}]", i == 0 ? "" : ", ", encoding.begin[i], encoding.end[i]);
  return text + "]";
}

void write_encoding(const Tokenizer& tokenizer, const std::string& text, const TokenizeArguments& arguments) {
  const Encoding encoding = tokenizer.encode(text, {.add_specials = !arguments.plain, .recognise_specials = arguments.recognise_specials});
  fmt::print("{{\"ids\": {}, \"offsets\": {}, \"decoded\": {}}}\n", ids_text(encoding.ids), offsets_text(encoding),
             quoted(tokenizer.decode(encoding.ids, arguments.skip_specials)));
}

void write_text(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids, const TokenizeArguments& arguments) {
  const std::string text = quoted(tokenizer.decode(ids, arguments.skip_specials));
  fmt::print("{{\"text\": {}, \"decoded\": {}}}\n", text, text);
}

/// A line of standard input; what is wrong with it is said with its number. Throws Error.
json parsed_line(std::string_view line, std::size_t number) {
  if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  json value = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) throw Error(fmt::format("standard input: line {} is not JSON", number));
  return value;
}

std::string text_in(const json& value, std::size_t number) {
  if (!value.is_object() || !value.contains("text") || !value["text"].is_string())
    throw Error(fmt::format("standard input: line {} is not {{\"text\": …}}", number));
  return value["text"].get<std::string>();
}

std::vector<std::int32_t> ids_in(const json& value, std::size_t number) {
  const json& list = value.is_object() && value.contains("ids") ? value["ids"] : value;
  const auto is_id = [](const json& id) { return id.is_number_unsigned() && id.get<std::uint64_t>() <= 0x7FFFFFFF; };
  if (!list.is_array() || !std::ranges::all_of(list, is_id))
    throw Error(fmt::format("standard input: line {} is not {{\"ids\": [numbers]}}", number));
  return list.get<std::vector<std::int32_t>>();
}

}  // namespace

int tokenize_command(const TokenizeArguments& arguments) {
  const auto tokenizer = open_tokenizer(arguments.path);
  if (arguments.text) {
    write_encoding(*tokenizer, *arguments.text, arguments);
    return 0;
  }
  std::size_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const json value = parsed_line(line, number);
    if (arguments.ids)
      write_text(*tokenizer, ids_in(value, number), arguments);
    else
      write_encoding(*tokenizer, text_in(value, number), arguments);
  }
  return 0;
}

}  // namespace statescope
