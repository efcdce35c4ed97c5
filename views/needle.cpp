#include "views/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "views/arrays.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

/// As it reads; tokens that are whole words without spaces get one between them.
std::string needle_text(const RunInfo& run, std::int64_t begin, std::int64_t end) {
  std::string text;
  std::vector<std::string> words;
  for (std::int64_t t = begin; t < end; ++t) text += words.emplace_back(run.tokens[static_cast<std::size_t>(t)].text);
  if (text.find(' ') == text.npos) text = joined(words, " ");
  return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

bool is_asked(const NeedleQuestion& question, const RunInfo& run) {
  return question.end > question.begin && question.question >= question.end && question.question < std::ssize(run.tokens);
}

/// The series of a place changes with visits alone: each token has the value of the visit before it.
std::vector<float> by_token(const NeedleStory::Curve& curve, const std::vector<std::int32_t>& tokens) {
  std::vector<float> kept;
  std::size_t next = 0;
  for (const std::int32_t token : tokens) {
    while (next < curve.token.size() && curve.token[next] <= token) ++next;
    kept.push_back(next == 0 ? 1 : curve.kept[next - 1]);
  }
  return kept;
}

std::string place_name(const LayerInfo& layer, std::int64_t slot, std::int64_t head) {
  return layer.slots() > 1 ? Views::tr("{}, head {}", slot_title(slot_identity(layer, slot), slot_name(layer, slot)), head)
                           : Views::tr("head {}", head);
}

NeedleParts parts_of(const NeedleStory::LayerFate& fate, std::string name) {
  return {.name = std::move(name),
          .clear = fate.clear,
          .decayed = fate.decayed,
          .erased = fate.erased,
          .overwritten = fate.overwritten,
          .misrouted = fate.misrouted,
          .read_share = fate.read_share,
          .read_where = {}};
}

void add_curves(NeedleData& data, const NeedleStory& story, const RunInfo& run, const Cursor& cursor) {
  if (data.mode == NeedleMode::layers) {
    for (std::size_t l = 0; l < story.layers.size(); ++l) {
      if (!story.layers[l].has_memory) continue;
      const auto layer = static_cast<std::int64_t>(l);
      data.curves.push_back({Views::tr("layer {}", l), Views::tr("layer {}", l), layer + 1, layer == data.layer, story.layers[l].kept});
    }
  } else {
    const NeedleStory::LayerFate& fate = story.layers[static_cast<std::size_t>(data.layer)];
    const LayerInfo& layer = run.model.layers[static_cast<std::size_t>(data.layer)];
    for (std::size_t i = 0; i < fate.curves.size(); ++i) {
      const NeedleStory::Curve& curve = fate.curves[i];
      const bool one_slot = layer.slots() == 1;
      const std::int64_t identity = one_slot ? curve.head + 1 : slot_identity(layer, curve.slot);
      const std::string name = place_name(layer, curve.slot, curve.head);
      data.curves.push_back({name, one_slot ? name : slot_title(identity, slot_name(layer, curve.slot)), identity,
                             curve.slot == cursor.slot && curve.head == cursor.head, by_token(curve, data.tokens.tokens)});
    }
    data.hidden_curves = fate.places - std::ssize(fate.curves);
  }
  for (const NeedleCurve& curve : data.curves) {
    const auto known = std::ranges::find(data.colors, curve.identity, &NeedleColor::identity);
    if (known == data.colors.end()) data.colors.push_back({curve.identity, curve.group});
  }
  std::ranges::stable_partition(data.curves, [](const NeedleCurve& curve) { return !curve.chosen; });
  std::ranges::sort(data.colors, {}, &NeedleColor::identity);
  if (!data.curves.empty() && data.curves.back().chosen)
    std::ranges::stable_partition(data.colors,
                                  [chosen = data.curves.back().identity](const NeedleColor& color) { return color.identity == chosen; });
}

class NeedleView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (!layer_of(snapshot)) return {};
    const NeedleQuestion question = needle_question(*snapshot.run, cursor.token);
    return is_asked(question, *snapshot.run) ? std::vector<Question>{question} : std::vector<Question>{};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 2> names = {QT_TRANSLATE_NOOP("Views", "Layers"),
                                                              QT_TRANSLATE_NOOP("Views", "Heads of the layer")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_needle(snapshot, cursor, findings, static_cast<NeedleMode>(mode()));
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Array> arrays() const override { return statescope::arrays(data_); }
  Table table() const override {
    if (data_.message) return {};
    Table table{{Views::tr("what"), Views::tr("where"), Views::tr("part of 1"), Views::tr("most at token")}, {}};
    for (const NeedleParts& parts : data_.parts) {
      const std::array<double, 5> values = parts.values();
      for (std::size_t i = 0; i < values.size(); ++i)
        table.rows.push_back({Views::tr(kNeedleParts[i]), parts.name, number(static_cast<float>(values[i]), 6), ""});
      table.rows.push_back({Views::tr("largest share of a read"), parts.name, number(static_cast<float>(parts.read_share), 6), ""});
    }
    for (const NeedleCause& cause : data_.causes)
      table.rows.push_back({Views::tr("{} took", Views::tr(cause.what.c_str())), cause.where, number(static_cast<float>(cause.lost), 6),
                            fmt::format("{} {}", *cause.go.token, cause.token_text)});
    return table;
  }
  std::string describe() const override {
    if (data_.message) return data_.message.sentence();
    return Views::tr("Needle \"{}\", tokens {} to {}, asked after token {}. {}; the needle is up to {:.2f} of what is read of a memory.",
                     data_.text, data_.begin, data_.end - 1, data_.question, summary(data_), data_.parts.front().read_share);
  }
  std::string tooltip(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0) return {};
    if (const auto i = index(hit_id, kNeedleLayerIds, data_.parts)) return layer_tooltip(data_.parts[*i]);
    if (const auto i = index(hit_id, kNeedleCauseIds, data_.causes)) return cause_tooltip(data_.causes[*i]);
    if (const auto i = index(hit_id, kNeedleFallIds, data_.falls)) {
      const NeedleStory::Fall& fall = data_.falls[*i];
      return Views::tr("token {} {}\nthe mean over the layers fell by {}\n{}", fall.token, visible_token(*data_.tokens.run, fall.token),
                       number(static_cast<float>(fall.by), 9), accuracy_words(NeedleStory::accuracy));
    }
    return hit_id < data_.tokens.count() ? token_tooltip(hit_id) : "";
  }
  CursorMove on_hit(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0) return {};
    if (const auto i = index(hit_id, kNeedleLayerIds, data_.parts))
      return data_.parts[*i].layer < 0 ? CursorMove{} : CursorMove{.layer = data_.parts[*i].layer};
    if (const auto i = index(hit_id, kNeedleCauseIds, data_.causes)) return data_.causes[*i].go;
    if (const auto i = index(hit_id, kNeedleFallIds, data_.falls)) return {.token = data_.falls[*i].token};
    return hit_id < data_.tokens.count() ? CursorMove{.token = data_.tokens.tokens[static_cast<std::size_t>(hit_id)]} : CursorMove{};
  }

 private:
  /// Ids of each kind begin at a power of two above all that the kinds before it have.
  template <class Things>
  static std::optional<std::size_t> index(std::int64_t hit_id, std::int64_t first, const Things& things) {
    if (hit_id < first || hit_id - first >= std::ssize(things)) return {};
    return static_cast<std::size_t>(hit_id - first);
  }
  std::string layer_tooltip(const NeedleParts& parts) const {
    std::string text = parts.name;
    const std::array<double, 5> values = parts.values();
    for (std::size_t i = 0; i < values.size(); ++i)
      text += fmt::format("\n{} {}", Views::tr(kNeedleParts[i]), number(static_cast<float>(values[i]), 9));
    const std::string share = number(static_cast<float>(parts.read_share), 9);
    const std::string most = parts.read_where.empty() ? share : fmt::format("{} ({})", share, parts.read_where);
    return joined({text, Views::tr("parts of what the needle wrote there; heads weigh by ‖C‖²"),
                   Views::tr("of one head's read at the question the needle's share is at most {}: ⟨o of the needle, o⟩ ÷ ⟨o, o⟩", most),
                   accuracy_words(NeedleStory::accuracy)},
                  "\n");
  }
  std::string cause_tooltip(const NeedleCause& cause) const {
    return Views::tr("{} took {} of all that the needle wrote, in {}\nmost at token {} {}\n{}", Views::tr(cause.what.c_str()),
                     number(static_cast<float>(cause.lost), 9), cause.where, *cause.go.token, cause.token_text,
                     accuracy_words(NeedleStory::accuracy));
  }
  std::string token_tooltip(std::int64_t place) const {
    const auto i = static_cast<std::size_t>(place);
    std::string text = Views::tr("token {} {}\nmean of the layers {}", data_.tokens.tokens[i],
                                 visible_token(*data_.tokens.run, data_.tokens.tokens[i]), number(data_.mean[i], 9));
    for (const NeedleCurve& curve : data_.curves) text += fmt::format("\n{} {}", curve.name, number(curve.kept[i], 9));
    if (data_.hidden_curves > 0) text += "\n" + Views::tr("and {} more that it wrote less to", data_.hidden_curves);
    return joined({text, Views::tr("‖C‖ after the token ÷ ‖C‖ after the needle, S = C + all else"), accuracy_words(NeedleStory::accuracy)},
                  "\n");
  }
  NeedleData data_;
};

}  // namespace

