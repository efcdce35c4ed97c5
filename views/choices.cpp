#include "views/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::size_t kMostNamed = 10;
constexpr const char* kChoosing = QT_TRANSLATE_NOOP("Views", "Softmax layers that choose are those of MoBA, NSA and DeepSeek-V3.2.");

/// Where there is nothing to ask.
Message cannot_choose(const Snapshot& snapshot, const Cursor& cursor) {
  const LayerInfo* layer = layer_of(snapshot);
  if (layer && layer->memory == "softmax attention") return without_attention_head(snapshot, cursor.head);
  if (!layer) return nothing_read();
  return {Views::tr("Layer {} ({}) has no softmax attention that could choose tokens", snapshot.layer, layer->mixer),
          nearest_layer(snapshot, [](const LayerInfo& other) { return other.memory == "softmax attention"; }) + " " + Views::tr(kChoosing)};
}

Message chooses_nothing(const LayerInfo& layer, std::int64_t index) {
  return {Views::tr("Layer {} ({}) attends to tokens without choosing them", index, layer.mixer), Views::tr(kChoosing)};
}

ChoicesQuestion question_of(const Snapshot& snapshot, const Cursor& cursor) {
  const TokenWindow window = window_around(snapshot.token, std::ssize(snapshot.run->tokens));
  return {snapshot.layer, cursor.head, window.from, window.to};
}

bool needle_within(const RunInfo& run, std::int64_t from, std::int64_t to) {
  return std::ranges::any_of(run.spans,
                             [&](const TokenSpan& span) { return span.kind == SpanKind::needle && span.begin < to && from < span.end; });
}

void fill_map(ChoicesData& data, const Choices& known, std::int64_t tokens) {
  const std::int64_t n = data.tokens.count(), last = data.tokens.tokens.back();
  const std::int64_t things = last / known.size + 1;
  data.each = known.size * ((things + ChoicesData::kMostPlaces - 1) / ChoicesData::kMostPlaces);
  const std::int64_t places = last / data.each + 1;
  std::vector<float> cells(static_cast<std::size_t>(places * n));
  if (!known.score.empty()) data.score.assign(cells.size(), NAN);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = known.begin[static_cast<std::size_t>(i)]; j < known.begin[static_cast<std::size_t>(i + 1)]; ++j) {
      const auto at = static_cast<std::size_t>(known.chosen[static_cast<std::size_t>(j)] * known.size / data.each * n + i);
      cells[at] = 1;
      if (!data.score.empty()) data.score[at] = std::fmax(data.score[at], known.score[static_cast<std::size_t>(j)]);
    }
  }
  data.cells = Pyramid(std::move(cells), places, n);
  for (std::int64_t place = 0; place < places; ++place)
    data.needle.push_back(needle_within(*data.tokens.run, place * data.each, std::min(tokens, (place + 1) * data.each)));
}

void fill_chosen(ChoicesData& data, const Choices& known) {
  const std::int64_t place = data.tokens.cursor - data.tokens.tokens.front();
  if (place < 0) return;
  for (std::int64_t j = known.begin[static_cast<std::size_t>(place)]; j < known.begin[static_cast<std::size_t>(place + 1)]; ++j) {
    const std::int64_t from = known.chosen[static_cast<std::size_t>(j)] * known.size;
    const std::int64_t to = std::min(from + known.size, data.tokens.cursor + 1);
    data.chosen.push_back({from, to, known.score.empty() ? NAN : known.score[static_cast<std::size_t>(j)], to > data.tokens.cursor});
  }
  if (!known.score.empty()) std::ranges::stable_sort(data.chosen, std::ranges::greater{}, &ChoicesData::Chosen::score);
}

std::string summary(const ChoicesData& data) {
  if (data.chosen.empty()) return Views::tr("nothing has been read yet");
  const RunInfo& run = *data.tokens.run;
  const std::int64_t t = data.tokens.cursor, all = t / data.size + 1;
  const std::string who = numbered_token(run, t);
  const std::string what = data.size == 1 ? Views::tr("{} looks at {} of {} tokens", who, data.chosen.size(), all)
                                          : Views::tr("{} looks at {} of {} blocks", who, data.chosen.size(), all);
  if (!needle_within(run, 0, t + 1)) return what;
  const bool found = std::ranges::any_of(data.chosen, [&](const auto& each) { return needle_within(run, each.from, each.to); });
  return found ? Views::tr("{}, the needle among them", what) : Views::tr("{}, the needle not among them", what);
}

std::string value_of(const ChoicesData& data, const ChoicesData::Chosen& chosen) {
  if (!data.score.empty()) return number(chosen.score, 3);
  return chosen.own ? Views::tr("its own") : Views::tr("chosen");
}

