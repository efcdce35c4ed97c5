#include "app/start/shelf.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "app/common/own_task.h"
#include "app/common/running.h"
#include "app/eval/scores_file.h"
#include "app/lesson/lesson.h"
#include "app/start/start_page.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::size_t most_of_prompt = 1'000'000;  // bytes

QString name_of(const std::filesystem::path& path) { return QString::fromStdString(path.stem().string()); }

/// How a prompt was made, as it says itself.
nlohmann::json cell_of(const std::filesystem::path& prompt) {
  if (prompt.extension() != ".json") return {};
  try {
    const auto parsed = nlohmann::json::parse(read_file(prompt, most_of_prompt), nullptr, false);
    return parsed.is_object() ? parsed.value("cell", nlohmann::json()) : nlohmann::json();
  } catch (const std::exception&) {
    return {};
  }
}

bool is_prose(const nlohmann::json& cell) { return cell.is_object() && cell.value("haystack", "") == "prose"; }

QString about_prompt(const std::filesystem::path& prompt) {
  const nlohmann::json cell = cell_of(prompt);
  if (!cell.is_object()) return {};
  const int needles = cell.value("needles", 0), length = cell.value("length", 0);
  const QString many = is_prose(cell) ? StartPage::tr("%1 needles in %2 bytes of English prose")
                                      : StartPage::tr("%1 needles in %2 words of generated filler");
  const QString one = is_prose(cell) ? StartPage::tr("one needle in %2 bytes of English prose")
                                     : StartPage::tr("one needle in %2 words of generated filler");
  return needles == 1 ? QString(one).replace("%2", QString::number(length)) : many.arg(needles).arg(length);
}

/// What a task asks of a model.
QString about_task(const std::string& task) {
  if (task == "niah") return StartPage::tr("finds needles in generated filler");
  if (task == "mqar") return StartPage::tr("recalls the values of keys");
  if (task == "prose") return StartPage::tr("finds needles in English prose, byte by byte");
  return {};
}

/// Of the task's easiest cell, which stands first.
QString score_words(const EvalCell& cell, double exact) {
  const QString percent = QString::number(100 * exact, 'f', 1);
  if (cell.task.name == "mqar") return StartPage::tr("%1 % right with %2 pairs").arg(percent).arg(cell.task.pairs);
  const bool prose = cell.task.haystack == "prose";
  return (prose ? StartPage::tr("%1 % right with %2 in %3 bytes") : StartPage::tr("%1 % right with %2 in %3 words"))
      .arg(percent)
      .arg(cell.task.needles == 1 ? StartPage::tr("1 needle") : StartPage::tr("%1 needles").arg(cell.task.needles))
      .arg(cell.task.length);
}

/// By the names of checkpoints.
std::map<std::string, QString> all_scores() {
  std::map<std::string, QString> scores;
  for (const char* task : {"niah", "mqar", "prose"}) {
    try {
      for (const CellScore& score : load_scores(assets_folder() / "scores" / (std::string(task) + ".json")))
        if (score.task)
          scores.try_emplace(std::filesystem::path(score.checkpoint).stem().string(), score_words(score.cell, score.task->exact.mean));
    } catch (const std::exception&) {
      continue;  // no scores: nothing is said of them
    }
  }
  return scores;
}

/// By the names of checkpoints: the titles of the lessons that show them.
std::map<std::string, QStringList> all_lessons() {
  std::map<std::string, QStringList> shown;
  for (const std::filesystem::path& file : shipped_lessons()) {
    try {
      const Lesson lesson = load_lesson(file);
      for (const LessonStep& step : lesson.steps)
        for (const std::string& checkpoint : {step.picture.checkpoint, step.picture.beside, step.revealed.beside}) {
          QStringList& titles = shown[std::filesystem::path(checkpoint).stem().string()];
          if (const QString title = QString::fromStdString(lesson.title); !titles.contains(title)) titles.push_back(title);
        }
    } catch (const std::exception&) {
      continue;  // the list of lessons says what is wrong with it
    }
  }
  return shown;
}

/// The kinds of memory of its layers.
QString memory_words(const ModelInfo& model) {
  QStringList kinds;
  for (const LayerInfo& layer : model.layers) {
    QString kind = QString::fromStdString(Engine::tr(layer.memory.c_str()));
    if (layer.partitions > 0) kind = StartPage::tr("%1 in %2 partitions").arg(kind).arg(layer.partitions);
    if (layer.head_gates) kind = StartPage::tr("%1, heads compete").arg(kind);
    if (!kinds.contains(kind)) kinds.push_back(kind);
  }
  return kinds.join(StartPage::tr(" and "));
}

QString about_model(const std::filesystem::path& path, const std::map<std::string, QString>& scores,
                    const std::map<std::string, QStringList>& lessons) {
  const std::string name = path.stem().string();
  QStringList words;
  try {
    const auto checkpoint = open_checkpoint(path);
    words += memory_words(load_model(checkpoint, {.name = "cpu"})->info());
    if (const std::optional<Training> training = training_of(*checkpoint)) words += about_task(training->task);
  } catch (const std::exception& error) {
    return QString::fromUtf8(error.what());
  }
  if (const auto score = scores.find(name); score != scores.end()) words += score->second;
  if (const auto shown = lessons.find(name); shown != lessons.end())
    words += shown->second.size() == 1 ? StartPage::tr("in the lesson %1").arg(shown->second.front())
                                       : StartPage::tr("in the lessons %1").arg(shown->second.join("; "));
  words.removeAll(QString());
  return words.join(QStringLiteral(" · "));
}

}  // namespace

std::vector<ShelfItem> shelf_items(const std::vector<LessonEntry>& lessons, const QStringList& recent) {
  std::vector<ShelfItem> items;
  for (const QString& path : recent) {
    const std::filesystem::path file(path.toStdString());
    items.push_back(
        {Shelf::recent, file, QString::fromStdString(file.filename().string()), QString::fromStdString(file.parent_path().string())});
  }
  for (const LessonEntry& lesson : lessons) items.push_back({Shelf::lessons, lesson.file, lesson.title, lesson.about});
  const std::filesystem::path first = default_run().checkpoint;
  std::vector<std::filesystem::path> models = shipped_checkpoints();
  std::ranges::stable_partition(models, [&](const std::filesystem::path& path) { return path == first; });
  for (const std::filesystem::path& path : models) items.push_back({Shelf::models, path, name_of(path), {}});
  for (const std::filesystem::path& path : shipped_prompts()) items.push_back({Shelf::prompts, path, name_of(path), about_prompt(path)});
  return items;
}

void tell_about_models(const std::vector<std::filesystem::path>& models,
                       const std::function<bool(const std::filesystem::path& model, const QString& about)>& tell) {
  const std::map<std::string, QString> scores = all_scores();
  const std::map<std::string, QStringList> lessons = all_lessons();
  for (const std::filesystem::path& model : models)
    if (!tell(model, about_model(model, scores, lessons))) return;
}

std::filesystem::path reader_of(const std::filesystem::path& prompt) {
  const nlohmann::json cell = cell_of(prompt);
  const bool filler = cell.is_object() && cell.value("task", "") == "niah" && !is_prose(cell);
  return filler ? default_run().checkpoint : assets_folder() / "checkpoints/prose/prose-sse-gla-n4k1.h5";
}

}  // namespace statescope
