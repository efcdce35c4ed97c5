#include "app/panels/view_panel.h"

#include <QAccessible>
#include <QCoreApplication>
#include <QHBoxLayout>
#include <QMenu>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/controls/theme.h"

namespace statescope {
namespace {

constexpr int pending_delay_ms = 120;          // shorter waits are not worth a word
constexpr int played_pending_delay_ms = 1500;  // nor is that a played step, which nobody has asked for, takes its time
constexpr int answers_delay_ms = 40;           // a view waits so long for what it asked before it is built without
constexpr int knob_steps = 200;
constexpr int controls_place = 1;   // in the head, behind the question
constexpr float named_width = 460;  // of a panel at 1× that has room for its view's name beside the question

int next_asker() {
  static int count = 0;
  return ++count;
}

/// Between the slider's 0 … knob_steps and the knob's low … high.
double knob_value(const Knob& knob, int step) {
  const double part = static_cast<double>(step) / knob_steps;
  return knob.logarithmic ? knob.low * std::pow(knob.high / knob.low, part) : knob.low + (knob.high - knob.low) * part;
}
int knob_step(const Knob& knob) {
  const double part = knob.logarithmic ? std::log(knob.value / knob.low) / std::log(knob.high / knob.low)
                                       : (knob.value - knob.low) / (knob.high - knob.low);
  return static_cast<int>(std::lround(part * knob_steps));
}

}  // namespace

const ViewRow* find_view(std::string_view id) {
  const std::span<const ViewRow> rows = view_catalogue();
  const auto found = std::ranges::find(rows, id, &ViewRow::id);
  return found == rows.end() ? nullptr : &*found;
}

QString view_help(const ViewRow& row) {
  return QStringLiteral("<p><b>%1</b><br>%2</p><p>%3</p>")
      .arg(view_words(row.title), view_words(row.question).toHtmlEscaped(), view_words(row.help).toHtmlEscaped());
}

QString view_words(std::string_view text) { return QCoreApplication::translate("Views", std::string(text).c_str()); }

ViewPanel::ViewPanel(Navigator& navigator, const ViewRow& row, bool opengl, bool titled, QWidget* parent)
    : QFrame(parent), navigator_(navigator), row_(&row), view_(row.make()), asker_(next_asker()), titled_(titled) {
  setObjectName("panel");
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(1, 1, 1, 1);
  layout->setSpacing(0);
  if (titled) {
    head_ = new QWidget(this);
    head_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // how wide a panel is, the reader says, not its words
    head_->installEventFilter(this);
    question_ = new QLabel(head_);
    question_->setObjectName("question");
    question_->setWordWrap(true);
    pending_ = new QLabel(head_);
    pending_->setObjectName("pending");
    title_ = new QToolButton(head_);
    mode_ = new QToolButton(head_);
    for (QToolButton* chooser : {mode_, title_}) {
      chooser->setObjectName("small");
      chooser->setPopupMode(QToolButton::InstantPopup);
      chooser->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
      chooser->setLayoutDirection(Qt::RightToLeft);  // the arrow after the name
      chooser->setMenu(new QMenu(chooser));
    }
    title_->setAccessibleName(tr("View shown here"));
    for (const ViewRow& choice : view_catalogue())
      if (choice.id != strip_view)
        connect(title_->menu()->addAction(view_words(choice.title)), &QAction::triggered, this, [this, &choice] { set_view(choice); });
    mode_->setAccessibleName(tr("Way to look at it"));
    knob_name_ = new QLabel(head_);
    knob_ = new QSlider(Qt::Horizontal, head_);
    knob_->setRange(0, knob_steps);
    knob_->setMaximumWidth(160);
    connect(knob_, &QSlider::valueChanged, this, [this](int step) {
      if (const std::optional<Knob> knob = view_->knob()) {
        view_->turn(knob_value(*knob, step));
        show_modes();
        build();
        Q_EMIT look_changed();
      }
    });
    auto* controls = new QHBoxLayout;
    controls->addStretch(1);
    for (QWidget* control : std::initializer_list<QWidget*>{pending_, knob_name_, knob_, mode_, title_}) controls->addWidget(control);
    auto* head = new QBoxLayout(QBoxLayout::LeftToRight, head_);
    head->addWidget(question_, 1);
    head->addLayout(controls);
    layout->addWidget(head_);
  }
  surface_ = make_surface(
      opengl,
      [this](Canvas& canvas) {
        paint(canvas);
        QTimer::singleShot(0, this, [this, part_is_new = std::exchange(part_is_new_, false)] { look_again(part_is_new); });
      },
      this);
  QWidget* widget = surface_->widget();
  widget->setFocusPolicy(Qt::StrongFocus);
  widget->setMouseTracking(true);
  widget->installEventFilter(this);
  widget->grabGesture(Qt::PinchGesture);
  layout->addWidget(widget, 1);
  if (titled) {
    range_bar_ = new RangeBar(this);
    range_bar_->hide();
    layout->addWidget(range_bar_);
    connect(range_bar_, &RangeBar::chosen, this, [this](const RangeChoice& choice) {
      ranges_[row_->id] = choice;
      view_->set_range(choice);
      build();
    });
  }
  pending_delay_.setSingleShot(true);
  connect(&pending_delay_, &QTimer::timeout, this, &ViewPanel::show_pending);
  answers_delay_.setSingleShot(true);
  answers_delay_.setInterval(answers_delay_ms);
  connect(&answers_delay_, &QTimer::timeout, this, &ViewPanel::build_now);
  for (const auto signal : {&Navigator::cursor_changed, &Navigator::snapshot_changed, &Navigator::motion_changed, &Navigator::run_changed})
    connect(&navigator_, signal, this, &ViewPanel::build);
  connect(&navigator_, &Navigator::other_changed, this, [this] {
    if (view_->compares()) build();
  });
  connect(&navigator_, &Navigator::beside_changed, this, [this] {
    if (!titled_ || view_->looks_beside()) build();  // the text has a lane of each
  });
  connect(&navigator_, &Navigator::cursor_changed, this, &ViewPanel::hide_stale_tip);
  set_view(row);
}

ViewPanel::~ViewPanel() {
  stop_asking();
  surface_->widget()->removeEventFilter(this);
  if (head_) head_->removeEventFilter(this);
}

void ViewPanel::set_view(const ViewRow& row) {
  row_ = &row;
  view_ = row.make();
  if (const auto known = ranges_.find(row.id); known != ranges_.end()) view_->set_range(known->second);
  view_->build({}, {});  // says what would fill it
  if (titled_) {
    question_->setText(view_words(row.question));
    title_->setText(view_words(row.title));
    title_->setToolTip(view_help(row));
    show_modes();
  }
  stop_asking();
  surface_->widget()->setAccessibleName(view_words(row.title));
  fit();
  describe();
  show_range();
  build();
  Q_EMIT look_changed();
}

void ViewPanel::set_frame(const Frame& frame) {
  frame_ = frame;
  surface_->set_ground(frame.theme.panel);
  keep_corners();
  if (titled_) {
    for (QToolButton* chooser : {mode_, title_}) {
      chooser->setIcon(icon_of("down", frame.theme));
      chooser->setIconSize(QSize(9, 9) * frame.scale);
    }
    const int margin = static_cast<int>(8 * frame.scale);
    head_->layout()->setContentsMargins(margin + margin / 2, margin / 2, margin / 2, margin / 2);
    head_->layout()->setSpacing(margin);
    head_layout().itemAt(controls_place)->layout()->setSpacing(margin);
    title_->setVisible(frame.shown.hints);  // what is presented is not chosen with the pointer
    show_modes();
  }
  surface_->widget()->update();
}

void ViewPanel::set_title_shown(bool shown) {
  head_->setVisible(shown);
  keep_corners();
}

/// The drawing stays inside the round frame.
void ViewPanel::keep_corners() {
  const int corner = static_cast<int>(4 * frame_.scale);
  layout()->setContentsMargins(1, head_ && !head_->isHidden() ? 1 : corner, 1, corner);
}

void ViewPanel::next_view() {
  if (!titled_) return;
  const std::span<const ViewRow> rows = view_catalogue();
  auto next = static_cast<std::size_t>(row_ - rows.data());
  do next = (next + 1) % rows.size();
  while (rows[next].id == strip_view);
  set_view(rows[next]);
}

void ViewPanel::showEvent(QShowEvent* event) {
  QFrame::showEvent(event);
  build();
}

/// On the title as on the drawing.
void ViewPanel::mousePressEvent(QMouseEvent* event) {
  QFrame::mousePressEvent(event);
  surface_->widget()->setFocus(Qt::MouseFocusReason);
}

/// Where there is no room for it, or on its way out.
void ViewPanel::hideEvent(QHideEvent* event) {
  QFrame::hideEvent(event);
  if (isHidden()) stop_asking();
}

void ViewPanel::next_mode() {
  if (titled_ && view_->modes().size() > 1) choose_mode((view_->mode() + 1) % view_->modes().size());
}

void ViewPanel::set_mode(std::size_t mode) {
  if (titled_ && mode != view_->mode()) choose_mode(mode < view_->modes().size() ? mode : 0);
}

void ViewPanel::choose_mode(std::size_t mode) {
  view_->set_mode(mode);
  show_modes();
  build();
  Q_EMIT look_changed();
}

void ViewPanel::take_look(const ViewPanel& other) {
  if (row_ != other.row_) set_view(*other.row_);
  const std::optional<Knob> knob = other.view_->knob();
  if (knob) view_->turn(knob->value);
  choose_mode(other.view_->mode());
}

void ViewPanel::take_look(const FigurePanel& figure) {
  if (const ViewRow* row = find_view(figure.view); row && row != row_) set_view(*row);
  const std::span<const std::string_view> modes = view_->modes();
  if (const auto mode = std::ranges::find(modes, figure.mode); mode != modes.end())
    choose_mode(static_cast<std::size_t>(mode - modes.begin()));
  ranges_[row_->id] = figure.range;
  view_->set_range(figure.range);
  look_afresh(figure.knob);
}

std::optional<ViewRecipe> ViewPanel::recipe() const {
  if (!has_all()) return {};
  const std::optional<Knob> knob = view_->knob();
  return ViewRecipe{.row = row_,
                    .mode = view_->mode(),
                    .knob = knob ? std::optional(knob->value) : std::nullopt,
                    .range = view_->range(),
                    .snapshot = navigator_.snapshot(),
                    .cursor = navigator_.cursor(),
                    .findings = found()};
}

void ViewPanel::add_actions(const QList<QAction*>& actions) {
  title_->menu()->addSeparator();
  title_->menu()->addActions(actions);
  for (const QToolButton* chooser : {title_, mode_})
    connect(chooser->menu(), &QMenu::aboutToShow, this, [this] { surface_->widget()->setFocus(Qt::PopupFocusReason); });
}

/// A view's ways of looking may depend on the layer.
void ViewPanel::fill_mode_menu() {
  QStringList names, have;
  for (const std::string_view mode : view_->modes()) names += view_words(mode);
  for (const QAction* choice : mode_->menu()->actions()) have += choice->text();
  if (names == have) return;
  mode_->menu()->clear();
  for (qsizetype m = 0; m < names.size(); ++m) {
    QAction* choice = mode_->menu()->addAction(names[m]);
    choice->setCheckable(true);
    connect(choice, &QAction::triggered, this, [this, m] { choose_mode(static_cast<std::size_t>(m)); });
  }
}

void ViewPanel::look_afresh(std::optional<double> knob) {
  if (const std::optional<Knob> first = row_->make()->knob()) view_->turn(knob.value_or(first->value));
  show_modes();
  fit();
  build();
}

void ViewPanel::show_modes() {
  const std::span<const std::string_view> modes = view_->modes();
  mode_->setVisible(modes.size() > 1 && frame_.shown.hints);
  if (modes.size() > 1) {
    fill_mode_menu();
    mode_->setText(view_words(modes[std::min(view_->mode(), modes.size() - 1)]));
    const QList<QAction*> choices = mode_->menu()->actions();
    for (qsizetype m = 0; m < choices.size(); ++m) choices[m]->setChecked(static_cast<std::size_t>(m) == view_->mode());
  }
  const std::optional<Knob> knob = view_->knob();
  knob_->setVisible(knob.has_value());
  knob_name_->setVisible(knob.has_value());
  if (knob) show_knob(*knob);
  fit_head();
}

void ViewPanel::show_knob(const Knob& knob) {
  const QSignalBlocker quiet(knob_);
  knob_->setValue(knob_step(knob));
  knob_->setAccessibleName(view_words(knob.name));
  knob_->setToolTip(view_words(knob.help));
  knob_name_->setText(QStringLiteral("%1 = %2").arg(view_words(knob.name)).arg(knob.value, 0, 'g', 3));
}

/// The snapshot, and that of another model where the view compares with it, unless there will be none.
bool ViewPanel::has_all() const {
  if (!navigator_.is_current()) return false;
  const std::shared_ptr<const Peer> peer = view_->compares() ? navigator_.peer() : nullptr;
  return !peer || peer->snapshot || !peer->missing.empty();
}

bool ViewPanel::is_pending() const {
  if (!navigator_.run()) return false;
  return !has_all() || answers_delay_.isActive();
}

void ViewPanel::build() {
  if (isHidden()) return;  // until it is shown
  if (has_all()) {
    ask();
    if (!answers_delay_.isActive()) build_now();
  } else if (!titled_ && navigator_.run()) {
    build_now();
  } else {
    wait_for_word();
  }
}

/// Not from the beginning with every step.
void ViewPanel::wait_for_word() { pending_delay_.start(navigator_.is_playing() ? played_pending_delay_ms : pending_delay_ms); }

void ViewPanel::build_now() {
  const std::shared_ptr<const Snapshot>& snapshot = navigator_.snapshot();
  if (has_all()) {
    view_->build(*snapshot, navigator_.cursor(), found());
  } else if (!titled_ && navigator_.run()) {
    Snapshot text_only;
    text_only.run = navigator_.run();
    view_->build(snapshot && snapshot->run == navigator_.run() ? *snapshot : text_only, navigator_.cursor(), found());
  } else {
    return;
  }
  pending_delay_.stop();
  surface_->widget()->update();
  if (navigator_.cursor().progress < 1) return;
  if (titled_) show_modes();
  show_pending();
  show_range();
  describe();
  Q_EMIT changed();
}

void ViewPanel::toggle_range_bar() {
  range_wanted_ = !range_wanted_;
  show_range();
}

void ViewPanel::show_range() {
  if (!range_bar_) return;
  const std::optional<Shading> shading = range_wanted_ ? view_->shading() : std::nullopt;
  range_bar_->setVisible(shading.has_value());
  if (shading) range_bar_->show_range(*shading, view_->range(), frame_.theme);
}

void ViewPanel::describe() {
  QWidget* widget = surface_->widget();
  const QString part = in_sight(), all = QString::fromStdString(view_->describe());
  const QString sentence = part.isEmpty() ? all : tr("%1 In sight: %2.").arg(all, part);
  if (widget->accessibleDescription() != sentence) widget->setAccessibleDescription(sentence);
}

void ViewPanel::show_pending() {
  if (!titled_) return;
  const bool grew = !navigator_.is_current() && navigator_.shows_place();  // what is drawn stays true
  const bool stale = is_pending() && !grew;
  pending_->setText(stale ? tr("token %1 is on its way").arg(navigator_.cursor().token) : QString());
  surface_->widget()->update();
}

void ViewPanel::paint(Canvas& canvas) const {
  const Size size = canvas.size();
  const Rect area{-static_cast<float>(offset_.x()), -static_cast<float>(offset_.y()), size.w * zoom_, size.h * zoom_};
  Frame frame = frame_;
  if (titled_) frame.scale = drawing_scale_.of(*view_, canvas, area, frame);
  frame.in_sight = {static_cast<float>(part_.x()), static_cast<float>(part_.y()), static_cast<float>(part_.width()),
                    static_cast<float>(part_.height())};
  view_->draw(canvas, area, frame);
  const bool says_so = pending_ && !pending_->text().isEmpty();
  if (!says_so) return;
  Color veil = frame_.theme.panel;
  veil.a = 110;
  canvas.fill_rect({0, 0, size.w, size.h}, veil, 0);
}

void ViewPanel::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  keep_inside();
  fit_head();
}

/// In a narrow panel the question has the room of the view's name, which the arrow's tooltip still says, and a line of its own where it
/// would need more than two beside the controls.
void ViewPanel::fit_head() {
  if (!titled_) return;
  const bool narrow = static_cast<float>(width()) < named_width * frame_.scale;
  title_->setToolButtonStyle(narrow ? Qt::ToolButtonIconOnly : Qt::ToolButtonTextBesideIcon);
  int room = width() - head_layout().contentsMargins().left() - head_layout().contentsMargins().right();
  for (const QWidget* control : std::initializer_list<const QWidget*>{knob_name_, knob_, mode_, title_})
    if (!control->isHidden()) room -= control->sizeHint().width() + head_layout().spacing();
  question_->ensurePolished();
  const bool beside = question_->fontMetrics().horizontalAdvance(question_->text()) < 1.8 * room;  // a broken line leaves some of it free
  head_layout().setDirection(beside ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
}

}  // namespace statescope
