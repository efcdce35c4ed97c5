#include "app/window/figure_page.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QFormLayout>
#include <QGridLayout>
#include <QPointer>
#include <QThreadPool>
#include <QVBoxLayout>
#include <cmath>

#include "app/window/main_window.h"
#include "engine/error.h"

namespace statescope {
namespace {

struct SizeRow {
  const char* name;   // translated
  const char* value;  // of set_size; empty: as the numbers have it
};
constexpr SizeRow sizes[] = {{QT_TRANSLATE_NOOP("statescope::FigurePage", "89 mm, one column"), "single"},
                             {QT_TRANSLATE_NOOP("statescope::FigurePage", "183 mm, two columns"), "double"},
                             {QT_TRANSLATE_NOOP("statescope::FigurePage", "NeurIPS, width of text"), "neurips"},
                             {QT_TRANSLATE_NOOP("statescope::FigurePage", "ICLR, width of text"), "iclr"},
                             {QT_TRANSLATE_NOOP("statescope::FigurePage", "Slide, 16:9"), "slide"},
                             {QT_TRANSLATE_NOOP("statescope::FigurePage", "Another size"), ""}};
constexpr int own_size = std::size(sizes) - 1;
constexpr const char* colors[] = {
    QT_TRANSLATE_NOOP("statescope::FigurePage", "viridis"), QT_TRANSLATE_NOOP("statescope::FigurePage", "cividis"),
    QT_TRANSLATE_NOOP("statescope::FigurePage", "grey"), QT_TRANSLATE_NOOP("statescope::FigurePage", "grey-safe")};
constexpr const char* eyes[] = {
    QT_TRANSLATE_NOOP("statescope::FigurePage", "as it is"), QT_TRANSLATE_NOOP("statescope::FigurePage", "without red cones"),
    QT_TRANSLATE_NOOP("statescope::FigurePage", "without green cones"), QT_TRANSLATE_NOOP("statescope::FigurePage", "without blue cones"),
    QT_TRANSLATE_NOOP("statescope::FigurePage", "printed in grey")};
constexpr int preview_delay_ms = 60;
constexpr int two_columns_lines = 32;   // their least width, in heights of a line
constexpr double preview_share = 0.42;  // of the height in sight, at most: the style is to be seen beside or below it
constexpr int form_spacing = 6;
constexpr double mm_per_inch = 25.4;

NumberBox* make_number(const QString& name, const QString& unit, double low, double high, QWidget* parent) {
  auto* number = new NumberBox(parent);
  number->setAccessibleName(name);
  number->setRange(low, high);
  number->setDecimals(1);
  number->setSuffix(unit);
  return number;
}

QCheckBox* make_check(const QString& words, bool checked, const QString& help, QWidget* parent) {
  auto* box = new QCheckBox(words, parent);
  box->setChecked(checked);
  box->setToolTip(help);
  return box;
}

QComboBox* make_choice(const QString& name, const QStringList& choices, QWidget* parent) {
  auto* box = new QComboBox(parent);
  box->setAccessibleName(name);
  box->addItems(choices);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  return box;
}

QLabel* make_label(const char* object_name, QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setObjectName(object_name);
  label->setWordWrap(true);
  return label;
}

}  // namespace

FigurePage::FigurePage(MainWindow& window, QWidget* parent) : QWidget(parent), window_(window) {
  make_controls();
  lay_out();
  preview_delay_.setSingleShot(true);
  preview_delay_.setInterval(preview_delay_ms);
  connect(&preview_delay_, &QTimer::timeout, this, &FigurePage::show_preview);
  const auto soon = [this] { preview_delay_.start(); };
  connect(size_, &QComboBox::currentIndexChanged, this, &FigurePage::choose_size);
  for (QComboBox* box : {colors_, eyes_, family_}) connect(box, &QComboBox::currentIndexChanged, this, soon);
  for (NumberBox* number : {width_, height_, type_}) {
    connect(number, &NumberBox::valueChanged, this, soon);
    connect(number, &NumberBox::refused, result_, &QLabel::setText);
  }
  for (NumberBox* number : {width_, height_}) connect(number, &NumberBox::valueChanged, this, [this] { size_->setCurrentIndex(own_size); });
  for (QCheckBox* box : {title_, color_bar_, marks_, sentences_}) connect(box, &QCheckBox::toggled, this, soon);
  for (QCheckBox* box : {data_, caption_}) connect(box, &QCheckBox::toggled, question_, &QWidget::hide);
  connect(path_, &QLineEdit::textEdited, question_, &QWidget::hide);
  connect(write_, &QPushButton::clicked, this, &FigurePage::ask_or_write);
  connect(path_, &QLineEdit::returnPressed, this, &FigurePage::ask_or_write);
  connect(keep_, &QPushButton::clicked, this, &FigurePage::keep);
  connect(replace_, &QPushButton::clicked, this, &FigurePage::replace);
  choose_size(0);
}

void FigurePage::make_controls() {
  view_ = make_label("faint", this);
  preview_ = new QLabel(this);
  preview_->setAccessibleName(tr("The figure"));
  preview_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // its picture is made as wide as the page
  note_ = make_label("faint", this);
  result_ = make_label("result", this);
  result_->setAccessibleName(tr("Result"));
  path_ = new QLineEdit(this);
  path_->setAccessibleName(tr("File, .pdf, .svg, .png or .eps"));
  QStringList size_names, eye_names;
  for (const SizeRow& row : sizes) size_names += tr(row.name);
  for (const char* name : eyes) eye_names += tr(name);
  size_ = make_choice(tr("Size"), size_names, this);
  width_ = make_number(tr("Width"), tr(" mm"), 20, 600, this);
  height_ = make_number(tr("Height"), tr(" mm"), 20, 600, this);
  type_ = make_number(tr("Type"), tr(" pt"), 5, 12, this);
  family_ = make_choice(tr("Typeface"), QStringList(tr("DejaVu Sans, shipped")) + QFontDatabase::families(), this);
  family_->setObjectName("names");  // of the system, in no language
  QStringList color_names;
  for (const char* name : colors) color_names += tr(name);
  colors_ = make_choice(tr("Colours"), color_names, this);
  eyes_ = make_choice(tr("Preview"), eye_names, this);
  eyes_->setToolTip(tr("How others see the colours; the file stays the same"));
  title_ = make_check(tr("Title"), false, tr("The view's name above the drawing"), this);
  color_bar_ = make_check(tr("Colour bar"), true, tr("What the colours of a heatmap mean"), this);
  marks_ = make_check(tr("Marks"), true, tr("The cursor, needle spans, borders of partitions, the training length"), this);
  sentences_ = make_check(tr("Sentences"), false, tr("What the view writes about itself"), this);
  data_ = make_check(tr("Numbers, .h5"), false, tr("The numbers drawn, with axes, units and equation, beside the figure"), this);
  caption_ = make_check(tr("Caption, .txt"), false, tr("A draft of the caption beside the figure"), this);
  write_ = new QPushButton(tr("Write the figure"), this);
  write_->setDefault(true);
  write_->setShortcut(QKeySequence("Ctrl+Return"));
  write_->setToolTip(write_->shortcut().toString(QKeySequence::NativeText));
  question_ = new QWidget(this);
  keep_ = new QPushButton(tr("Keep"), question_);
  replace_ = new QPushButton(tr("Replace"), question_);
  for (QPushButton* button : {keep_, replace_}) button->setAutoDefault(true);  // Return chooses it
  question_->hide();
}

void FigurePage::lay_out() {
  auto* choose = new QPushButton(tr("Choose…"), this);
  choose->setAccessibleName(tr("Choose the file"));
  connect(choose, &QPushButton::clicked, this, &FigurePage::browse);
  auto* file = new QHBoxLayout;
  file->addWidget(path_, 1);
  file->addWidget(choose);
  auto* sides = new QHBoxLayout;
  sides->addWidget(width_);
  sides->addWidget(new QLabel(QStringLiteral("×"), this));
  sides->addWidget(height_);
  auto* form = new QFormLayout;
  form->setVerticalSpacing(form_spacing);
  form->addRow(tr("Size"), size_);
  form->addRow(QString(), sides);
  form->addRow(tr("Type"), type_);
  form->addRow(tr("Typeface"), family_);
  form->addRow(tr("Colours"), colors_);
  form->addRow(tr("Preview"), eyes_);
  auto* boxes = new QGridLayout;
  boxes->setVerticalSpacing(0);
  int place = 0;
  for (QCheckBox* box : {title_, color_bar_, marks_, sentences_, data_, caption_}) {
    boxes->addWidget(box, place / 2, place % 2);
    ++place;
  }
  auto* picture = new QVBoxLayout;
  picture->setSpacing(form_spacing);
  picture->addWidget(view_);
  picture->addWidget(preview_);
  picture->addWidget(note_);
  picture->addLayout(file);
  picture->addWidget(write_);
  picture->addWidget(result_);
  auto* answers = new QHBoxLayout(question_);
  answers->setContentsMargins(0, 0, 0, 0);
  for (QPushButton* button : {keep_, replace_}) answers->addWidget(button, 1);
  picture->addWidget(question_);
  picture->addStretch(1);
  auto* look = new QVBoxLayout;
  look->addLayout(form);
  look->addLayout(boxes);
  look->addStretch(1);
  columns_ = new QBoxLayout(QBoxLayout::TopToBottom, this);
  columns_->setContentsMargins(0, 0, 0, 0);
  columns_->addLayout(picture);
  columns_->addLayout(look, 1);
  setFocusProxy(path_);
}

void FigurePage::refresh() {
  const ViewRow& row = window_.focused_panel().row();
  const std::shared_ptr<const RunInfo>& run = window_.navigator().run();
  const QString name = QStringLiteral("%1-%2-token%3.pdf")
                           .arg(run ? QFileInfo(QString::fromStdString(run->model.name)).completeBaseName() : QStringLiteral("statescope"),
                                QString::fromUtf8(row.id.data(), static_cast<qsizetype>(row.id.size())))
                           .arg(window_.navigator().cursor().token);
  const QString folder = path_->text().isEmpty() ? QDir::homePath() : QFileInfo(path_->text()).path();
  path_->setText(QDir(folder).filePath(name));
  result_->clear();
  question_->hide();
  allowed_.clear();
  fit_height();
  show_preview();
}

void FigurePage::follow(const ViewPanel& panel) {
  if (!isVisible() || &panel != &window_.focused_panel()) return;
  fit_height();
  preview_delay_.start();
}

void FigurePage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const bool beside = width() > two_columns_lines * fontMetrics().height();
  columns_->setDirection(beside ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  columns_->setStretch(0, beside ? 1 : 0);
  columns_->setSpacing(beside ? fontMetrics().height() : -1);
  preview_delay_.start();
}

/// The numbers stand for what was chosen.
void FigurePage::choose_size(int index) {
  if (index != own_size) {
    FigureSpec spec;
    set_size(spec, sizes[index].value);
    const QSignalBlocker quiet[] = {QSignalBlocker(width_), QSignalBlocker(type_)};
    width_->setValue(spec.width_mm);
    type_->setValue(spec.type_pt);
  }
  if (isVisible()) fit_height();
  preview_delay_.start();
}

/// A journal's size says how wide a figure is.
bool FigurePage::is_height_free() const {
  if (size_->currentIndex() == own_size) return false;
  FigureSpec spec;
  set_size(spec, sizes[size_->currentIndex()].value);
  return !spec.height_mm;
}

/// As the view in focus wants it.
void FigurePage::fit_height() {
  if (size_->currentIndex() == own_size) return;
  FigureSpec spec;
  set_size(spec, sizes[size_->currentIndex()].value);
  const double aspect = usual_aspect(window_.focused_panel().row().id);
  const QSignalBlocker quiet(height_);
  height_->setValue(spec.height_mm.value_or(spec.width_mm / aspect));
}

FigureSpec FigurePage::style() const {
  FigureSpec spec;
  spec.width_mm = width_->value();
  spec.height_mm = height_->value();
  spec.type_pt = type_->value();
  if (family_->currentIndex() > 0) spec.family = family_->currentText().toStdString();
  spec.colors = figure_colors(colors[colors_->currentIndex()]);
  spec.titles = title_->isChecked();
  spec.color_bars = color_bar_->isChecked();
  spec.annotations = marks_->isChecked();
  spec.captions = sentences_->isChecked();
  FigurePanel panel;
  const ViewRow& row = window_.focused_panel().row();
  panel.view = row.id;
  if (title_->isChecked()) panel.title = row.title;
  spec.panels = {panel};
  return spec;
}

/// What is drawn is what is written, in English, too; only its paper is smaller.
void FigurePage::show_preview() {
  if (!isVisible()) return;
  const ViewPanel& panel = window_.focused_panel();
  view_->setText(tr("%1, as it is now, on white").arg(view_words(panel.row().title)));
  try {
    std::vector<std::unique_ptr<PanelPicture>> pictures;
    const std::optional<ViewRecipe> recipe = panel.recipe();
    const std::unique_ptr<View> built = recipe ? build(*recipe) : nullptr;
    pictures.push_back(picture_of(built ? *built : panel.view()));
    FigureSpec spec = style();
    if (is_height_free()) spec.height_mm.reset();  // as high as the view needs
    const Figure figure(spec, std::move(pictures));
    if (is_height_free()) {
      const QSignalBlocker quiet(height_);
      height_->setValue(std::ceil(10 * figure.height_mm()) / 10);
    }
    layout()->activate();
    const double across = preview_->width() / figure.spec().width_mm, down = preview_share * parentWidget()->height() / figure.height_mm();
    const double dpi = std::min(across, down) * devicePixelRatioF() * mm_per_inch;
    QImage image = figure_image(figure, dpi);
    if (eyes_->currentIndex() > 0) image = seen_by(image, static_cast<FigureEyes>(eyes_->currentIndex() - 1));
    image.setDevicePixelRatio(devicePixelRatioF());
    preview_->setPixmap(QPixmap::fromImage(image));
    preview_->setFixedHeight(static_cast<int>(std::ceil(image.deviceIndependentSize().height())));
    preview_->setAccessibleDescription(QString::fromStdString(figure.caption()));
    note_->setText(QString::fromStdString(figure.warning()));
  } catch (const Error& error) {
    preview_->setPixmap({});
    note_->setText(QString::fromUtf8(error.what()));
  }
  note_->setVisible(!note_->text().isEmpty());
}

void FigurePage::browse() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Export view"), path_->text(), tr("Figures (*.pdf *.svg *.png *.eps)"));
  if (path.isEmpty()) return;
  path_->setText(path);
  allowed_ = {path};  // the dialogue has asked
}

