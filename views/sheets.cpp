#include "views/sheets.h"

#include "views/parts.h"
#include "views/words.h"

namespace statescope {

Axis axis_of_tokens(std::string name, const TokenAxis& tokens) {
  const auto token = [&tokens](std::int64_t i) { return tokens.tokens[static_cast<std::size_t>(i)]; };
  return {.name = std::move(name),
          .count = tokens.count(),
          .here = tokens.place_of(tokens.cursor),
          .coordinate = token,
          .label = [&tokens, token](std::int64_t i) { return visible_token(*tokens.run, token(i)); },
          .move = [token](std::int64_t i) { return CursorMove{.token = token(i)}; }};
}

Axis axis_of_tokens(const TokenAxis& tokens) { return axis_of_tokens(Views::tr("token"), tokens); }

Axis axis_of_heads(std::int64_t heads, std::int64_t chosen) {
  Axis axis = axis_of_count(Views::tr("head"), heads, chosen);
  axis.move = [](std::int64_t i) { return CursorMove{.head = i}; };
  return axis;
}

}  // namespace statescope
