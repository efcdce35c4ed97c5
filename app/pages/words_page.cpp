#include "app/pages/words_page.h"

#include <QRegularExpression>
#include <QVBoxLayout>
#include <algorithm>

namespace statescope {
namespace {

struct Word {
  const char* term;
  const char* meaning;
  const char* forms;  // in which it is found in a text: words with | between them, in English
};

constexpr Word meanings[] = {
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "answer"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "The words that answer the question."), "answers?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "approximate"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "No further off than the bound beside it."), "approximate"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "branch, parent"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "A branch is a run with an intervention. The run that it left is its parent."),
     "branch(es)?|parent"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "clear"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "What nothing has taken of a write: it is left, is not overwritten, and lies where the question reads."),
     "clear"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "dead, overloaded"),
     QT_TRANSLATE_NOOP(
         "statescope::WordsPage",
         "Of partitions, once there have been 32 tokens for each of them, and of experts after 32 visits for each: dead is one that "
         "no token has visited, overloaded one with a load above 2."),
     "dead|overloaded"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "exact"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "Kept from the run itself, not worked out again."), "exact(ly)?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "expert, router"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "An expert is one of many small networks of a layer. A router sends each token to a few of them, and says how much "
                       "each counts."),
     "experts?|routers?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "fair"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "A load of 1 is fair: as many visits as the mean of all partitions, or experts."), "fair"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "gate"),
     QT_TRANSLATE_NOOP(
         "statescope::WordsPage",
         "How much of a token a partition or a head writes, and how much of what it reads counts. The one with the largest gate "
         "wins."),
     "gates?|wins"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "half-life"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "After how many tokens decay has left half of what was written."), "half-life"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "key, value, query"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "What a layer makes of a token. The value is written along the key; a later token reads along its query."),
     "keys?|values?|quer(y|ies)"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "keyframe"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "A token after which all states were kept. Those in between are worked out from the keyframe before them."),
     "keyframes?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "layer, head"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "A model is a stack of layers. The memory of a layer has heads side by side, each with a state of its own."),
     "layers?|heads?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "left"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "What decay and erasure have not taken of a write. It may still be overwritten, or lie where nobody reads."),
     "left"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "load, visit"),
     QT_TRANSLATE_NOOP(
         "statescope::WordsPage",
         "A token that is routed to a partition or goes to an expert visits it. The load is the number of visits divided by the mean: "
         "at 1.58 there were 1.58 times as many as on average."),
     "loads?|visits?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "lost to decay"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "The state shrinks it, token by token."), "decay"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "lost to erasure"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "A delta rule takes it out before it writes something else."), "erasure|erased?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "lost to misrouting"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "It is left, but in a partition that the question does not read."), "misrouting|misrouted"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "lost to overwriting"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "It is left, but under later writes along the same keys. This is a definition of ours, not a measured cause."),
     "overwriting|overwritten"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "needle, question"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "The needle is what a text tells, the question the words that ask for it."),
     "needles?|questions?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "norm"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "The size of a vector or of a state: the root of the sum of the squares of its numbers."),
     "norms?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "partition, slot"),
     QT_TRANSLATE_NOOP(
         "statescope::WordsPage",
         "A slot is one memory of a layer. SSE and MoM have several: one shared by all tokens, and partitions that only those "
         "tokens change that are routed to them."),
     "partitions?|slots?|shared"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "probe"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "Shows what would be, and changes nothing in the run."), "probes?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "rank"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "The effective rank of a state: in how many directions it holds something."),
     "rank|spectrum"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "receptive field"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "How far back a memory reaches: where decay has left a thousandth of a write."),
     "receptive field"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "recomputed"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "Worked out again from numbers that the run kept. It is right to rounding, not to the last digit."),
     "recomputed"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "run"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "A model's reading of one text, with the answer that it gives."), "runs?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "state"),
     QT_TRANSLATE_NOOP("statescope::WordsPage",
                       "What a layer's memory holds after a token: for each slot and head a matrix of key rows and value columns."),
     "states?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "token"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "A piece of text that the model reads at once: a word, a part of one, or a byte."),
     "tokens?"},
    {QT_TRANSLATE_NOOP("statescope::WordsPage", "write, read"),
     QT_TRANSLATE_NOOP("statescope::WordsPage", "A token writes its key and its value to the state. A query reads from it."),
     "writes?|reads?|written"},
};

}  // namespace

WordsPage::WordsPage(QWidget* parent) : QWidget(parent) {
  find_ = new QLineEdit(this);
  find_->setPlaceholderText(tr("Find a word"));
  find_->setAccessibleName(tr("Find a word"));
  list_ = new QListWidget(this);
  list_->setAccessibleName(tr("What the words mean"));
  list_->setObjectName("lessons");
  list_->setWordWrap(true);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  for (const Word& word : meanings) {
    auto* item = new QListWidgetItem(tr(word.term) + "\n" + tr(word.meaning), list_);
    item->setData(Qt::UserRole, QString::fromLatin1(word.forms));
    item->setData(Qt::AccessibleTextRole, QStringLiteral("%1: %2").arg(tr(word.term), tr(word.meaning)));
  }
  all_ = new QPushButton(tr("All words"), this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  nothing_ = new QLabel(this);
  nothing_->setWordWrap(true);
  layout->addWidget(find_);
  layout->addWidget(nothing_);
  layout->addWidget(list_, 1);
  layout->addWidget(all_);
  setFocusProxy(find_);
  connect(find_, &QLineEdit::textChanged, this, &WordsPage::filter);
  connect(all_, &QPushButton::clicked, this, &WordsPage::show_all);
  filter();
}

void WordsPage::show_used_in(const QString& text) {
  text_ = text;
  find_->clear();
  filter();
}

void WordsPage::show_all() { show_used_in({}); }

void WordsPage::filter() {
  const QString typed = find_->text().trimmed();
  bool any = false;
  for (int row = 0; row < list_->count(); ++row) {
    QListWidgetItem& item = *list_->item(row);
    const QRegularExpression forms(QStringLiteral("\\b(%1)\\b").arg(item.data(Qt::UserRole).toString()),
                                   QRegularExpression::CaseInsensitiveOption);
    const bool used = text_.isEmpty() || text_.contains(forms) || !typed.isEmpty();
    item.setHidden(!used || !item.text().contains(typed, Qt::CaseInsensitive));
    any = any || !item.isHidden();
  }
  nothing_->setText(tr("No word here has “%1” in it.").arg(typed));
  nothing_->setVisible(!any && !typed.isEmpty());
  all_->setVisible(!text_.isEmpty());
}

}  // namespace statescope