/// What can be seen before anything is computed.
QString FigurePage::why_not_there() const {
  const QFileInfo file(path_->text()), folder(file.path());
  try {
    figure_format(path_->text().toStdString());
  } catch (const Error& error) {
    return QString::fromUtf8(error.what());
  }
  if (!folder.isDir()) return tr("There is no folder %1.").arg(folder.filePath());
  if (!folder.isWritable()) return tr("Nothing can be written into the folder %1.").arg(folder.filePath());
  return file.isDir() ? tr("%1 is a folder.").arg(file.filePath()) : QString();
}

void FigurePage::ask_or_write() {
  for (NumberBox* number : {width_, height_, type_})
    if (!number->take_typed()) return;
  const std::optional<ViewRecipe> recipe = window_.focused_panel().recipe();
  if (!recipe) return told(tr("There is nothing to write yet."));
  if (const QString why = why_not_there(); !why.isEmpty()) return told(why);
  FigureExport figure = figure_of(*recipe);
  QStringList files, there;
  for (const std::filesystem::path& file : files_of(figure)) files += QString::fromStdString(file.string());
  for (const QString& file : files)
    if (QFileInfo::exists(file) && !allowed_.contains(file)) there += file;
  if (!there.isEmpty()) return ask_to_replace(there);
  allowed_ = files;
  write(std::move(figure));
}