const std::array<const char*, 5> kNeedleParts = {QT_TRANSLATE_NOOP("Views", "clear"), QT_TRANSLATE_NOOP("Views", "decay"),
                                                 QT_TRANSLATE_NOOP("Views", "erasure"), QT_TRANSLATE_NOOP("Views", "overwriting"),
                                                 QT_TRANSLATE_NOOP("Views", "misrouting")};

std::array<double, 5> NeedleParts::values() const { return {clear, decayed, erased, overwritten, misrouted}; }

std::string losses(const NeedleData& data) {
  const std::array<double, 5> all = data.parts.front().values();
  std::array<std::size_t, 4> order = {1, 2, 3, 4};
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return all[i]; });
  std::string text;
  for (const std::size_t i : order) {
    if (all[i] < 0.005) continue;
    const std::string part = Views::tr(kNeedleParts[i]);
    text += text.empty() ? Views::tr("{} took {:.2f}", part, all[i]) : fmt::format(", {} {:.2f}", part, all[i]);
  }
  return text;
}

std::string summary(const NeedleData& data) {
  const std::string lost = losses(data);
  const double clear = data.parts.front().clear;
  return lost.empty() ? Views::tr("At the question {:.2f} of what the needle wrote lies clear", clear)
                      : Views::tr("At the question {:.2f} of what the needle wrote lies clear: {}", clear, lost);
}

