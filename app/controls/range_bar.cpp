#include "app/controls/range_bar.h"

#include <QMouseEvent>
#include <QPainter>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <vector>

#include "app/controls/theme.h"
#include "app/controls/typed_number.h"

namespace statescope {
namespace {

constexpr int margin = 6;  // of the histogram, so that a handle at its end can be taken
constexpr int digits = 6;

QString number_text(float number) { return QString::number(static_cast<double>(number), 'g', digits); }

/// Where the histogram begins and ends: all the numbers and the range.
ColorRange span_of(const Shading& shading) {
  ColorRange span{std::min(shading.least, shading.range.low), std::max(shading.most, shading.range.high), shading.range.logarithmic};
  if (span.logarithmic) span.low = std::max(span.low, shading.range.low * 0.1f);
  if (!(span.high > span.low)) span.high = span.low + 1;
  return span;
}

}  // namespace

RangeHistogram::RangeHistogram(QWidget* parent) : QWidget(parent) {
  setMinimumWidth(80);
  setMinimumHeight(24);
  setAccessibleName(tr("Histogram of the numbers shown"));
}

void RangeHistogram::show_numbers(const Shading& shading, const Theme& theme) {
  shading_ = shading;
  theme_ = theme;
  setAccessibleDescription(tr("from %1 to %2").arg(number_text(shading.least), number_text(shading.most)));
  update();
}

double RangeHistogram::place_of(float number) const {
  const ColorRange span = span_of(shading_);
  const auto at = [&](float x) { return span.logarithmic ? std::log(static_cast<double>(std::max(x, span.low))) : static_cast<double>(x); };
  return margin + (width() - 2 * margin) * (at(number) - at(span.low)) / (at(span.high) - at(span.low));
}

float RangeHistogram::number_at(double x) const {
  const ColorRange span = span_of(shading_);
  const double share = std::clamp((x - margin) / std::max(1, width() - 2 * margin), 0.0, 1.0);
  if (span.logarithmic) return static_cast<float>(span.low * std::pow(static_cast<double>(span.high) / span.low, share));
  return static_cast<float>(std::lerp(static_cast<double>(span.low), static_cast<double>(span.high), share));
}

void RangeHistogram::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  constexpr int bins = 64;
  std::vector<int> counts(bins);
  for (const float number : shading_.numbers) {
    const double share = (place_of(number) - margin) / std::max(1, width() - 2 * margin);
    ++counts[static_cast<std::size_t>(std::clamp(static_cast<int>(share * bins), 0, bins - 1))];
  }
  const int most = std::max(1, *std::ranges::max_element(counts));
  const double each = static_cast<double>(width() - 2 * margin) / bins;
  for (int i = 0; i < bins; ++i) {
    // Square roots, so that a few numbers far out are seen beside thousands near 0.
    const double h = (height() - 2) * std::sqrt(static_cast<double>(counts[static_cast<std::size_t>(i)]) / most);
    painter.fillRect(QRectF(margin + i * each, height() - 1 - h, each, h), to_qcolor(theme_.faint));
  }
  const double low = place_of(shading_.range.low), high = place_of(shading_.range.high);
  const QBrush hatching(to_qcolor(theme_.line), Qt::BDiagPattern);
  painter.fillRect(QRectF(margin, 0, low - margin, height()), hatching);
  painter.fillRect(QRectF(high, 0, width() - margin - high, height()), hatching);
  painter.setPen(QPen(to_qcolor(theme_.accent), 3));
  for (const double x : {low, high}) painter.drawLine(QPointF(x, 0), QPointF(x, height()));
}

void RangeHistogram::mousePressEvent(QMouseEvent* event) {
  const double x = event->position().x();
  drags_high_ = std::abs(x - place_of(shading_.range.high)) <= std::abs(x - place_of(shading_.range.low));
  mouseMoveEvent(event);
}

void RangeHistogram::mouseMoveEvent(QMouseEvent* event) {
  const float number = number_at(event->position().x());
  if (shading_.is_signed) return Q_EMIT dragged(-std::abs(number), std::abs(number));
  drags_high_ ? Q_EMIT dragged(shading_.range.low, number) : Q_EMIT dragged(number, shading_.range.high);
}

