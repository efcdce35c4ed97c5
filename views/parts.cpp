#include "views/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "views/words.h"

namespace statescope {
namespace {

/// What the engine says and views show, marked here: the engine knows of no other language.
[[maybe_unused]] constexpr std::array of_engine = {QT_TRANSLATE_NOOP("Engine", "exact"),
                                                   QT_TRANSLATE_NOOP("Engine", "recomputed"),
                                                   QT_TRANSLATE_NOOP("Engine", "approximate"),
                                                   QT_TRANSLATE_NOOP("Engine", "exact: kept from the run"),
                                                   QT_TRANSLATE_NOOP("Engine", "recomputed from the keyframe before it, float32"),
                                                   QT_TRANSLATE_NOOP("Engine", "recomputed in double precision"),
                                                   QT_TRANSLATE_NOOP("Engine", "within 1e-05"),
                                                   QT_TRANSLATE_NOOP("Engine", "within 0.0001 of the value"),
                                                   QT_TRANSLATE_NOOP("Engine", "decayed outer product"),
                                                   QT_TRANSLATE_NOOP("Engine", "gated delta rule"),
                                                   QT_TRANSLATE_NOOP("Engine", "selective scan"),
                                                   QT_TRANSLATE_NOOP("Engine", "WKV"),
                                                   QT_TRANSLATE_NOOP("Engine", "log-linear attention"),
                                                   QT_TRANSLATE_NOOP("Engine", "state space"),
                                                   QT_TRANSLATE_NOOP("Engine", "softmax attention"),
                                                   QT_TRANSLATE_NOOP("Engine", "short convolution"),
                                                   QT_TRANSLATE_NOOP("Engine", "no memory"),
                                                   QT_TRANSLATE_NOOP("Engine", "key row"),
                                                   QT_TRANSLATE_NOOP("Engine", "slot"),
                                                   QT_TRANSLATE_NOOP("Engine", "value column"),
                                                   QT_TRANSLATE_NOOP("Engine", "state"),
                                                   QT_TRANSLATE_NOOP("Engine", "coefficient"),
                                                   QT_TRANSLATE_NOOP("Engine", "channel"),
                                                   QT_TRANSLATE_NOOP("Engine", "words"),
                                                   QT_TRANSLATE_NOOP("Engine", "bytes")};

/// Length of the UTF-8 character at the start of `text`; 0 if it is broken.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xC2 ? 0 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : byte(0) < 0xF5 ? 4 : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return 0;
  }
  return length;
}

std::string visible_space(std::string_view character) {
  return character == " " ? "␣" : character == "\n" ? "⏎" : character == "\t" ? "⇥" : "";
}

/// "⟨E4⟩": a byte that is no character by itself. Some tokens are parts of one.
std::string visible_byte(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  return character.size() == 1 && byte >= 0x80 ? fmt::format("⟨{:02X}⟩", byte) : "";
}

/// What a terminal may take for a command: of ASCII, of Latin-1 (U+0080 to U+009F), and bytes that are no character.
std::string visible_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]), last = static_cast<unsigned char>(character.back());
  if (character.size() == 1 && (first < 0x20 || first >= 0x7f)) return fmt::format("\\x{:02x}", first);
  return character.size() == 2 && first == 0xC2 && last < 0xA0 ? fmt::format("\\x{:02x}", last) : "";
}

/// Each character as form(character), or as it is where that is empty.
template <class Form>
std::string each_character(std::string_view text, const Form& form) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, character_length(text)));
    const std::string shown = form(character);
    out += shown.empty() ? character : shown;
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace

TextStyle label(const Frame& frame, float size, Color color, Align align, bool bold) {
  return {Font::label, size * frame.scale, color, align, bold};
}

TextStyle value(const Frame& frame, float size, Color color, Align align, bool bold) {
  return {Font::value, size * frame.scale, color, align, bold};
}

const LayerInfo* layer_of(const Snapshot& snapshot) {
  if (!snapshot.run || snapshot.run->tokens.empty()) return nullptr;
  const std::vector<LayerInfo>& layers = snapshot.run->model.layers;
  const bool known = snapshot.layer >= 0 && snapshot.layer < static_cast<std::int64_t>(layers.size());
  return known ? &layers[static_cast<std::size_t>(snapshot.layer)] : nullptr;
}

std::string visible_text(std::string_view text) {
  return each_character(text, [](std::string_view character) {
    const std::string shown = visible_space(character) + visible_byte(character);
    return shown.empty() ? visible_control(character) : shown;
  });
}

std::string printable_text(std::string_view text) {
  return each_character(
      text, [](std::string_view character) { return visible_space(character).empty() ? visible_control(character) : std::string(); });
}

std::string visible_token(const RunInfo& run, std::int64_t token) {
  if (token < 0 || token >= static_cast<std::int64_t>(run.tokens.size())) return {};
  return visible_text(run.tokens[static_cast<std::size_t>(token)].text);
}

