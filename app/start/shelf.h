// What the start page offers: lessons, the models and prompts that ship, and what was open before; and what each of them is for.
#pragma once

#include <QString>
#include <QStringList>
#include <filesystem>
#include <functional>
#include <vector>

#include "app/lesson/lesson_page.h"

namespace statescope {

enum class Shelf { recent, lessons, models, prompts };

struct ShelfItem {
  Shelf shelf = Shelf::models;
  std::filesystem::path path;
  QString name;
  QString about;  // what it is for, in a line; of a model empty until tell_about
};

/// In the order of Shelf.
std::vector<ShelfItem> shelf_items(const std::vector<LessonEntry>& lessons, const QStringList& recent);

/// What is known of each shipped model from its own file, the scores beside it and the lessons that show it, told one by one; false from
/// `tell` ends it. Takes a second or so.
void tell_about_models(const std::vector<std::filesystem::path>& models,
                       const std::function<bool(const std::filesystem::path& model, const QString& about)>& tell);

/// The shipped model that reads a prompt where none is open: the one that the program shows first, or, of texts that are no such needle
/// prompt, one that reads any text byte by byte.
std::filesystem::path reader_of(const std::filesystem::path& prompt);

}  // namespace statescope
