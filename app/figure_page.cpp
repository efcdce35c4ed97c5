#include "app/figure_page.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QVBoxLayout>

#include "app/figure/figure.h"
#include "app/main_window.h"

namespace statescope {
namespace {

struct Width {
  const char* name;
  double mm;
};
constexpr Width widths[] = {{QT_TRANSLATE_NOOP("statescope::FigurePage", "89 mm, one column"), 89},
                            {QT_TRANSLATE_NOOP("statescope::FigurePage", "120 mm, one and a half"), 120},
                            {QT_TRANSLATE_NOOP("statescope::FigurePage", "183 mm, two columns"), 183},
                            {QT_TRANSLATE_NOOP("statescope::FigurePage", "254 mm, a slide"), 254}};

QDoubleSpinBox* make_number(const QString& name, const QString& unit, double low, double high, double value, QWidget* parent) {
  auto* number = new QDoubleSpinBox(parent);
  number->setAccessibleName(name);
  number->setRange(low, high);
  number->setDecimals(0);
  number->setValue(value);
  number->setSuffix(unit);
  return number;
}

}  // namespace

FigurePage::FigurePage(MainWindow& window, QWidget* parent) : QWidget(parent), window_(window) {
  view_ = new QLabel(this);
  view_->setObjectName("faint");
  view_->setWordWrap(true);
  path_ = new QLineEdit(this);
  path_->setAccessibleName(tr("File, .pdf, .svg or .png"));
  width_ = new QComboBox(this);
  width_->setAccessibleName(tr("Width"));
  for (const Width& width : widths) width_->addItem(tr(width.name));
  height_ = make_number(tr("Height"), tr(" mm"), 20, 400, 60, this);
  type_ = make_number(tr("Type"), tr(" pt"), 5, 24, 7, this);
  auto* choose = new QPushButton(tr("Choose…"), this);
  choose->setAccessibleName(tr("Choose the file"));
  auto* write = new QPushButton(tr("Write it"), this);
  write->setDefault(true);
  write->setShortcut(QKeySequence("Ctrl+Return"));
  write->setToolTip(write->shortcut().toString(QKeySequence::NativeText));
  result_ = new QLabel(this);
  result_->setWordWrap(true);
  result_->setAccessibleName(tr("Result"));
  auto* form = new QFormLayout;
  form->addRow(tr("Width"), width_);
  form->addRow(tr("Height"), height_);
  form->addRow(tr("Type"), type_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  for (QWidget* widget : std::initializer_list<QWidget*>{view_, path_, choose}) layout->addWidget(widget);
  layout->addLayout(form);
  layout->addWidget(write);
  layout->addWidget(result_);
  layout->addStretch(1);
  setFocusProxy(path_);
  connect(choose, &QPushButton::clicked, this, &FigurePage::browse);
  connect(write, &QPushButton::clicked, this, &FigurePage::write);
  connect(path_, &QLineEdit::returnPressed, this, &FigurePage::write);
}

void FigurePage::refresh() {
  const ViewRow& row = window_.focused_panel().row();
  const std::shared_ptr<const RunInfo>& run = window_.navigator().run();
  view_->setText(tr("%1, as it stands now, in the light theme").arg(view_words(row.title)));
  const QString name = QStringLiteral("%1-%2-token%3.pdf")
                           .arg(run ? QFileInfo(QString::fromStdString(run->model.name)).completeBaseName() : QStringLiteral("statescope"),
                                QString::fromUtf8(row.id.data(), static_cast<qsizetype>(row.id.size())))
                           .arg(window_.navigator().cursor().token);
  const QString folder = path_->text().isEmpty() ? QDir::homePath() : QFileInfo(path_->text()).path();
  path_->setText(QDir(folder).filePath(name));
  result_->clear();
}

void FigurePage::browse() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Export view"), path_->text(), tr("Figures (*.pdf *.svg *.png)"));
  if (!path.isEmpty()) path_->setText(path);
}

void FigurePage::write() {
  try {
    const double width = widths[width_->currentIndex()].mm;
    write_figure(window_.focused_panel().view(), {width, height_->value(), type_->value()}, path_->text());
    result_->setText(tr("Wrote %1").arg(path_->text()));
  } catch (const std::exception& error) {
    result_->setText(QString::fromUtf8(error.what()));
  }
}

}  // namespace statescope
