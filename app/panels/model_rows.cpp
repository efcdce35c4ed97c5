#include "app/panels/model_rows.h"

#include <QHBoxLayout>
#include <QSignalBlocker>
#include <algorithm>
#include <array>
#include <utility>

#include "app/controls/theme.h"
#include "views/colormaps.h"

namespace statescope {
namespace {

// Of a row, at 1×: below the first rows stand beside each other, below the second some are left out.
constexpr float good_row_height = 240, least_row_height = 150, least_row_width = 340;

constexpr std::string_view difference_views[] = {"state/Other model", "predictions/Other model"};
constexpr std::string_view views_of_unlike[] = {"predictions/Other model"};

/// States are subtracted where both have a place.
bool have_like_states(const ModelInfo& a, const ModelInfo& b) {
  const auto shape = [](const LayerInfo& layer) { return std::array{layer.slots(), layer.heads, layer.rows, layer.columns}; };
  return std::ranges::equal(a.layers, b.layers, {}, shape, shape);
}

std::size_t fit(int length, float each) { return static_cast<std::size_t>(std::max(1.0f, static_cast<float>(length) / each)); }

QSizeF room_of_row(const QSizeF& room, std::size_t models, std::size_t columns) {
  return {room.width() / static_cast<double>(columns), room.height() / static_cast<double>((models + columns - 1) / columns)};
}

/// Of `models` rows beside each other, where every view is shown: as it fits best.
std::size_t best_columns(const QSizeF& room, std::size_t models, std::size_t views, float scale) {
  const auto fit_with = [&](std::size_t columns) { return Stage::fit_of(room_of_row(room, models, columns), views, scale); };
  std::size_t best = 1;
  for (std::size_t columns = 2; columns <= models; ++columns)
    if (fit_with(columns) > fit_with(best)) best = columns;
  return best;
}

std::size_t focused_index(const Stage& stage) {
  return static_cast<std::size_t>(std::ranges::find(stage.panels(), &stage.focused_panel()) - stage.panels().begin());
}

/// The letters of a difference, one below the other.
QString letters_of(const PeerRun* other) { return other ? QStringLiteral("A\n−\n") + other->letter() : QString(); }

}  // namespace

ModelRow::ModelRow(const QString& letter, Stage& stage, QWidget* parent)
    : QFrame(parent),
      letter_(new QLabel(this)),
      note_(new QLabel(this)),
      body_(new QStackedWidget(this)),
      message_(new QLabel(body_)),
      stage_(stage) {
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
  set_letter(letter);
  show_note({});
  note_->setObjectName("faint");
  note_->setWordWrap(true);
  note_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  letter_->setAlignment(Qt::AlignCenter);
  message_->setObjectName("panel");
  message_->setAlignment(Qt::AlignCenter);
  message_->setWordWrap(true);
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  body_->addWidget(&stage_);
  body_->addWidget(message_);
  auto* column = new QVBoxLayout;
  column->addWidget(note_);
  column->addWidget(body_, 1);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(letter_);
  layout->addLayout(column, 1);
}

void ModelRow::set_frame(const Frame& frame, std::int64_t identity) {
  const Color fill = identity_color(identity, frame.theme);
  letter_->setStyleSheet(QStringLiteral("background: %1; color: %2; font-weight: bold; border-radius: 3px;")
                             .arg(to_qcolor(fill).name(), to_qcolor(readable_on(fill)).name()));
  letter_->setFixedWidth(static_cast<int>(22 * frame.scale));
  layout()->setSpacing(static_cast<int>(4 * frame.scale));
  stage_.set_frame(frame);
}

void ModelRow::set_letter(const QString& letter) {
  letter_->setText(letter);
  letter_->setAccessibleName(tr("Model %1").arg(QString(letter).remove('\n')));
}

void ModelRow::show_note(const QString& note) {
  note_->setText(note);
  note_->setToolTip(note);
  note_->setVisible(!note.isEmpty());
}

void ModelRow::show_message(const QString& message) {
  message_->setText(message);
  body_->setCurrentIndex(message.isEmpty() ? 0 : 1);
}

ModelRows::ModelRows(Stage& own, Navigator& leader, Comparison& comparison, bool opengl, QWidget* parent)
    : QWidget(parent), leader_(leader), comparison_(comparison), opengl_(opengl), grid_(new QGridLayout(this)), own_(nullptr) {
  grid_->setContentsMargins(0, 0, 0, 0);
  focused_ = own_ = new ModelRow("A", own, this);
  watch(*own_);
  lead(own);
  connect(&comparison_, &Comparison::added, this, [this](PeerRun* peer) { add(*peer); });
  connect(&comparison_, &Comparison::removed, this, [this](const PeerRun* peer) { remove(*peer); });
  connect(&comparison_, &Comparison::changed, this, [this] {
    update_difference();
    show_states();
  });
  lay_out();
}

void ModelRows::watch(ModelRow& row) {
  Stage& stage = row.stage();
  connect(&stage, &Stage::focus_moved, this, [this, &row] {
    focused_ = &row;
    follow_focus(row.stage());
    Q_EMIT focus_moved(&row.stage().focused_panel());
  });
  connect(&stage, &Stage::panel_changed, this, &ModelRows::panel_changed);
  connect(&stage, &Stage::spoke, this, &ModelRows::spoke);
  connect(&stage, &Stage::menu_wanted, this, &ModelRows::menu_wanted);
}

/// What is done to one model's stage is done to all.
void ModelRows::lead(Stage& stage) {
  connect(&stage, &Stage::rearranged, this, [this, &stage] { follow(stage); });
  connect(&stage, &Stage::look_changed, this, [this, &stage](const ViewPanel* panel) { follow_look(stage, *panel); });
}

ModelRow* ModelRows::make_row(const QString& letter, Navigator& navigator) {
  auto* stage = new Stage(navigator, {}, opengl_, this);
  auto* row = new ModelRow(letter, *stage, this);
  stage->set_titles_shown(titles_shown_);
  stage->set_all_shown(all_shown_);
  watch(*row);
  return row;
}

void ModelRows::add(PeerRun& peer) {
  ModelRow* row = make_row(peer.letter(), peer.navigator());
  const auto place = std::ranges::find_if(rows_, [&](const PeerRow& other) { return other.peer->letter() > peer.letter(); });
  rows_.insert(place, {&peer, row});
  lead(row->stage());
  follow(own_->stage());
  set_frame(frame_);
  show_states();
}

void ModelRows::drop(ModelRow* row) {
  if (focused_ == row) focused_ = own_;
  Q_EMIT leaving(row);
  row->hide();
  row->deleteLater();
  lay_out();
}

void ModelRows::remove(const PeerRun& peer) {
  const auto place = std::ranges::find(rows_, &peer, &PeerRow::peer);
  ModelRow* row = place->row;
  rows_.erase(place);
  drop(row);
}

std::vector<Stage*> ModelRows::peer_stages() const {
  std::vector<Stage*> stages;
  for (const PeerRow& row : rows_) stages.push_back(&row.row->stage());
  return stages;
}

std::vector<Stage*> ModelRows::model_stages() const {
  std::vector<Stage*> stages = peer_stages();
  stages.insert(stages.begin(), &own_->stage());
  return stages;
}

std::vector<ModelRow*> ModelRows::all_rows() const {
  std::vector<ModelRow*> all{own_};
  for (const PeerRow& row : rows_) all.push_back(row.row);
  if (difference_) all.push_back(difference_);
  return all;
}

void ModelRows::follow_own() { follow(own_->stage()); }

/// The focus stays where it is, so the view at its index is kept in all.
void ModelRows::follow(const Stage& from) {
  if (std::exchange(following_, true)) return;
  const std::size_t index = focused_index(from);
  for (Stage* stage : model_stages()) {
    if (stage == &from) continue;
    stage->bring_up(std::min(index, stage->panels().size() - 1));
    stage->arrange(from.arrangement());
    stage->bring_up(index);
    for (std::size_t i = 0; i < from.panels().size(); ++i) stage->panels()[i]->take_look(*from.panels()[i]);
  }
  following_ = false;
}

void ModelRows::follow_look(Stage& from, const ViewPanel& panel) {
  const auto index = static_cast<std::size_t>(std::ranges::find(from.panels(), &panel) - from.panels().begin());
  if (index == from.panels().size() || std::exchange(following_, true)) return;
  for (const Stage* stage : model_stages())
    if (stage != &from && index < stage->panels().size()) stage->panels()[index]->take_look(panel);
  following_ = false;
}

void ModelRows::follow_focus(const Stage& from) {
  if (difference_ && &from == &difference_->stage()) return;
  const std::size_t index = focused_index(from);
  for (Stage* stage : model_stages())
    if (stage != &from && index < stage->panels().size()) stage->bring_up(index);
}

void ModelRows::focus_next(int direction) {
  if (!comparison_.is_on()) return own_->stage().focus_next(direction);
  std::vector<std::pair<ModelRow*, ViewPanel*>> places;
  for (ModelRow* row : all_rows()) {
    for (ViewPanel* panel : row->stage().panels())
      if (panel->isVisibleTo(row)) places.emplace_back(row, panel);
  }
  if (places.empty()) return;
  const auto at = std::ranges::find(places, &focused_->stage().focused_panel(), &std::pair<ModelRow*, ViewPanel*>::second) - places.begin();
  const auto count = std::ssize(places);
  const auto& [row, panel] = places[static_cast<std::size_t>((at + direction + count) % count)];
  bring_up(row);
  panel->surface().setFocus(Qt::ShortcutFocusReason);
}

void ModelRows::bring_up(const ModelRow* row) {
  focused_ = row;
  lay_out();
}

void ModelRows::bring_up(const PeerRun* peer) {
  const auto place = std::ranges::find(rows_, peer, &PeerRow::peer);
  const ModelRow* row = place == rows_.end() ? own_ : place->row;
  bring_up(row);
  row->stage().focused_panel().surface().setFocus(Qt::ShortcutFocusReason);
}

void ModelRows::show_states() {
  for (const PeerRow& row : rows_) {
    const PeerRun& peer = *row.peer;
    QString message;
    if (!peer.problem().isEmpty())
      message = tr("%1, %2\n%3").arg(peer.letter(), peer.name(), peer.problem());
    else if (!peer.alignment().refused.empty())
      message = peer.note();
    else if (!peer.navigator().run())
      message = tr("%1, %2: %3").arg(peer.letter(), peer.name(), peer.doing());
    row.row->show_message(message);
    row.row->show_note(message.isEmpty() ? QStringList{peer.doing(), peer.note()}.join(QChar(' ')).trimmed() : QString());
  }
}

void ModelRows::update_difference() {
  const bool wanted = comparison_.is_on() && difference_wanted_;
  if (wanted && !difference_) {
    difference_ = make_row({}, leader_);
    difference_->stage().arrange(arrangement_of(difference_views));
    subtracts_states_ = true;
    set_frame(frame_);
  }
  if (wanted) difference_->set_letter(letters_of(comparison_.chosen()));
  if (wanted) arrange_difference();
  if (!wanted && difference_) drop(std::exchange(difference_, nullptr));
}

/// Of models whose states cannot be subtracted it shows what both have, until somebody arranges the views.
void ModelRows::arrange_difference() {
  const PeerRun* peer = comparison_.chosen();
  if (!peer || !peer->navigator().run() || !leader_.run()) return;
  const bool alike = have_like_states(leader_.run()->model, peer->navigator().run()->model);
  if (std::exchange(subtracts_states_, alike) == alike) return;
  Arrangement wanted = arrangement_of(difference_views), before = arrangement_of(views_of_unlike);
  if (!alike) std::swap(wanted, before);
  if (difference_->stage().arrangement().views != before.views) return;
  const bool has_focus = focused_ == difference_;
  const QSignalBlocker quiet(has_focus ? nullptr : &difference_->stage());  // else the focus stays in another row
  if (!has_focus) difference_->stage().begin_with_first();
  difference_->stage().arrange(wanted);
}

void ModelRows::set_difference_shown(bool shown) {
  difference_wanted_ = shown;
  update_difference();
}

void ModelRows::set_frame(const Frame& frame) {
  frame_ = frame;
  grid_->setSpacing(static_cast<int>(6 * frame.scale));
  own_->set_frame(frame, 1);
  for (const PeerRow& row : rows_) row.row->set_frame(frame, row.peer->letter().at(0).unicode() - u'A' + 1);
  if (difference_) difference_->set_frame(frame, 0);
  lay_out();
}

void ModelRows::set_titles_shown(bool shown) {
  titles_shown_ = shown;
  for (const ModelRow* row : all_rows()) row->stage().set_titles_shown(shown);
}

void ModelRows::set_all_shown(bool all) {
  if (std::exchange(all_shown_, all) == all) return;
  for (const ModelRow* row : all_rows()) row->stage().set_all_shown(all);
  lay_out();
}

float ModelRows::fit_of(const QSizeF& room, std::size_t models, std::size_t views, float scale) {
  return Stage::fit_of(room_of_row(room, models, best_columns(room, models, views, scale)), views, scale);
}

std::size_t ModelRows::columns_of(std::size_t count) const {
  if (all_shown_) return best_columns(size(), count, own_->stage().panels().size(), frame_.scale);
  const std::size_t most = fit(width(), least_row_width * frame_.scale);
  std::size_t columns = 1;
  while (columns < most && (count + columns - 1) / columns > fit(height(), good_row_height * frame_.scale)) ++columns;
  return columns;
}

void ModelRows::lay_out() {
  const std::vector<ModelRow*> all = all_rows();
  own_->set_letter_shown(all.size() > 1);
  const std::size_t columns = columns_of(all.size());
  const std::size_t room = all_shown_ ? all.size() : columns * fit(height(), least_row_height * frame_.scale);
  std::vector<ModelRow*> shown;
  bool focus_to_come = true;
  for (ModelRow* row : all) {
    if (row == focused_) focus_to_come = false;
    const bool fits = row == focused_ || shown.size() + (focus_to_come ? 1 : 0) < room;
    row->setVisible(fits);
    if (fits) shown.push_back(row);
    grid_->removeWidget(row);
  }
  for (int i = 0; i < std::max(grid_->rowCount(), grid_->columnCount()); ++i) {
    grid_->setRowStretch(i, 0);
    grid_->setColumnStretch(i, 0);
  }
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto line = static_cast<int>(i / columns), column = static_cast<int>(i % columns);
    const bool is_last = i + 1 == shown.size();
    grid_->addWidget(shown[i], line, column, 1, is_last ? static_cast<int>(columns) - column : 1);
    grid_->setRowStretch(line, 1);
    grid_->setColumnStretch(column, 1);
  }
}

void ModelRows::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  lay_out();
}

}  // namespace statescope
