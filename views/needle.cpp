#include "views/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "views/parts.h"
#include "views/sheets.h"
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

/// Whether its slots are places of their own: the parts of a complex state are one.
bool has_slots(const LayerInfo& layer) { return layer.slots() > 1 && layer.memory != "state space"; }

std::string place_name(const LayerInfo& layer, std::int64_t slot, std::int64_t head) {
  return has_slots(layer) ? Views::tr("{}, head {}", slot_title(slot_identity(layer, slot), slot_name(layer, slot)), head)
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
      const bool one_slot = !has_slots(layer);
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

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    if (data_.message) return data_.message.sentence();
    return Views::tr(
        "Needle \"{}\", tokens {} to {}, asked after token {}. {}; the needle is up to {:.2f} of what is read from one memory.", data_.text,
        data_.begin, data_.end - 1, data_.question, summary(data_), data_.parts.front().read_share);
  }

 private:
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
  return lost.empty() ? Views::tr("At the question {:.2f} of what the needle wrote is still clear", clear)
                      : Views::tr("At the question {:.2f} of what the needle wrote is still clear: {}", clear, lost);
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
                              "select. In a prompt file \"spans\" name it by its bytes, or in token ids by its tokens.")};
    return data;
  }
  if (!is_asked(question, run) && std::ssize(run.tokens) < run.prompt_length) {
    data.message = {Views::tr("The prompt has not been read to its end yet"), Views::tr("What became of the needle shows when it has.")};
    return data;
  }
  if (!is_asked(question, run)) {
    data.message = {Views::tr("Nothing is asked after the needle"), Views::tr("The prompt has to go on after it, with the question.")};
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
                           fmt::format("{}, {}", Views::tr("layer {}", cause.layer), place_name(layer, cause.slot, cause.head)),
                           visible_token(run, cause.token),
                           cause.lost,
                           {.token = cause.token, .layer = cause.layer, .head = cause.head, .slot = cause.slot}});
  }
  return data;
}

std::unique_ptr<View> make_needle() { return std::make_unique<NeedleView>(); }

}  // namespace statescope