std::string numbered_token(const RunInfo& run, std::int64_t token) { return fmt::format("“{}” ({})", visible_token(run, token), token); }

bool is_needle(const RunInfo& run, std::int64_t token) {
  return std::ranges::any_of(run.spans,
                             [token](const TokenSpan& s) { return s.kind == SpanKind::needle && token >= s.begin && token < s.end; });
}

std::string answer_text(const RunInfo& run) {
  constexpr std::int64_t most = 12;
  const std::int64_t wanted = run.expected.empty() ? most : std::ssize(run.expected);
  const std::int64_t end = std::min(std::ssize(run.tokens), run.prompt_length + wanted);
  std::vector<std::string> texts;
  for (std::int64_t t = run.prompt_length; t < end; ++t) texts.push_back(visible_token(run, t));
  return joined(texts, " ");
}

std::optional<bool> answer_is_right(const RunInfo& run) {
  const std::int64_t wanted = std::ssize(run.expected);
  if (wanted == 0 || std::ssize(run.tokens) < run.prompt_length + wanted) return {};
  return std::equal(run.expected.begin(), run.expected.end(), run.tokens.begin() + run.prompt_length,
                    [](const TokenInfo& a, const TokenInfo& b) { return a.id == b.id; });
}

std::string number(float value, int digits) { return fmt::format("{:.{}g}", value, digits); }

std::string chance(float probability) {
  return probability >= 0.01f ? fmt::format("{:.2f}", probability) : fmt::format("{:.2g}", probability);
}

std::string tokens_text(std::int64_t count) { return count == 1 ? Views::tr("{} token", count) : Views::tr("{} tokens", count); }
std::string heads_text(std::int64_t count) { return count == 1 ? Views::tr("{} head", count) : Views::tr("{} heads", count); }

std::vector<std::int64_t> layers_that(const ModelInfo& model, const std::function<bool(const LayerInfo&)>& are) {
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (are(model.layers[i])) found.push_back(static_cast<std::int64_t>(i));
  }
  return found;
}

std::string nearest_layer(const Snapshot& snapshot, const std::function<bool(const LayerInfo&)>& is) {
  const std::vector<std::int64_t> others = layers_that(snapshot.run->model, is);
  const auto nearest = std::ranges::min_element(others, {}, [&](std::int64_t other) { return std::abs(other - snapshot.layer); });
  return nearest == others.end() ? Views::tr("No layer of this model does.")
                                 : Views::tr("The nearest layer that does is layer {}.", *nearest);
}

std::string layer_list(const std::vector<std::int64_t>& layers, std::string_view none) {
  if (layers.empty()) return std::string(none);
  if (layers.size() == 1) return Views::tr("layer {}", layers.front());
  return Views::tr("layers {} and {}", fmt::join(layers.begin(), layers.end() - 1, ", "), layers.back());
}

std::int64_t slot_identity(const LayerInfo& layer, std::int64_t slot) {
  return layer.partitions > 0 && !layer.has_shared_slot ? slot + 1 : slot;
}

std::string slot_name(const LayerInfo& layer, std::int64_t slot) {
  return slot < layer.slots() ? layer.slot_names[static_cast<std::size_t>(slot)] : std::to_string(slot);
}

std::string slot_title(std::int64_t identity, std::string_view name) {
  const bool is_number = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  return identity > 0 && is_number ? Views::tr("partition {}", name) : std::string(name);
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string accuracy_words(const Accuracy& accuracy) { return Engine::tr(accuracy.text().c_str()); }
std::string accuracy_name(const Accuracy& accuracy) { return Engine::tr(std::string(accuracy.name()).c_str()); }

std::vector<std::int64_t> choose_shown(std::int64_t count, std::int64_t capacity, const std::vector<bool>& important) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  std::ranges::stable_partition(order, [&](std::int64_t i) { return important[static_cast<std::size_t>(i)]; });
  order.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(capacity, 0, count)));
  std::ranges::sort(order);
  return order;
}

namespace {

/// The beginning of a text without the part of a number that it would end with: 505 is not 50…. A text that is a number itself keeps as
/// many decimals as there are.
std::string_view without_part_of_number(std::string_view beginning, std::string_view text) {
  const auto is_of_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  if (beginning.empty() || !is_of_number(text[beginning.size()]) || !is_of_number(beginning.back())) return beginning;
  std::string_view before = beginning;
  while (!before.empty() && is_of_number(before.back())) before.remove_suffix(1);
  if (!before.empty() && is_letter(before.back())) return beginning;  // a word: k138
  if (before.empty() && beginning.find('.') != beginning.npos) return beginning;
  while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
  return before;
}

}  // namespace

