#include "app/figure/view_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/place_words.h"
#include "views/parts.h"
#include "views/plot.h"
#include "views/words.h"

namespace statescope {
namespace {

const ViewRow& row_of(const FigurePanel& panel) { return *std::ranges::find(view_catalogue(), panel.view, &ViewRow::id); }

std::int64_t token_of(std::int64_t token, const RunInfo& run) { return token_place(token, run.prompt_length, std::ssize(run.tokens)); }

std::int64_t same_until(const RunInfo& a, const RunInfo& b) {
  const auto same = [](const TokenInfo& x, const TokenInfo& y) { return x.text == y.text; };
  return std::ranges::mismatch(a.tokens, b.tokens, same).in1 - a.tokens.begin();
}

/// The other model at the same place, with what the view asks about it.
std::shared_ptr<const Peer> peer_of(const View& view, const FigurePanel& panel, const Cursor& cursor,
                                    const std::shared_ptr<const Snapshot>& snapshot, const Findings& own, FigureRuns& runs) {
  const std::string& other = panel.checkpoints[1];
  FigureRun& run = runs.run(panel, other);
  Peer peer{.own_letter = "A", .letter = "B", .snapshot = run.snapshot(cursor), .missing = {}, .findings = {}};
  if (!peer.snapshot) throw Error(fmt::format("{} has no layer {}, or no token {}", other, cursor.layer, cursor.token));
  peer.same_until = same_until(*snapshot->run, run.info());
  peer.findings = run.find_all(view.peer_questions(*snapshot, own, *peer.snapshot, cursor));
  return std::make_shared<const Peer>(std::move(peer));
}

class ViewPicture : public PanelPicture {
 public:
  ViewPicture(const FigurePanel& panel, FigureRuns& runs, bool may_be_empty) : row_(row_of(panel)), view_(row_.make()), mode_(panel.mode) {
    const std::string& checkpoint = panel.checkpoints.front();
    cursor_of(panel, runs.planned(panel, checkpoint));  // what is not there is said before all of it is read
    FigureRun& run = runs.run(panel, checkpoint);
    cursor_ = cursor_of(panel, run.info());
    snapshot_ = run.snapshot(cursor_);
    if (!panel.mode.empty()) choose_mode();
    if (panel.knob) turn(*panel.knob);
    view_->set_range(panel.range);
    findings_ = run.find_all(view_->questions(*snapshot_, cursor_));
    const bool compares = view_->compares() && panel.checkpoints.size() > 1;
    if (compares) findings_.beside = {findings_.peer = peer_of(*view_, panel, cursor_, snapshot_, findings_, runs)};
    build();
    const bool empty = !may_be_empty && view_->arrays().empty();
    if (empty && view_->compares() && !compares)
      throw Error(fmt::format("{} compares two models: give \"checkpoints\": [A, B]", panel.view));
    if (empty) throw NothingShown(fmt::format("{} of {} shows nothing: {}", panel.view, checkpoint, view_->sentence()));
    if (!may_be_empty && panel.range != RangeChoice{} && !view_->shading())
      throw Error(panel.view + " has no colours whose range can be chosen");
  }

  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { view_->draw(canvas, area, frame); }
  std::vector<Array> arrays() const override { return view_->arrays(); }
  const View* view() const override { return view_.get(); }
  std::optional<Shading> shading() const override { return view_->shading(); }
  void set_range(const RangeChoice& range) override {
    view_->set_range(range);
    build();
  }
  void set_progress(float progress) override {
    cursor_.progress = progress;
    build();
  }

  std::string caption() const override {
    const RunInfo& run = *snapshot_->run;
    const std::string place = place_words(row_, run, cursor_);
    std::string text = fmt::format("{}{} of {} ({}){}, {}, of a prompt of {} tokens, “{}”.", row_.title,
                                   mode_.empty() ? "" : fmt::format(" ({})", mode_), run.model.name, run.model.family,
                                   place.empty() ? "" : ", " + place, after_words(run, cursor_.token), run.prompt_length, beginning(run));
    if (findings_.peer) text += fmt::format(" A is {}, B {}.", run.model.name, findings_.peer->snapshot->run->model.name);
    for (const std::string& intervention : run.branch.interventions) text += fmt::format(" Intervention: {}.", intervention);
    text += " " + view_->sentence();
    if (!text.ends_with('.')) text += '.';
    const Array first = view_->arrays().front();
    return text + fmt::format(" {}: {}.", first.name, first.equation);
  }