RangeBar::RangeBar(QWidget* parent) : QFrame(parent) {
  setObjectName("range");
  fit_ = new QComboBox(this);
  fit_->addItems({tr("The view's own"), tr("All numbers"), tr("98 % of them"), tr("Fixed")});
  fit_->setAccessibleName(tr("How the colours' range is chosen"));
  histogram_ = new RangeHistogram(this);
  low_ = new QLineEdit(this);
  high_ = new QLineEdit(this);
  low_->setAccessibleName(tr("Number of the first colour"));
  high_->setAccessibleName(tr("Number of the last colour"));
  for (QLineEdit* end : {low_, high_}) {
    connect(end, &QLineEdit::editingFinished, this, &RangeBar::take_typed);
    connect(end, &QLineEdit::textEdited, this, [this] {
      if (wrong_end().isEmpty()) show_wrong({});
      fold();
    });
  }
  logarithmic_ = new QCheckBox(tr("Logarithmic"), this);
  beyond_ = new QLabel(this);
  beyond_->setAccessibleName(tr("Numbers beyond the range"));
  wrong_ = new QLabel(this);
  wrong_->setWordWrap(true);
  wrong_->setAccessibleName(tr("What is wrong with the range"));
  wrong_->hide();
  row_ = new QHBoxLayout;
  for (QWidget* widget : {static_cast<QWidget*>(fit_), static_cast<QWidget*>(low_)}) row_->addWidget(widget);
  row_->addWidget(histogram_, 1);
  for (QWidget* widget : {static_cast<QWidget*>(high_), static_cast<QWidget*>(logarithmic_), static_cast<QWidget*>(beyond_)})
    row_->addWidget(widget);
  auto* rows = new QVBoxLayout(this);
  rows->addLayout(row_);
  rows->addWidget(wrong_);
  connect(histogram_, &RangeHistogram::dragged, this, &RangeBar::choose_fixed);
  connect(fit_, &QComboBox::activated, this, [this](int fit) {
    choice_.fit = static_cast<RangeChoice::Fit>(fit);
    choice_.low = shading_.range.low, choice_.high = shading_.range.high;
    for (QLineEdit* end : {low_, high_}) end->setModified(false);
    show_wrong({});
    Q_EMIT chosen(choice_);
  });
  connect(logarithmic_, &QCheckBox::toggled, this, [this](bool on) {
    choice_.logarithmic = on;
    Q_EMIT chosen(choice_);
  });
}

void RangeBar::show_range(const Shading& shading, const RangeChoice& choice, const Theme& theme) {
  shading_ = shading;
  choice_ = choice;
  const QSignalBlocker quiet(logarithmic_);
  fit_->setCurrentIndex(static_cast<int>(choice.fit));
  for (const auto& [end, number] : {std::pair(low_, shading.range.low), std::pair(high_, shading.range.high)}) {
    if (!end->isModified()) end->setText(number_text(number));
  }
  if (shading.is_signed) logarithmic_->hide();
  logarithmic_->setChecked(shading.range.logarithmic);
  logarithmic_->setEnabled(choice.logarithmic || !shading.range.logarithmic);  // some views are so by themselves
  beyond_->setText(tr("%1 of %2 beyond").arg(shading.below + shading.above).arg(shading.count));
  histogram_->show_numbers(shading, theme);
  fold();
}

QSize RangeBar::minimumSizeHint() const { return {0, QFrame::minimumSizeHint().height()}; }

void RangeBar::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  fold();
}

/// What there is no room for, the least needed first.
void RangeBar::fold() {
  int frame = low_->sizeHint().height() - low_->fontMetrics().height() + 2 * low_->fontMetrics().horizontalAdvance('0');
  for (QLineEdit* end : {low_, high_}) end->setFixedWidth(frame + end->fontMetrics().horizontalAdvance(end->text()));
  const QMargins margins = layout()->contentsMargins();
  int left = width() - margins.left() - margins.right();
  std::vector<QWidget*> wanted{fit_, low_, high_, histogram_, beyond_};
  if (!shading_.is_signed) wanted.insert(wanted.begin() + 3, logarithmic_);
  bool fits = true;
  for (QWidget* widget : wanted) {
    if (widget == high_) continue;  // with the other end
    int needs = std::max(widget->minimumWidth(), widget->minimumSizeHint().width()) + row_->spacing();
    if (widget == low_) needs += high_->width() + row_->spacing();
    fits = fits && needs <= left;
    left -= fits ? needs : 0;
    widget->setVisible(fits);
    if (widget == low_) high_->setVisible(fits);
  }
}

void RangeBar::choose_fixed(float low, float high) {
  choice_.fit = RangeChoice::Fit::fixed;
  choice_.low = low, choice_.high = high;
  Q_EMIT chosen(choice_);
}

/// Of the first end that is no number.
QString RangeBar::wrong_end() const {
  for (const QLineEdit* end : {low_, high_})
    if (!typed_number(end->text())) return why_no_number(end->text());
  return {};
}

void RangeBar::show_wrong(const QString& words) {
  wrong_->setText(words);
  wrong_->setVisible(!words.isEmpty());
}

/// Of signed numbers the end that was typed counts for both.
void RangeBar::take_typed() {
  if (!low_->isModified() && !high_->isModified()) return;
  if (const QString wrong = wrong_end(); !wrong.isEmpty()) return show_wrong(wrong);
  float low = static_cast<float>(*typed_number(low_->text())), high = static_cast<float>(*typed_number(high_->text()));
  if (shading_.is_signed) high = low_->isModified() ? std::abs(low) : std::abs(high), low = -high;
  low_->setModified(false);
  high_->setModified(false);
  choose_fixed(low, high);
}

}  // namespace statescope
