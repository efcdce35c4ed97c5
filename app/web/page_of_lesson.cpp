#include "app/web/page_of_lesson.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/common/prompts.h"
#include "app/lesson/lesson_page.h"
#include "app/web/lesson_reader.h"
#include "app/web/prose.h"
#include "views/parts.h"

namespace statescope {
namespace {

constexpr double reading_share = 0.1;  // of all the time that it takes

PromptInput prompt_of(const Lesson& lesson, const LessonPicture& picture) {
  if (picture.prompt.empty()) return load_prompt({.text = picture.text, .ids = {}, .file = {}});
  return load_prompt({.text = {}, .ids = {}, .file = lesson_asset(lesson, picture.prompt, "prompts").string()});
}

/// Numbers of views and runs that pictures have in common.
class Collection {
 public:
  explicit Collection(const Lesson& lesson) : lesson_(lesson) {}

  PagePicture add(const ReadPicture& read) {
    PagePicture picture{
        .run = run_of(read), .views = {}, .token = read.own.cursor.token, .play = read.play, .caption = read.picture.caption};
    for (const ViewLook& look : read.picture.views) {
      const std::unique_ptr<View> view = look.view->make();
      view->set_mode(look.mode);
      const bool compares = view->compares() && read.beside;
      picture.views.push_back(view_of(read, look, read.own, compares ? read.beside->checkpoint.string() : ""));
      if (read.beside) picture.letters.emplace_back("A");
      if (!read.beside || compares) continue;
      picture.views.push_back(view_of(read, look, *read.beside, ""));
      picture.letters.emplace_back("B");
    }
    return picture;
  }

  struct Wanted {
    FigurePanel panel;
    TokenPair shown;  // from the first to the last token that a picture has it at
  };
  const std::vector<Wanted>& views() const { return views_; }
  const std::vector<RunInfo>& runs() const { return runs_; }

 private:
  std::size_t run_of(const ReadPicture& read) {
    const std::string key = fmt::format("{}\n{}\n{}", read.own.checkpoint.string(), read.picture.prompt, read.picture.text);
    const auto known = std::ranges::find(run_keys_, key);
    if (known != run_keys_.end()) return static_cast<std::size_t>(known - run_keys_.begin());
    run_keys_.push_back(key);
    runs_.push_back(*read.run);
    return runs_.size() - 1;
  }

  std::size_t view_of(const ReadPicture& read, const ViewLook& look, const ReadPlace& place, const std::string& other) {
    const Cursor& at = place.cursor;
    FigurePanel panel;
    panel.view = look.view->id;
    panel.checkpoints = {place.checkpoint.string()};
    if (!other.empty()) panel.checkpoints.push_back(other);
    panel.input = prompt_of(lesson_, read.picture);
    panel.layer = at.layer;
    panel.head = at.head;
    panel.slot = at.slot;
    panel.row = at.row;
    panel.column = at.column;
    if (at.reference >= 0) panel.reference = at.reference;
    const std::unique_ptr<View> view = look.view->make();
    if (look.mode < view->modes().size()) panel.mode = view->modes()[look.mode];
    panel.knob = look.knob;
    const std::string key =
        fmt::format("{} {} {} {} {} {} {} {} {} {}\n{}\n{}", panel.view, joined(panel.checkpoints, " "), at.layer, at.head, at.slot, at.row,
                    at.column, at.reference, look.mode, look.knob.value_or(0), read.picture.prompt, read.picture.text);
    const auto index = static_cast<std::size_t>(std::ranges::find(view_keys_, key) - view_keys_.begin());
    if (index == views_.size()) {
      view_keys_.push_back(key);
      views_.push_back({std::move(panel), {at.token, at.token}});
    }
    TokenPair& shown = views_[index].shown;
    shown.first = std::min({shown.first, at.token, read.play.value_or(at.token)});
    shown.last = std::max(shown.last, at.token);
    return index;
  }

  const Lesson& lesson_;
  std::vector<std::string> run_keys_, view_keys_;
  std::vector<RunInfo> runs_;
  std::vector<Wanted> views_;
};

PageQuestion question_of(const LessonQuestion& asked, const ReadStep& read) {
  PageQuestion question{.words = asked.words, .choices = {}, .right = read.right, .open = {}, .as_said = {}, .not_as_said = {}};
  for (const LessonChoice& choice : asked.choices) question.choices.push_back(choice.words);
  const QString answer = QString::fromStdString(read.answer);
  const auto verdict = [&](std::optional<std::size_t> predicted, std::optional<std::size_t> right) {
    return LessonPage::verdict(answer, predicted, right).toStdString();
  };
  question.open = verdict({}, 0);
  question.as_said = verdict(0, 0);
  question.not_as_said = verdict(1, 0);
  return question;
}

}  // namespace

Page page_of_lesson(const Lesson& lesson, Recorder& recorder) {
  FigureRuns& runs = recorder.runs();
  const std::vector<ReadStep> read = read_lesson(lesson, runs.device(), [&runs](std::size_t step, std::size_t steps) {
    return runs.goes_on(reading_share * static_cast<double>(step) / static_cast<double>(steps),
                        fmt::format("step {} of {}", step + 1, steps));
  });
  Page page{.title = lesson.title, .about = lesson.about, .runs = {}, .views = {}, .picture = {}, .steps = {}, .theme = {}};
  Collection collection(lesson);
  for (std::size_t i = 0; i < read.size(); ++i) {
    const ReadStep& one = read[i];
    PageStep step{.title = one.title,
                  .prose = html_of_markdown(one.prose),
                  .reveal = html_of_markdown(one.reveal),
                  .question = {},
                  .broken = one.broken.empty() ? "" : LessonPage::broken_words(one.broken).toStdString(),
                  .picture = collection.add(one.picture),
                  .revealed = collection.add(one.revealed)};
    if (const auto& asked = lesson.steps[i].question) step.question = question_of(*asked, one);
    page.steps.push_back(std::move(step));
  }
  page.picture = page.steps.front().picture;
  page.runs = collection.runs();
  recorder.expect(collection.views().size());
  for (const auto& [panel, shown] : collection.views()) page.views.push_back(recorder.record(panel, shown));
  return page;
}

}  // namespace statescope