void FigurePage::ask_to_replace(const QStringList& files) {
  asked_ = files;
  QStringList names;
  for (const QString& file : files) names += QFileInfo(file).fileName();
  const QString words = names.size() == 1 ? tr("%1 already exists.") : tr("%1 already exist.");
  result_->setText(words.arg(names.join(QStringLiteral(", "))));
  question_->show();
  for (QPushButton* button : {keep_, replace_}) button->setAccessibleDescription(result_->text());
  keep_->setFocus(Qt::OtherFocusReason);
}

void FigurePage::replace() {
  allowed_ += asked_;
  ask_or_write();
}

void FigurePage::keep() {
  question_->hide();
  result_->clear();
  path_->setFocus(Qt::OtherFocusReason);
  path_->selectAll();
}

FigureExport FigurePage::figure_of(const ViewRecipe& recipe) const {
  const Navigator& navigator = window_.navigator();
  FigureExport figure{.recipe = recipe,
                      .spec = style(),
                      .device = recipe.snapshot->run->model.device,
                      .path = path_->text().toStdString(),
                      .with_data = data_->isChecked(),
                      .with_caption = caption_->isChecked()};
  std::vector<std::string> checkpoints{navigator.checkpoint().string()};
  if (const Navigator* other = navigator.other(); other && recipe.findings.peer) checkpoints.push_back(other->checkpoint().string());
  const std::optional<std::string> title = figure.spec.panels.front().title;
  figure.spec.panels = {panel_of(recipe, std::move(checkpoints), navigator.prompt())};
  figure.spec.panels.front().title = title;
  return figure;
}

/// Beside the interface: a page of 600 dpi takes its time.
void FigurePage::write(FigureExport figure) {
  question_->hide();
  write_->setEnabled(false);
  result_->setText(tr("Writing. The checksum of a large checkpoint takes a while…"));
  QThreadPool::globalInstance()->start([figure = std::move(figure), page = QPointer<FigurePage>(this)] {
    QString words;
    try {
      const std::string remark = write_figure(figure);
      words = tr("Wrote %1").arg(QString::fromStdString(figure.path.string()));
      if (!remark.empty()) words += "\n" + tr("It does not say what it was made from: %1").arg(QString::fromStdString(remark));
    } catch (const std::exception& error) {
      words = QString::fromUtf8(error.what());
    }
    QMetaObject::invokeMethod(QCoreApplication::instance(), [page, words] {
      if (page) page->told(words);
    });
  });
}

void FigurePage::told(const QString& words) {
  write_->setEnabled(true);
  result_->setText(words);
}

}  // namespace statescope
