#include "app/lesson/player.h"

#include <QPointer>
#include <algorithm>
#include <utility>

#include "app/common/prompts.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr int asker = -2;  // panels count from 1

PromptInput prompt_of(const Lesson& lesson, const LessonPicture& picture) {
  if (picture.prompt.empty()) return load_prompt({.text = picture.text, .ids = {}, .file = {}});
  return load_prompt({.text = {}, .ids = {}, .file = lesson_asset(lesson, picture.prompt, "prompts").string()});
}

bool same(const PromptInput& a, const PromptInput& b) { return a.text == b.text && a.ids == b.ids && a.generate == b.generate; }

Arrangement stage_of(const LessonPicture& picture) {
  std::vector<std::string_view> ids;
  for (const ViewLook& look : picture.views) ids.push_back(look.view->id);
  Arrangement arrangement = arrangement_of(ids);
  for (std::size_t i = 0; i < picture.views.size(); ++i) arrangement.modes[i] = picture.views[i].mode;
  return arrangement;
}

}  // namespace

LessonPlayer::LessonPlayer(Navigator& navigator, Stage& stage, Comparison& comparison, Open open, QObject* parent)
    : QObject(parent), navigator_(navigator), stage_(stage), comparison_(comparison), open_(std::move(open)) {
  connect(&navigator_, &Navigator::opening_ended, this, &LessonPlayer::end_opening);
  connect(&navigator_, &Navigator::snapshot_changed, this, &LessonPlayer::measure_all);
  connect(&navigator_, &Navigator::cursor_changed, this, [this] {
    stop_where_asked();
    if (lesson_) Q_EMIT moved();
  });
  connect(&stage_, &Stage::rearranged, this, &LessonPlayer::moved);
  connect(&navigator_, &Navigator::beside_changed, this, &LessonPlayer::measure_all);
  connect(&comparison_, &Comparison::changed, this, [this] {
    if (!lesson_) return;
    ask_beside();
    measure_all();
    Q_EMIT moved();
  });
  connect(&navigator_, &Navigator::playing_changed, this, [this] {
    if (!navigator_.is_playing()) stop_at_.reset();
  });
}

void LessonPlayer::start(Lesson lesson, std::optional<LessonMarks> before) {
  leave();
  before_ = stage_.arrangement();
  lesson_ = std::move(lesson);
  left_ = std::move(before);
  progress_.assign(lesson_->steps.size(), {});
  if (left_) notes_ = left_->notes;
  enter(0, true);
}

void LessonPlayer::leave() {
  if (!lesson_) return;
  lesson_.reset();
  waits_for_run_ = false;
  stop_at_.reset();
  wanted_.clear();
  notes_.clear();
  comparison_.stop();
  stage_.arrange(*before_);
  Q_EMIT entered();
}

bool LessonPlayer::hides(Hideable part) const { return lesson_ && std::ranges::count(lesson_->hidden, part) > 0; }

std::vector<LessonPlayer::Crowd> LessonPlayer::crowds() const {
  std::vector<Crowd> crowds;
  if (!lesson_) return crowds;
  const auto models_of = [](const LessonPicture& shown) { return shown.beside.empty() ? std::size_t{1} : 2; };
  for (const LessonStep& each : lesson_->steps)
    for (const LessonPicture* shown : {&each.picture, &each.revealed})
      if (models_of(*shown) == models_of(picture())) crowds.push_back({models_of(*shown), shown->views.size()});
  return crowds;
}

void LessonPlayer::next() {
  if (!lesson_) return;
  if (!is_revealed()) return reveal({});
  const bool on_its_way = navigator_.is_opening() || own_.run == navigator_.run();
  const bool waits_for_notes = !step().notes.empty() && !is_ready() && on_its_way;
  if (index_ + 1 == lesson_->steps.size() || waits_for_notes) return;
  progress_[index_].done = true;
  enter(index_ + 1, true);
}

void LessonPlayer::previous() {
  if (lesson_ && index_ > 0) enter(index_ - 1, false);
}

std::optional<std::size_t> LessonPlayer::left_at() const {
  const bool any = lesson_ && index_ == 0 && left_ && left_->step > 0 && !left_->is_finished();
  return any ? std::optional(left_->step) : std::nullopt;
}

void LessonPlayer::go_on() {
  if (!left_at()) return;
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    const LessonMarks::Step& step = left_->steps[i];
    progress_[i].predicted = step.predicted;
    progress_[i].revealed = step.revealed;
  }
  enter(left_->step, true);
}

void LessonPlayer::go_to_step(std::size_t index) {
  if (lesson_ && index < lesson_->steps.size() && can_go_to(index)) enter(index, true);
}

