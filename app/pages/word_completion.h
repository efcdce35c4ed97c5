// What a word that is being typed may become, of a model that reads words of a list alone.
#pragma once

#include <QCompleter>
#include <QPlainTextEdit>
#include <QStringListModel>

namespace statescope {

class WordCompletion : public QObject {
  Q_OBJECT

 public:
  /// Enter or Tab puts the marked one into `text`, Escape none.
  explicit WordCompletion(QPlainTextEdit& text);

  /// All that the model knows; none: nothing is proposed.
  void set_words(QStringList words);
  bool is_shown() const { return completer_.popup()->isVisible(); }

 private:
  QString typed() const;
  void propose();
  void take(const QString& word);

  QPlainTextEdit& text_;
  QStringListModel words_;
  mutable QCompleter completer_;
};

}  // namespace statescope
