#include "app/window/preferences_page.h"

#include <QFormLayout>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <cmath>

#include "app/panels/header.h"
#include "app/window/main_window.h"

namespace statescope {
namespace {

constexpr float scales[] = {1, 1.25f, 1.5f, 1.75f, 2, 2.25f, 2.5f, 2.75f, 3};

}  // namespace

PreferencesPage::PreferencesPage(MainWindow& window, const QString& drawn, QWidget* parent)
    : QWidget(parent), window_(window), drawn_(drawn) {
  theme_ = new QComboBox(this);
  theme_->setAccessibleName(tr("Theme"));
  theme_->addItems({tr("Follow the desktop"), tr("Light"), tr("Dark"), tr("High contrast")});  // in the order of ThemeChoice
  scale_ = new QComboBox(this);
  scale_->setAccessibleName(tr("Type and spacing"));
  for (const float scale : scales) scale_->addItem(QStringLiteral("%1×").arg(static_cast<double>(scale)));
  reduce_motion_ = new QCheckBox(tr("Reduce motion"), this);
  reduce_motion_->setToolTip(tr("A played step changes the picture at once"));
  autoplay_ = new QCheckBox(tr("Play by itself at the start"), this);
  autoplay_->setToolTip(tr("Soon after the prompt has been read, until you press a key"));
  device_ = new QLabel(this);
  device_->setObjectName("faint");
  device_->setWordWrap(true);
  device_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  device_->setFocusPolicy(Qt::StrongFocus);
  device_->setAccessibleName(tr("What the program runs on"));

  auto* form = new QFormLayout;
  form->addRow(tr("Theme"), theme_);
  form->addRow(tr("Type and spacing"), scale_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(form);
  for (QWidget* widget : std::initializer_list<QWidget*>{reduce_motion_, autoplay_, device_}) layout->addWidget(widget);
  layout->addStretch(1);
  setFocusProxy(theme_);

  connect(theme_, &QComboBox::activated, this, [this](int index) { window_.set_theme(static_cast<ThemeChoice>(index)); });
  connect(scale_, &QComboBox::activated, this, [this](int index) { window_.set_scale(scales[index]); });
  connect(reduce_motion_, &QCheckBox::toggled, this, [this](bool on) { window_.set_reduce_motion(on); });
  connect(autoplay_, &QCheckBox::toggled, this, [this](bool on) { window_.set_autoplay(on); });
}

void PreferencesPage::refresh() {
  const QSignalBlocker quiet_motion(reduce_motion_), quiet_autoplay(autoplay_);
  theme_->setCurrentIndex(static_cast<int>(window_.theme()));
  scale_->setCurrentIndex(static_cast<int>(std::lround((window_.wanted_scale() - 1) * 4)));
  reduce_motion_->setChecked(window_.reduces_motion());
  autoplay_->setChecked(window_.plays_by_itself());
  const std::shared_ptr<const RunInfo>& run = window_.navigator().run();
  device_->setText(run ? tr("Runs on %1.\n%2\n%3.").arg(QString::fromStdString(run->model.device), drawn_, recording_words(run->recording))
                       : drawn_);
}

}  // namespace statescope