std::string elided(const Canvas& canvas, std::string_view text, const TextStyle& style, float width) {
  if (canvas.text_width(text, style) <= width) return std::string(text);
  constexpr std::size_t few = 64;  // bytes
  std::size_t fits = 0, over = text.size();
  while (over - fits > few) {  // of a long text by halves
    const std::size_t middle = (fits + over) / 2;
    (canvas.text_width(text.substr(0, middle), style) > width ? over : fits) = middle;
  }
  std::string_view beginning = text.substr(0, over);
  while (!beginning.empty()) {
    while (beginning.size() > 1 && (static_cast<unsigned char>(beginning.back()) & 0xC0u) == 0x80u) beginning.remove_suffix(1);
    beginning.remove_suffix(1);
    if (canvas.text_width(std::string(beginning) + "…", style) > width) continue;
    beginning = without_part_of_number(beginning, text);
    return beginning.empty() ? std::string() : std::string(beginning) + "…";
  }
  return {};
}

std::string_view fitting(const Canvas& canvas, std::string_view text, std::string_view shorter, const TextStyle& style, float width) {
  return canvas.text_width(text, style) <= width ? text : shorter;
}

void fitted_text(Canvas& canvas, Point at, std::string_view text, const TextStyle& style, float width) {
  const std::string shown = elided(canvas, text, style, width);
  if (shown != text) canvas.left_out();
  if (!shown.empty()) canvas.text(at, shown, style);
}

namespace {

/// Where a sentence may end early, the last place first, but not within quotes or brackets.
std::vector<std::size_t> clause_ends(std::string_view text, bool at_commas) {
  std::vector<std::size_t> ends;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("“") || rest.starts_with('(')) ++depth;
    if (rest.starts_with("”") || rest.starts_with(')')) --depth;
    const bool ends_here =
        rest.starts_with(" · ") || rest.starts_with("; ") || rest.starts_with(": ") || (at_commas && rest.starts_with(", "));
    if (depth == 0 && i > 0 && ends_here) ends.insert(ends.begin(), i);
  }
  return ends;
}

}  // namespace

void clauses_text(Canvas& canvas, Point at, std::string_view text, TextStyle style, float width, bool at_commas) {
  constexpr float least_type = 0.8f;
  const auto fits = [&](std::string_view part) { return canvas.text_width(part, style) <= width; };
  std::string_view shown = text;
  for (const std::size_t end : clause_ends(text, at_commas)) {
    if (fits(shown)) break;
    shown = text.substr(0, end);
  }
  if (shown.size() < text.size()) canvas.left_out();
  if (!fits(shown)) style.size *= std::max(least_type, width / canvas.text_width(shown, style));
  fitted_text(canvas, at, shown, style, width);
}

void token_text(Canvas& canvas, Point at, std::string_view text, const TextStyle& style, float width) {
  const std::string shown = elided(canvas, text, style, width);
  if (!shown.empty()) canvas.text(at, shown, style);
}

std::vector<std::string> wrapped(const Canvas& canvas, std::string_view text, const TextStyle& style, float width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::string longer = line.empty() ? std::string(word) : fmt::format("{} {}", line, word);
    if (!line.empty() && canvas.text_width(longer, style) > width)
      lines.push_back(std::exchange(line, std::string(word)));
    else
      line = longer;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

void draw_message(Canvas& canvas, Rect area, const Frame& frame, std::string_view headline, std::string_view detail) {
  const float width = std::min(area.w - 16 * frame.scale, 520 * frame.scale);
  const TextStyle head = label(frame, kTokenType, frame.theme.ink, Align::center);
  const TextStyle body = label(frame, kBodyType, frame.theme.faint, Align::center);
  const std::vector<std::string> heads = wrapped(canvas, headline, head, width), bodies = wrapped(canvas, detail, body, width);
  const float head_line = 1.35f * head.size, body_line = 1.45f * body.size;
  const float gap = 6 * frame.scale;
  const float height = gap + head_line * static_cast<float>(heads.size()) + body_line * static_cast<float>(bodies.size());
  const float middle = area.x + area.w / 2;
  float y = area.y + std::max(0.0f, (area.h - height) / 2);
  const auto draw_lines = [&](const std::vector<std::string>& lines, const TextStyle& style, float step) {
    for (const std::string& line : lines) {
      if (y + step > area.bottom() + 0.5f) return;
      fitted_text(canvas, {middle, y + step / 2}, line, style, width);
      y += step;
    }
  };
  draw_lines(heads, head, head_line);
  y += gap;
  draw_lines(bodies, body, body_line);
}

Rect inset(Rect rect, float margin) {
  return {rect.x + margin, rect.y + margin, std::max(0.0f, rect.w - 2 * margin), std::max(0.0f, rect.h - 2 * margin)};
}

MarkStyle span_style(SpanKind kind, const Theme& theme) {
  switch (kind) {
    case SpanKind::needle:
      return {"N", QT_TRANSLATE_NOOP("Views", "needle"), theme.needle};
    case SpanKind::question:
      return {"Q", QT_TRANSLATE_NOOP("Views", "question"), theme.question};
    case SpanKind::answer:
      return {"A", QT_TRANSLATE_NOOP("Views", "answer"), theme.answer};
  }
  return {};
}

}  // namespace statescope