bool LessonPlayer::can_go_to(std::size_t index) const {
  const LessonStep& step = lesson_->steps[index];
  const auto is_known = [this](const ProsePart& part) {
    const auto* recall = std::get_if<Recall>(&part);
    return !recall || notes_.contains(recall->name);
  };
  return std::ranges::all_of(step.prose, is_known) && std::ranges::all_of(step.reveal, is_known);
}

LessonMarks LessonPlayer::marks() const {
  LessonMarks marks{.step = index_, .steps = {}, .notes = notes_};
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    const bool before = left_ && left_->steps[i].done, ends = i + 1 == progress_.size() && i == index_ && is_revealed();
    marks.steps.push_back(
        {.done = before || progress_[i].done || ends, .revealed = progress_[i].revealed, .predicted = progress_[i].predicted});
  }
  return marks;
}

void LessonPlayer::show_picture() {
  if (lesson_) enter(index_, true);
}

void LessonPlayer::predict(std::size_t choice) {
  if (lesson_ && !is_revealed() && choice < step().question->choices.size()) reveal(choice);
}

/// Not before the numbers of the question's own picture have come: that is left then.
void LessonPlayer::reveal(std::optional<std::size_t> predicted) {
  if (!is_ready() && own_.run && own_.run == navigator_.run()) {
    waiting_ = {.predicted = predicted};
    compare();
    return navigator_.move({.token = place_.token, .layer = place_.layer});
  }
  waiting_.reset();
  progress_[index_].predicted = predicted;
  progress_[index_].revealed = true;
  if (is_ready()) keep_notes();
  Q_EMIT changed();
  if (own_.run && own_.run == navigator_.run()) draw_picture(true);
}

void LessonPlayer::enter(std::size_t index, bool plays) {
  index_ = index;
  plays_ = plays;
  begins_ = true;
  stop_at_.reset();
  waiting_.reset();
  navigator_.pause();
  list_wanted();
  Q_EMIT entered();
  try {
    prompt_ = prompt_of(*lesson_, step().picture);
  } catch (const std::exception& error) {
    return Q_EMIT failed(QString::fromUtf8(error.what()));
  }
  const bool is_changed = navigator_.branches() && navigator_.branches()->current != 0;  // by the reader's interventions
  waits_for_run_ = is_changed || !run_stands();
  if (waits_for_run_)
    open_run();
  else
    draw_picture(plays_);
}

/// Every quantity that the step names, none of them measured yet.
void LessonPlayer::list_wanted() {
  wanted_.clear();
  own_ = of_beside_ = {};
  const auto want = [this](const Quantity& quantity, bool of_reveal) { wanted_.push_back({&quantity, of_reveal, {}, {}, {}}); };
  for (const Prose* prose : {&step().prose, &step().reveal})
    for (const ProsePart& part : *prose)
      if (const auto* quantity = std::get_if<Quantity>(&part)) want(*quantity, prose == &step().reveal);
  if (step().question) want(step().question->answer, true);
  for (const LessonClaim& claim : step().claims) want(claim.quantity, true);
  for (const LessonNote& note : step().notes) want(note.quantity, true);
  std::vector<std::optional<Measured>>& known = progress_[index_].values;
  known.resize(wanted_.size());
  for (std::size_t i = 0; i < wanted_.size(); ++i) wanted_[i].value = known[i];
}

bool LessonPlayer::run_stands() const {
  return navigator_.run() && !navigator_.is_opening() && same(navigator_.prompt(), prompt_) &&
         navigator_.checkpoint() == lesson_asset(*lesson_, step().picture.checkpoint, "checkpoints");
}

void LessonPlayer::open_run() { open_(lesson_asset(*lesson_, step().picture.checkpoint, "checkpoints"), prompt_); }

void LessonPlayer::end_opening() {
  if (!waits_for_run_ || !run_stands()) return;
  waits_for_run_ = false;
  draw_picture(plays_);
}

/// Nobody stands beside the run but whom the picture names.
bool LessonPlayer::compares_as_wanted() const {
  const auto& peers = comparison_.peers();
  if (picture().beside.empty()) return peers.empty();
  return peers.size() == 1 && peers.front()->checkpoint() == lesson_asset(*lesson_, picture().beside, "checkpoints");
}

void LessonPlayer::compare() {
  if (compares_as_wanted()) return;
  comparison_.stop();
  if (!picture().beside.empty()) comparison_.add(lesson_asset(*lesson_, picture().beside, "checkpoints"));
}

