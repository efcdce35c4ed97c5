// Quantities as a lesson names them, and the places of a run where they are read.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "app/lesson/quantity.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::int64_t most_number = 1'000'000'000;  // of a layer, a head or a token: no sum of two overflows

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::int64_t index_in(std::string_view text, std::string_view what) {
  const auto index = number_in<std::int64_t>(text);
  if (!index || *index < 0 || *index > most_number) throw Error(fmt::format("\"{}\" is not a {}: a number from 0 on", text, what));
  return *index;
}

constexpr std::pair<std::string_view, TokenPlace::Anchor> anchors[] = {
    {"first", TokenPlace::Anchor::first},
    {"last", TokenPlace::Anchor::last},
    {"needle.first", TokenPlace::Anchor::needle_first},
    {"needle.last", TokenPlace::Anchor::needle_last},
    {"question.first", TokenPlace::Anchor::question_first},
    {"question.last", TokenPlace::Anchor::question_last},
    {"answer.first", TokenPlace::Anchor::answer_first},
    {"answer.last", TokenPlace::Anchor::answer_last},
};

void take_argument(Quantity& quantity, std::string_view argument) {
  const std::size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  if (argument == "of=beside") return void(quantity.of_beside = true);
  const std::vector<std::string_view> takes = split(quantity.row->takes, ' ');
  if (equals == argument.npos || std::ranges::find(takes, name) == takes.end())
    throw Error(fmt::format("\"{}\" cannot stand after \"{}\": it takes {}", argument, quantity.row->name,
                            takes.empty() ? "nothing" : fmt::format("{}, each followed by = and its value", quantity.row->takes)));
  const std::string_view value = argument.substr(equals + 1);
  if (name == "layer") quantity.layer = index_in(value, name);
  if (name == "head") quantity.head = index_in(value, name);
  if (name == "slot") quantity.slot = std::string(value);
  if (name == "token") quantity.token = parse_token_place(value);
  if (name == "from") quantity.from = parse_token_place(value);
  if (name == "lambda") {
    const auto lambda = number_in<double>(value);
    if (!lambda || !(*lambda > 0 && *lambda <= 1000)) throw Error(fmt::format("\"{}\" is not a lambda: above 0, at most 1000", value));
    quantity.lambda = *lambda;
  }
}

}  // namespace

TokenPlace parse_token_place(std::string_view text) {
  const std::size_t sign = std::min(text.find_first_of("+-"), text.size());
  const std::string_view name = split(text.substr(0, sign), ' ').empty() ? "" : split(text.substr(0, sign), ' ').front();
  const std::vector<std::string_view> rest = split(text.substr(std::min(sign + 1, text.size())), ' ');
  TokenPlace place;
  if (sign < text.size()) place.offset = (text[sign] == '-' ? -1 : 1) * index_in(rest.size() == 1 ? rest[0] : "", "number of tokens");
  if (!name.empty() && name.find_first_not_of("0123456789") == name.npos) {
    place.offset += index_in(name, "token");
    return place;
  }
  const auto* anchor = std::ranges::find(anchors, name, [](const auto& row) { return row.first; });
  if (anchor == std::end(anchors))
    throw Error(
        fmt::format("\"{}\" is not a token: a number, first, last, or .first and .last of needle, question and answer, with + or - "
                    "a number of tokens",
                    text));
  place.anchor = anchor->second;
  return place;
}

std::optional<std::int64_t> token_of(const TokenPlace& place, const RunInfo& run) {
  using Anchor = TokenPlace::Anchor;
  const auto span_of = [&run](SpanKind kind) {
    const auto found = std::ranges::find(run.spans, kind, &TokenSpan::kind);
    return found == run.spans.end() ? std::nullopt : std::optional(*found);
  };
  const auto tokens = std::ssize(run.tokens);
  std::optional<TokenSpan> span;
  switch (place.anchor) {
    case Anchor::first:
    case Anchor::last:
      span = TokenSpan{.begin = 0, .end = tokens};
      break;
    case Anchor::needle_first:
    case Anchor::needle_last:
      span = span_of(SpanKind::needle);
      break;
    case Anchor::question_first:
    case Anchor::question_last:
      span = span_of(SpanKind::question);
      break;
    case Anchor::answer_first:
    case Anchor::answer_last:
      if (run.prompt_length < tokens) span = TokenSpan{.begin = run.prompt_length, .end = tokens};
      break;
  }
  if (!span) return {};
  const bool first = place.anchor == Anchor::first || place.anchor == Anchor::needle_first || place.anchor == Anchor::question_first ||
                     place.anchor == Anchor::answer_first;
  const std::int64_t token = (first ? span->begin : span->end - 1) + place.offset;
  return token >= 0 && token < tokens ? std::optional(token) : std::nullopt;
}

Quantity parse_quantity(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ' ');
  const std::string_view name = parts.empty() ? "" : parts.front();
  const auto row = std::ranges::find(quantities(), name, &QuantityRow::name);
  if (row == quantities().end()) throw Error(fmt::format("there is no quantity \"{}\": assets/lessons/README.md lists them", name));
  Quantity quantity{.row = &*row};
  for (const std::string_view argument : std::span(parts).subspan(1)) take_argument(quantity, argument);
  return quantity;
}

std::optional<QuantityPlace> place_of(const Quantity& quantity, const RunInfo& run, const Cursor& cursor) {
  QuantityPlace at{.layer = quantity.layer.value_or(cursor.layer),
                   .head = quantity.head.value_or(cursor.head),
                   .slot = cursor.slot,
                   .token = cursor.token,
                   .from = cursor.token,
                   .lambda = quantity.lambda};
  if (at.layer >= std::ssize(run.model.layers)) return {};
  const LayerInfo& layer = run.model.layers[static_cast<std::size_t>(at.layer)];
  if (quantity.slot) {
    const auto slot = std::ranges::find(layer.slot_names, *quantity.slot);
    if (slot == layer.slot_names.end()) return {};
    at.slot = slot - layer.slot_names.begin();
  }
  for (const auto& [place, token] : {std::pair(&quantity.token, &at.token), std::pair(&quantity.from, &at.from)}) {
    if (!*place) continue;
    const std::optional<std::int64_t> there = token_of(**place, run);
    if (!there) return {};
    *token = *there;
  }
  const bool inside =
      (at.head == 0 || at.head < layer.heads) && (at.slot == 0 || at.slot < layer.slots()) && at.token < std::ssize(run.tokens);
  return inside ? std::optional(at) : std::nullopt;
}

}  // namespace statescope
