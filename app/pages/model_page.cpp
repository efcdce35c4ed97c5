#include "app/pages/model_page.h"

#include <QVBoxLayout>

#include "app/common/plain_words.h"

namespace statescope {
namespace {

QLabel* add_label(QVBoxLayout& layout, const QString& name) {
  auto* label = new QLabel;
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  label->setFocusPolicy(Qt::StrongFocus);
  label->setAccessibleName(name);
  layout.addWidget(label);
  return label;
}

}  // namespace

ModelPage::ModelPage(const Navigator& navigator, QWidget* parent) : QWidget(parent), navigator_(navigator) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  about_ = add_label(*layout, tr("What it is"));
  text_ = add_label(*layout, tr("Its text"));
  notes_ = add_label(*layout, tr("Notes of opening it"));
  layout->addStretch(1);
  setFocusProxy(about_);
  connect(&navigator, &Navigator::opened, this, &ModelPage::show_model);
  show_model();
}

void ModelPage::show_model() {
  if (!navigator_.run()) {
    about_->setText(tr("No model is open."));
    for (QLabel* label : {text_, notes_}) label->hide();
    return;
  }
  const ModelInfo& model = navigator_.run()->model;
  const ModelFacts& facts = navigator_.facts();
  about_->setText(QStringList({QString::fromStdString(model.name), QString::fromStdString(model.family),
                               tr("%1 layers, %2 parameters, %3 token ids").arg(model.layers.size()).arg(model.parameters).arg(facts.vocab),
                               QString::fromStdString(model.device)})
                      .join('\n'));
  text_->setText(facts.no_text.isEmpty() ? tr("It reads and writes text.") : tr("It reads and writes token ids: %1").arg(facts.no_text));
  QStringList notes = without_options(model.notes);
  notes.prepend(notes.isEmpty() ? tr("Nothing in its files was passed over.") : tr("When it was opened:"));
  notes_->setText(notes.join(QStringLiteral("\n• ")));
  for (QLabel* label : {text_, notes_}) label->show();
}

}  // namespace statescope