void LessonPlayer::draw_picture(bool plays) {
  const Arrangement wanted = stage_of(picture());
  const bool other_views = stage_.arrangement().views != wanted.views;
  stage_.arrange(wanted);
  // Where there is room for one view alone, a step begins with its first.
  if (std::exchange(begins_, false) || other_views) stage_.begin_with_first();
  for (std::size_t i = 0; i < picture().views.size(); ++i) stage_.panels()[i]->look_afresh(picture().views[i].knob);
  compare();  // with the same views
  place_ = place_in_run(picture(), *navigator_.run());
  const std::optional<std::int64_t> from = picture().play ? token_of(*picture().play, *navigator_.run()) : std::nullopt;
  const bool moves = plays && from && *from < place_.token && !navigator_.reduces_motion();
  navigator_.move({.token = moves ? *from : place_.token,
                   .layer = place_.layer,
                   .head = place_.head,
                   .slot = place_.slot,
                   .row = place_.row,
                   .column = place_.column,
                   .reference = place_.reference});
  if (own_.run != navigator_.run()) ask(false);
  ask_beside();
  if (moves) {
    stop_at_ = place_.token;
    navigator_.play();
  }
  Q_EMIT moved();
}

/// Its token is the first where the run has none of that name.
Cursor LessonPlayer::place_in_run(const LessonPicture& picture, const RunInfo& run) const {
  if (run.model.layers.empty()) return {};
  Cursor place{.token = token_of(picture.token, run).value_or(0),
               .layer = std::min<std::int64_t>(picture.layer, std::ssize(run.model.layers) - 1),
               .head = picture.head,
               .row = picture.row,
               .column = picture.column};
  if (picture.reference) place.reference = token_of(*picture.reference, run).value_or(-1);
  const std::vector<std::string>& slots = run.model.layers[static_cast<std::size_t>(place.layer)].slot_names;
  const auto slot = std::ranges::find(slots, picture.slot);
  if (slot != slots.end()) place.slot = slot - slots.begin();
  return place;
}

bool LessonPlayer::is_at_picture() const {
  if (!lesson_ || waits_for_run_) return true;
  if (own_.run != navigator_.run()) return false;
  const Arrangement wanted = stage_of(picture());
  const Cursor& at = navigator_.cursor();
  const auto same_place = [&](auto Cursor::*... fields) { return ((at.*fields == place_.*fields) && ...); };
  return (stop_at_ || at.token == place_.token) && same_place(&Cursor::layer, &Cursor::head, &Cursor::slot, &Cursor::reference) &&
         stage_.arrangement().views == wanted.views && stage_.arrangement().modes == wanted.modes && compares_as_wanted();
}

void LessonPlayer::stop_where_asked() {
  if (!stop_at_ || navigator_.cursor().token < *stop_at_) return;
  stop_at_.reset();
  navigator_.pause();
}

/// Null until the model that the picture names stands beside the run, has read its prompt and given its answer.
Navigator* LessonPlayer::beside() const {
  if (!lesson_ || picture().beside.empty() || !compares_as_wanted()) return nullptr;
  PeerRun& peer = *comparison_.peers().front();
  return peer.follows() && peer.navigator().run() && !peer.navigator().is_opening() ? &peer.navigator() : nullptr;
}

void LessonPlayer::ask_beside() {
  const Navigator* other = beside();
  const auto is_of_beside = [](const Wanted& wanted) { return wanted.quantity->of_beside; };
  if (other && other->run() != of_beside_.run && std::ranges::any_of(wanted_, is_of_beside)) ask(true);
}

void LessonPlayer::ask(bool of_beside) {
  Navigator& navigator = of_beside ? *beside() : navigator_;
  Asked LessonPlayer::*const side = of_beside ? &LessonPlayer::of_beside_ : &LessonPlayer::own_;
  const std::shared_ptr<const RunInfo> run = navigator.run();
  this->*side = {run, {}};
  std::vector<Question> questions;
  for (Wanted& wanted : wanted_) {
    if (wanted.quantity->of_beside != of_beside) continue;
    wanted.picture = place_in_run(wanted.of_reveal ? step().revealed : step().picture, *run);
    wanted.at = place_of(*wanted.quantity, *run, wanted.picture);
    if (!wanted.at || !wanted.quantity->row->question) continue;
    const std::optional<Question> question = wanted.quantity->row->question(*run, *wanted.at);
    if (question && std::ranges::count(questions, *question) == 0) questions.push_back(*question);
  }
  measure_all();
  if (questions.empty()) return;
  navigator.ask(asker, std::move(questions), [self = QPointer<LessonPlayer>(this), side, run](const Question& question, Finding finding) {
    if (!self || (self.data()->*side).run != run || (!finding.answer && finding.refused.empty())) return;
    (self.data()->*side).findings.set(question, std::move(finding));
    self->measure_all();
  });
}

