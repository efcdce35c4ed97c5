#include "app/pages/word_completion.h"

#include <QAbstractItemView>
#include <QScrollBar>
#include <QTextBlock>

namespace statescope {
namespace {

constexpr int least_letters = 2;

}  // namespace

WordCompletion::WordCompletion(QPlainTextEdit& text) : QObject(&text), text_(text) {
  completer_.setModel(&words_);
  completer_.setModelSorting(QCompleter::CaseSensitivelySortedModel);
  completer_.setWidget(&text_);
  completer_.popup()->setAccessibleName(tr("Words that the model knows"));
  connect(&completer_, qOverload<const QString&>(&QCompleter::activated), this, &WordCompletion::take);
  connect(&text_, &QPlainTextEdit::textChanged, this, &WordCompletion::propose);
}

void WordCompletion::set_words(QStringList words) {
  words.sort();
  if (words != words_.stringList()) words_.setStringList(words);
}

/// The beginning of a word before the caret; empty within a word.
QString WordCompletion::typed() const {
  const QTextCursor caret = text_.textCursor();
  const QString line = caret.block().text();
  const qsizetype at = caret.positionInBlock();
  if (caret.hasSelection() || (at < line.size() && !line[at].isSpace())) return {};
  qsizetype begin = at;
  while (begin > 0 && !line[begin - 1].isSpace()) --begin;
  return line.mid(begin, at - begin);
}

void WordCompletion::propose() {
  QAbstractItemView& list = *completer_.popup();
  const QString word = typed();
  completer_.setCompletionPrefix(word);
  const bool helps = word.size() >= least_letters && completer_.completionCount() > 0 && !words_.stringList().contains(word);
  if (!helps || !text_.hasFocus()) return list.hide();
  QRect place = text_.cursorRect();
  place.setWidth(list.sizeHintForColumn(0) + list.verticalScrollBar()->sizeHint().width() + list.fontMetrics().averageCharWidth() * 2);
  completer_.complete(place);
  list.setCurrentIndex(completer_.completionModel()->index(0, 0));
}

void WordCompletion::take(const QString& word) { text_.textCursor().insertText(word.mid(completer_.completionPrefix().size())); }

}  // namespace statescope
