// The left side: the list of lessons, or the step of the one that is on its way.
#pragma once

#include <QAction>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QStackedWidget>
#include <QToolButton>
#include <functional>

#include "app/lesson/player.h"

namespace statescope {

/// A lesson as the list, the menu and the palette name it.
struct LessonEntry {
  std::filesystem::path file;
  QString title;  // of a broken file: its name
  QString about;  // what it teaches and how long it takes; of a broken file: what is wrong
};

class LessonPage : public QStackedWidget {
  Q_OBJECT

 public:
  /// An action of the window by its command's id.
  using FindAction = std::function<QAction*(std::string_view id)>;
  LessonPage(LessonPlayer& player, const LessonProgress& progress, const FindAction& action, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// Width: of the page; none: all the room there is. Low: the step's text has the page for itself, its buttons follow it.
  void set_room(std::optional<int> width, bool low);
  /// Those that ship with the program.
  const std::vector<LessonEntry>& entries() const { return entries_; }
  /// The one after that on its way; null: there is none.
  const LessonEntry* next_lesson() const;
  /// Its text is somewhere else: what to look at, questions and answers stay.
  void set_slides(bool slides);
  /// Gives the list the keyboard.
  void show_list();
  /// How far each lesson has come stands in the list.
  void show_progress();
  /// How the run's answer stands to what was predicted.
  static QString verdict(const QString& answer, std::optional<std::size_t> predicted, std::optional<std::size_t> right);
  /// Of LessonPlayer::broken_claims, which are some.
  static QString broken_words(const std::vector<std::string>& broken);
  /// After the reader has changed keys.
  void show_keys();

 Q_SIGNALS:
  void chosen(const std::filesystem::path& file);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  QWidget* make_list();
  QWidget* make_step();
  void enter();
  void show_step();
  void show_next();
  void put_place_above(bool above);
  void fit_words();
  int line_room() const;
  int text_room() const;
  void show_question();
  void show_reveal();
  void make_choices();
  void list_steps();

  LessonPlayer& player_;
  const LessonProgress& progress_;
  FindAction action_;
  std::vector<LessonEntry> entries_;
  bool slides_ = false;
  QListWidget* list_ = nullptr;
  QLabel* title_ = nullptr;                         // of the lesson
  QToolButton* place_ = nullptr;                    // which step; its menu lists them
  QHBoxLayout *top_ = nullptr, *bottom_ = nullptr;  // beside the title; of the buttons
  QToolButton* leave_ = nullptr;
  QScrollArea* scroll_ = nullptr;                   // what follows scrolls
  QLabel *heading_ = nullptr, *caption_ = nullptr;  // of the step
  QLabel *prose_ = nullptr, *question_ = nullptr;
  QWidget* choices_ = nullptr;
  QList<QPushButton*> buttons_;
  QLabel *verdict_ = nullptr, *reveal_ = nullptr, *broken_ = nullptr;
  QWidget* buttons_below_ = nullptr;
  QPushButton *picture_ = nullptr, *back_ = nullptr, *next_ = nullptr, *go_on_ = nullptr;
};

}  // namespace statescope