 private:
  void build() {
    const InEnglish paper;
    view_->build(*snapshot_, cursor_, findings_);
  }
  /// Some views have ways to look that are the layer's.
  void choose_mode() {
    const InEnglish paper;
    view_->build(*snapshot_, cursor_);
    view_->set_mode(mode_number(*view_, row_.id, mode_));
  }
  /// Some views have their knob only where the run is long.
  void turn(double value) {
    view_->build(*snapshot_, cursor_);
    const std::optional<Knob> knob = view_->knob();
    if (!knob) throw Error(fmt::format("{} has no knob", row_.id));
    if (!(value >= knob->low && value <= knob->high))
      throw Error(fmt::format("the knob of {} ({}) goes from {:g} to {:g}", row_.id, knob->name, knob->low, knob->high));
    view_->turn(value);
  }

  /// Of the prompt, its first tokens.
  static std::string beginning(const RunInfo& run) {
    constexpr std::int64_t shown = 12;
    std::string text;
    for (std::int64_t i = 0; i < std::min(shown, run.prompt_length); ++i) {
      const std::string& word = run.tokens[static_cast<std::size_t>(i)].text;
      text += (text.empty() || word.starts_with(' ') ? "" : " ") + visible_text(word);
    }
    return run.prompt_length > shown ? text + " …" : text;
  }

  const ViewRow& row_;
  std::unique_ptr<View> view_;
  std::string mode_;
  std::shared_ptr<const Snapshot> snapshot_;
  Cursor cursor_;
  Findings findings_;
};

}  // namespace

std::unique_ptr<PanelPicture> make_view_picture(const FigurePanel& panel, FigureRuns& runs, bool may_be_empty) {
  return std::make_unique<ViewPicture>(panel, runs, may_be_empty);
}

std::string place_words(const ViewRow& row, const RunInfo& run, const Cursor& at) {
  const InEnglish paper;
  if (row.place == ShownPlace::run) return "";
  if (row.place == ShownPlace::layer) return fmt::format("layer {}", at.layer);
  const bool all_heads = row.id == std::string_view("choices") && run.model.layers[static_cast<std::size_t>(at.layer)].mixer == "dsa";
  if (all_heads) return fmt::format("layer {}, all heads", at.layer);
  if (row.place == ShownPlace::head) return fmt::format("layer {}, head {}", at.layer, at.head);
  return memory_place(run.model.layers[static_cast<std::size_t>(at.layer)], at.layer, at.slot, at.head);
}

std::int64_t interesting_layer(const ModelInfo& model, std::string_view view) {
  using Is = std::function<bool(const LayerInfo&)>;
  const Is has_experts = [view](const LayerInfo& layer) { return view == "experts" && layer.experts > 0; };
  const Is may_choose = [view](const LayerInfo& layer) { return view == "choices" && layer.memory == "softmax attention"; };
  const Is routes = [](const LayerInfo& layer) { return layer.partitions > 0; };
  const Is attends = [view](const LayerInfo& layer) { return view == "attention" && layer.attention_heads > 0; };
  for (const Is& is : {has_experts, may_choose, routes, Is(&LayerInfo::has_state), attends}) {
    if (const auto found = std::ranges::find_if(model.layers, is); found != model.layers.end()) return found - model.layers.begin();
  }
  return 0;
}

Cursor cursor_of(const FigurePanel& panel, const RunInfo& run) {
  Cursor cursor{.head = panel.head, .slot = panel.slot, .row = panel.row, .column = panel.column};
  cursor.layer = panel.layer.value_or(interesting_layer(run.model, panel.view));
  cursor.token = token_of(panel.token.value_or(-1), run);
  if (panel.reference) cursor.reference = token_of(*panel.reference, run);
  check_index("layer", cursor.layer, std::ssize(run.model.layers));
  const LayerInfo& layer = run.model.layers[static_cast<std::size_t>(cursor.layer)];
  check_index("head", cursor.head, std::max<std::int64_t>(1, layer.most_heads()));
  check_index("slot", cursor.slot, std::max<std::int64_t>(1, layer.slots()));
  if (cursor.row >= 0) check_index("row", cursor.row, layer.rows);
  if (cursor.column >= 0) check_index("column", cursor.column, layer.columns);
  return cursor;
}

FigurePanel settled(const FigurePanel& panel, FigureRuns& runs) {
  FigurePanel exact = panel;
  if (panel.view.empty()) {
    if (!panel.prompt.empty()) exact.input = runs.prompt(panel, panel.checkpoints.empty() ? "" : panel.checkpoints.front());
    exact.prompt.clear();
    return exact;
  }
  FigureRun& run = runs.run(panel, panel.checkpoints.front());
  const Cursor cursor = cursor_of(panel, run.info());
  exact.prompt.clear();
  exact.input = run.prompt();
  exact.input->generate.reset();
  exact.generate = std::ssize(run.info().tokens) - run.info().prompt_length;
  exact.layer = cursor.layer;
  exact.token = cursor.token;
  if (panel.reference) exact.reference = cursor.reference;
  if (exact.mode.empty()) {
    const std::unique_ptr<View> view = row_of(panel).make();
    if (!view->modes().empty()) exact.mode = view->modes().front();
  }
  return exact;
}

}  // namespace statescope