NeedleQuestion needle_question(const RunInfo& run, std::int64_t cursor_token) {
  NeedleQuestion question;
  question.question = run.prompt_length - 1;
  for (const TokenSpan& span : run.spans) {
    const bool under_cursor = cursor_token >= span.begin && cursor_token < span.end;
    if (span.kind == SpanKind::needle && (question.end == 0 || under_cursor)) question.begin = span.begin, question.end = span.end;
    if (span.kind == SpanKind::answer && span.begin < run.prompt_length) question.question = span.begin - 1;
  }
  return question;
}

NeedleData build_needle(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, NeedleMode mode) {
  NeedleData data;
  if (!layer_of(snapshot)) {
    data.message = {Views::tr("No token has been read yet"), Views::tr("It appears as soon as a model has read its first tokens.")};
    return data;
  }
  const RunInfo& run = *snapshot.run;
  const NeedleQuestion question = needle_question(run, cursor.token);
  if (question.end == 0) {
    data.message = {Views::tr("This prompt has no needle"),
                    Views::tr("Mark one in the prompt (Ctrl+T): select its words, then Needle; a model without a tokenizer has no words to "
                              "select. In a prompt file \"spans\" name it by its bytes.")};
    return data;
  }
  if (!is_asked(question, run) && std::ssize(run.tokens) < run.prompt_length) {
    data.message = {Views::tr("The prompt has not been read to its end yet"), Views::tr("What became of the needle shows when it has.")};
    return data;
  }
  if (!is_asked(question, run)) {
    data.message = {Views::tr("Nothing is asked behind the needle"), Views::tr("The prompt has to go on after it, with the question.")};
    return data;
  }
  const NeedleStory* story = findings.get(question);
  if (!story) {
    data.message = waiting(findings, question, Views::tr("What became of the needle"));
    return data;
  }
  if (!story->all.has_memory) {
    data.message = {
        Views::tr("The needle wrote to no matrix memory"),
        Views::tr(
            "Softmax attention keeps keys and values of tokens instead: there is no state in which they could fade or be written over.")};
    return data;
  }
  data.mode = mode;
  data.text = needle_text(run, question.begin, question.end);
  data.begin = question.begin;
  data.end = question.end;
  data.question = question.question;
  data.layer = snapshot.layer;
  const bool inside = cursor.token >= question.end - 1 && cursor.token <= question.question;
  data.tokens = {snapshot.run, token_range(question.end - 1, question.question + 1), inside ? cursor.token : -1};
  data.mean = story->all.kept;
  data.falls = story->falls;
  add_curves(data, *story, run, cursor);
  data.parts.push_back(parts_of(story->all, Views::tr("all layers")));
  for (std::size_t l = 0; l < story->layers.size(); ++l) {
    const NeedleStory::LayerFate& fate = story->layers[l];
    if (!fate.has_memory) continue;
    NeedleParts& parts = data.parts.emplace_back(parts_of(fate, Views::tr("layer {}", l)));
    parts.layer = static_cast<std::int64_t>(l);
    parts.chosen = parts.layer == data.layer;
    parts.read_where = place_name(run.model.layers[l], fate.read_slot, fate.read_head);
  }
  for (const NeedleStory::Cause& cause : story->causes) {
    if (cause.lost <= 0) continue;
    const LayerInfo& layer = run.model.layers[static_cast<std::size_t>(cause.layer)];
    data.causes.push_back({cause.what,
                           memory_place(layer, cause.layer, cause.slot, cause.head),
                           visible_token(run, cause.token),
                           cause.lost,
                           {.token = cause.token, .layer = cause.layer, .head = cause.head, .slot = cause.slot}});
  }
  return data;
}

std::unique_ptr<View> make_needle() { return std::make_unique<NeedleView>(); }

}  // namespace statescope