std::vector<Fact> facts_of(const ChoicesData& data) {
  std::vector<Fact> facts;
  const std::size_t named = std::min(kMostNamed, data.chosen.size());
  for (const ChoicesData::Chosen& chosen : std::span(data.chosen).first(named))
    facts.push_back({words_of(data, chosen.from, chosen.to), value_of(data, chosen)});
  if (named < data.chosen.size()) facts.push_back({Views::tr("and {} more", data.chosen.size() - named), ""});
  return facts;
}

/// One drawing: where things stand.
struct Picture : TokenMap {
  const ChoicesData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;

  Picture(const ChoicesData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
      : TokenMap(canvas_, area, canvas_.text_width("99999", value(frame_, kSmallType, {})) + 12 * frame_.scale, 0, frame_),
        data(data_),
        canvas(canvas_),
        frame(frame_),
        s(frame_.scale) {}
};

/// The first token of some places, and a gold bar beside those that hold the needle.
void draw_places(const Picture& picture) {
  const ChoicesData& data = picture.data;
  const float s = picture.s, each = picture.map.all.h / static_cast<float>(data.places());
  const PlaceRange shown = places_down(picture.map, data.places());
  const TextStyle tick = value(picture.frame, kSmallType, picture.frame.theme.faint, Align::right);
  for (const std::int64_t place : axis_ticks(shown, std::max<std::int64_t>(1, static_cast<std::int64_t>(picture.map.h / (20 * s))))) {
    const float y = picture.map.all.y + each * (static_cast<float>(place) + 0.5f), half = tick.size / 2;
    picture.canvas.text({picture.map.x - 9 * s, std::clamp(y, picture.map.y + half, picture.map.bottom() - half)},
                        std::to_string(place * data.each), tick);
  }
  const Within inside(picture.canvas, picture.map, {picture.map.x - 6 * s, picture.map.y, 4 * s, picture.map.h});
  for (std::int64_t place = shown.from; place < shown.to; ++place) {
    if (data.needle[static_cast<std::size_t>(place)])
      picture.canvas.fill_rect({picture.map.x - 6 * s, picture.map.all.y + each * static_cast<float>(place), 4 * s, std::max(each, s)},
                               picture.frame.theme.needle);
  }
}

void draw_map(const Picture& picture) {
  const ChoicesData& data = picture.data;
  if (picture.map.w <= 0) return;
  draw_matrix(picture.canvas, picture.map, data.cells, {ColorMap::viridis, 0, 1}, {ChoicesSheets::map, 0, 0});
  draw_places(picture);
  std::vector<std::string> notes = {data.size == 1 ? Views::tr("bright: looked at, down: tokens")
                                                   : Views::tr("bright: looked at, down: blocks by their first token")};
  if (std::ranges::count(data.needle, true) > 0) notes.push_back(Views::tr("gold: needle"));
  if (data.each > data.size) notes.push_back(Views::tr("{} tokens in one", data.each));
  if (const std::string gathered = gathered_text(picture.canvas, data.cells, picture.map); !gathered.empty()) notes.push_back(gathered);
  picture.draw_edges(picture.canvas, data.tokens, notes, picture.frame);
}

class ChoicesView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (cannot_choose(snapshot, cursor)) return {};
    return {question_of(snapshot, cursor)};
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_choices(snapshot, cursor, findings);
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : data_.title + "."; }

 private:
  ChoicesData data_;
};

}  // namespace

std::string words_of(const ChoicesData& data, std::int64_t from, std::int64_t to) {
  return to - from == 1 ? token_words(*data.tokens.run, from) : Views::tr("tokens {} to {}", from, to - 1);
}

ChoicesData build_choices(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) {
  ChoicesData data;
  data.message = cannot_choose(snapshot, cursor);
  if (data.message) return data;
  const ChoicesQuestion question = question_of(snapshot, cursor);
  const Choices* known = findings.get(question);
  data.place = Views::tr("layer {}, head {}", snapshot.layer, question.head);
  if (!known) {
    data.message = waiting(findings, question, Views::tr("What is chosen in {}", data.place));
    return data;
  }
  if (known->heads == 0) {
    data.message = chooses_nothing(*layer_of(snapshot), snapshot.layer);
    return data;
  }
  if (known->heads == 1) data.place = Views::tr("layer {}, all heads", snapshot.layer);
  data.size = known->size;
  data.tokens = {snapshot.run, token_range(question.from, question.to), shown_token(snapshot, cursor)};
  fill_map(data, *known, std::ssize(snapshot.run->tokens));
  fill_chosen(data, *known);
  data.title = sentence_at(summary(data), data.place);
  return data;
}

void draw(const ChoicesData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, data.title, Choices::accuracy, frame);
  if (picture.map.w <= 0 || !picture.names_tokens) canvas.left_out();
  draw_map(picture);
  if (picture.facts.w > 0) draw_facts(canvas, picture.facts, facts_of(data), frame);
  canvas.pop_clip();
}

std::unique_ptr<View> make_choices() { return std::make_unique<ChoicesView>(); }

}  // namespace statescope
