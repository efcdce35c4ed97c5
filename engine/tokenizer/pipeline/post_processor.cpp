#include "engine/tokenizer/pipeline/post_processor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/pipeline/json_fields.h"
#include "engine/tokenizer/text/utf8.h"

namespace statescope {
namespace {

using nlohmann::json;

bool is_space(char32_t c) { return c == U'Ġ' || unicode::is_white_space(c); }

/// How many characters at the beginning and at the end of a piece are spaces.
std::pair<std::size_t, std::size_t> spaces_around(std::string_view piece) {
  std::size_t leading = 0, trailing = 0;
  bool is_leading = true;
  for (std::size_t at = 0; at < piece.size();) {
    const Character character = utf8::character_at(piece, at);
    const bool space = is_space(character.code);
    is_leading = is_leading && space;
    leading += is_leading;
    trailing = space ? trailing + 1 : 0;
    at += character.length;
  }
  return {leading, trailing};
}

void set_around(PostProcessor& result, const JsonFields& fields) {
  const auto id_of = [&](const char* key) {
    const json& pair = fields.list(key);
    if (pair.size() != 2 || !pair[1].is_number_unsigned() || pair[1].get<std::uint64_t>() > 0x7FFFFFFF) fields.refuse(key);
    return pair[1].get<std::int32_t>();
  };
  result.before = {id_of("cls")};
  result.after = {id_of("sep")};
}

void set_template(PostProcessor& result, const JsonFields& fields) {
  bool behind = false;
  for (const json& part : fields.list("single")) {
    if (!part.is_object()) fields.refuse("single");
    if (part.contains("Sequence")) {
      if (behind || JsonFields("post_processor Sequence", part["Sequence"]).text("id", "A") != "A")
        fields.refuse("a second sequence in single");
      behind = true;
      continue;
    }
    if (!part.contains("SpecialToken")) fields.refuse("a part of single");
    const std::string name = JsonFields("post_processor SpecialToken", part["SpecialToken"]).text("id");
    const json& tokens = fields.value("special_tokens");
    if (!tokens.is_object() || !tokens.contains(name)) fields.refuse("single: a special token that special_tokens lacks");
    for (const json& id : JsonFields("post_processor special_tokens", tokens[name]).list("ids")) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 0x7FFFFFFF) fields.refuse("special_tokens: ids");
      (behind ? result.after : result.before).push_back(id.get<std::int32_t>());
    }
  }
  if (!behind) fields.refuse("single without a sequence");
}

void read_into(PostProcessor& result, const json& part) {
  const JsonFields fields("post_processor", part);
  const std::string type = fields.type();
  if (type == "Sequence") {
    for (const json& one : fields.list("processors")) read_into(result, one);
    return;
  }
  if (type == "TemplateProcessing") return set_template(result, fields);
  if (type != "ByteLevel" && type != "RobertaProcessing" && type != "BertProcessing") fields.refuse_type();
  if (type != "ByteLevel") set_around(result, fields);
  if (type != "BertProcessing" && fields.flag("trim_offsets", true)) {
    result.trims = true;
    result.keeps_first_space = fields.flag("add_prefix_space", true);
  }
}

}  // namespace

Range PostProcessor::trimmed(std::string_view text, std::string_view piece, Range place, bool is_first) const {
  auto [leading, trailing] = spaces_around(piece);
  if (leading > 0 && keeps_first_space && (is_first || place.begin == 0)) --leading;
  for (; leading > 0 && place.begin < place.end; --leading) place.begin += utf8::character_at(text, place.begin).length;
  place.begin = std::min(place.begin, place.end);
  for (; trailing > 0 && place.end > place.begin; --trailing) {
    do {
      --place.end;
    } while (place.end > place.begin && (static_cast<unsigned char>(text[place.end]) & 0xC0) == 0x80);
  }
  return place;
}

PostProcessor read_post_processor(const json& part) {
  PostProcessor result;
  if (!part.is_null()) read_into(result, part);
  return result;
}

}  // namespace statescope