void LessonPlayer::measure_all() {
  if (!own_.run || own_.run != navigator_.run()) return;
  bool came = false;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i].value) continue;
    wanted_[i].value = progress_[index_].values[i] = measured(wanted_[i]);
    came = came || wanted_[i].value;
  }
  if (!came) return;
  if (is_revealed() && is_ready()) keep_notes();
  Q_EMIT changed();
  if (waiting_ && is_ready()) reveal(waiting_->predicted);
}

/// The run, and the model beside it where the number is that one's, stand where the picture does.
bool LessonPlayer::shows(const Wanted& wanted) const {
  const Cursor place = place_in_run(wanted.of_reveal ? step().revealed : step().picture, *navigator_.run());
  const Snapshot* snapshot = navigator_.is_current() ? navigator_.snapshot().get() : nullptr;
  const bool stands = snapshot && snapshot->layer == place.layer && snapshot->token == place.token;
  return stands && (!wanted.quantity->of_beside || beside()->is_current());
}

/// Why nothing can be known of the model beside; empty: something can, or will be.
std::string LessonPlayer::missing_beside() const {
  if (!compares_as_wanted()) return {};
  const PeerRun& peer = *comparison_.peers().front();
  return peer.problem().isEmpty() ? peer.alignment().refused : peer.problem().toStdString();
}

/// Nothing while its question is open, or its model does not show the picture yet.
std::optional<Measured> LessonPlayer::measured(const Wanted& wanted) const {
  const bool of_beside = wanted.quantity->of_beside;
  const Navigator* navigator = of_beside ? beside() : &navigator_;
  const Asked& asked = of_beside ? of_beside_ : own_;
  if (const std::string missing = of_beside ? missing_beside() : std::string(); !missing.empty())
    return Measured{.text = "unknown: " + missing, .known = false};
  if (!navigator || asked.run != navigator->run()) return {};
  if (!wanted.at) return Measured{.text = "unknown: this run has no such place", .known = false};
  const QuantityRow& row = *wanted.quantity->row;
  const Snapshot* snapshot = navigator->snapshot().get();
  if (row.from_snapshot) {
    if (!shows(wanted)) return {};
    if (wanted.at->token > snapshot->token) return Measured{.text = "unknown: the picture is before that token", .known = false};
  }
  if (row.question) {
    const std::optional<Question> question = row.question(*asked.run, *wanted.at);
    if (question && !asked.findings.find(*question)) return {};
  }
  return measure(*wanted.quantity, {*asked.run, snapshot, asked.findings, *wanted.at});
}

void LessonPlayer::keep_notes() {
  for (const LessonNote& note : step().notes) notes_[note.name] = said(note.quantity);
}

const Measured* LessonPlayer::value_of(const Quantity& quantity) const {
  const auto found = std::ranges::find(wanted_, &quantity, &Wanted::quantity);
  return found != wanted_.end() && found->value ? &*found->value : nullptr;
}

std::string LessonPlayer::said(const Quantity& quantity) const {
  const Measured* value = value_of(quantity);
  return value ? value->text : "…";
}

bool LessonPlayer::is_ready() const {
  const auto is_known = [this](const Wanted& wanted) { return wanted.value || (wanted.of_reveal && !is_revealed()); };
  return std::ranges::all_of(wanted_, is_known) && !waits_for_run_;
}

std::optional<std::size_t> LessonPlayer::right_choice() const {
  const Measured* value = step().question ? value_of(step().question->answer) : nullptr;
  if (!value || !value->known) return {};
  const std::vector<LessonChoice>& choices = step().question->choices;
  const auto right = std::ranges::find_if(choices, [&](const LessonChoice& choice) { return choice.bounds.hold(*value); });
  return right != choices.end() ? std::optional(static_cast<std::size_t>(right - choices.begin())) : std::nullopt;
}

std::string LessonPlayer::answer() const {
  const std::optional<std::size_t> right = right_choice();
  const LessonChoice* choice = right ? &step().question->choices[*right] : nullptr;
  return choice && choice->bounds.text ? choice->words : said(step().question->answer);
}

std::string LessonPlayer::filled(const Prose& prose) const {
  std::string text;
  for (const ProsePart& part : prose) {
    if (const auto* words = std::get_if<std::string>(&part)) text += *words;
    if (const auto* quantity = std::get_if<Quantity>(&part)) text += said(*quantity);
    if (const auto* recall = std::get_if<Recall>(&part)) text += notes_.contains(recall->name) ? notes_.at(recall->name) : "…";
  }
  return text;
}

std::vector<std::string> LessonPlayer::broken_claims() const {
  std::vector<std::string> broken;
  for (const LessonClaim& claim : step().claims) {
    const Measured* value = value_of(claim.quantity);
    if (value && !(value->known && claim.bounds.hold(*value))) broken.push_back(claim.words + ": " + value->text);
  }
  return broken;
}

}  // namespace statescope
