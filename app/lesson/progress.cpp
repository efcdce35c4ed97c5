#include "app/lesson/progress.h"

#include <QUrl>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/lesson/lesson_page.h"

namespace statescope {
namespace {

using nlohmann::json;

QString key_of(const std::filesystem::path& lesson) {
  return "lessons/" + QString::fromLatin1(QUrl::toPercentEncoding(QString::fromStdString(lesson.filename().string())));
}

json to_json(const LessonMarks& marks) {
  json steps = json::array();
  for (const LessonMarks::Step& step : marks.steps)
    steps.push_back({{"done", step.done}, {"revealed", step.revealed}, {"predicted", step.predicted ? json(*step.predicted) : json()}});
  return {{"step", marks.step}, {"steps", steps}, {"notes", marks.notes}};
}

/// Throws what the library throws.
LessonMarks from_json(const json& value) {
  LessonMarks marks{.step = value.at("step").get<std::size_t>(), .steps = {}, .notes = value.at("notes")};
  for (const json& step : value.at("steps")) {
    const json& predicted = step.at("predicted");
    marks.steps.push_back({step.at("done").get<bool>(), step.at("revealed").get<bool>(),
                           predicted.is_null() ? std::nullopt : std::optional(predicted.get<std::size_t>())});
  }
  return marks;
}

}  // namespace

bool LessonMarks::is_finished() const { return !steps.empty() && std::ranges::all_of(steps, &Step::done); }

void LessonProgress::keep(const Lesson& lesson, const LessonMarks& marks) {
  if (settings_) settings_->setValue(key_of(lesson.file), QString::fromStdString(to_json(marks).dump()));
}

std::optional<LessonMarks> LessonProgress::of(const Lesson& lesson) const {
  if (!settings_) return {};
  try {
    LessonMarks marks = from_json(json::parse(settings_->value(key_of(lesson.file)).toString().toStdString()));
    bool fits = marks.steps.size() == lesson.steps.size() && marks.step < marks.steps.size();
    for (std::size_t i = 0; fits && i < marks.steps.size(); ++i) {
      const auto& question = lesson.steps[i].question;
      fits = !marks.steps[i].predicted || (question && *marks.steps[i].predicted < question->choices.size());
    }
    return fits ? std::optional(std::move(marks)) : std::nullopt;
  } catch (const json::exception&) {
    return {};
  }
}

QString LessonProgress::words(const std::filesystem::path& lesson) const {
  if (!settings_) return {};
  try {
    const LessonMarks marks = from_json(json::parse(settings_->value(key_of(lesson)).toString().toStdString()));
    if (marks.is_finished()) return LessonPage::tr("✓ done");
    return LessonPage::tr("up to step %1 of %2").arg(marks.step + 1).arg(marks.steps.size());
  } catch (const json::exception&) {
    return {};
  }
}

}  // namespace statescope
