#include "app/pages/random_needles.h"

#include <QGridLayout>
#include <QLabel>
#include <QRandomGenerator>
#include <utility>

#include "app/assets.h"
#include "app/common/plain_words.h"
#include "app/eval/needle_grid.h"

namespace statescope {
namespace {

constexpr int most_length = 32768, most_needles = 64, usual_needles = 4;
constexpr std::int64_t usual_length = 256;
constexpr int most_draws = 1'000'000;

}  // namespace

RandomNeedles::RandomNeedles(Navigator& navigator, QWidget* parent) : QWidget(parent), navigator_(navigator) {
  auto* layout = new QGridLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  const auto field = [&](const QString& name, const QString& means, int least, int most, double value) {
    auto* label = new QLabel(name, this);
    label->setObjectName("small");
    auto* box = new NumberBox(this);
    box->setDecimals(0);
    box->setRange(least, most);
    box->setValue(value);
    box->setAccessibleName(means);
    box->setToolTip(means);
    connect(box, &NumberBox::refused, this, &RandomNeedles::refused);
    const int column = layout->columnCount();
    layout->addWidget(label, 0, column);
    layout->addWidget(box, 1, column);
    return box;
  };
  length_ = field(tr("Length"), tr("Length of the text: words, or bytes where the model reads bytes"), 1, most_length, usual_length);
  needles_ = field(tr("Needles"), tr("How many needles the text holds; one of them is asked for"), 1, most_needles, usual_needles);
  depth_ = field(tr("Depth"), tr("How deep the needle stands that is asked for, in percent of the text"), 0, 100, 50);
  depth_->setSuffix(QStringLiteral(" %"));
  auto* again = new QPushButton(tr("Draw needles"), this);
  layout->addWidget(again, 2, 1, 1, -1);
  connect(again, &QPushButton::clicked, this, &RandomNeedles::draw);
}

void RandomNeedles::draw() {
  if (!length_->take_typed() || !needles_->take_typed() || !depth_->take_typed()) return;
  if (navigator_.facts().is_elsewhere)
    return Q_EMIT refused(tr("Needles are drawn with the model's tokenizer, which is with the engine on another machine."));
  const std::int64_t trained = navigator_.run() ? navigator_.run()->model.trained_length : 0;
  if (trained > 0 && trained != std::exchange(trained_, trained)) length_->setValue(static_cast<double>(trained));
  const NeedleExample wanted{.needles = static_cast<std::int64_t>(needles_->value()),
                             .length = static_cast<std::int64_t>(length_->value()),
                             .depth = static_cast<int>(depth_->value()),
                             .haystack = {},
                             .index = QRandomGenerator::global()->bounded(most_draws)};
  try {
    Q_EMIT drawn(prompt_of(wanted, navigator_.checkpoint(), navigator_.facts().tokenizer, assets_folder()));
  } catch (const std::exception& error) {
    Q_EMIT refused(without_options(error.what()));
  }
}

}  // namespace statescope
