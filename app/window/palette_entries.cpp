#include "app/window/palette_entries.h"

#include <QCoreApplication>

#include "app/assets.h"
#include "app/controls/typed_number.h"
#include "app/lesson/lesson_page.h"
#include "app/runs/breakpoints.h"
#include "app/window/main_window.h"
#include "views/parts.h"

namespace statescope {
namespace {

constexpr std::size_t most_found = 20;

void add_commands(MainWindow& window, std::vector<PaletteEntry>& into) {
  for (const Actions::Row& row : window.actions().rows()) {
    const QString menu = title_of(row.command->menu);
    const QString kind = row.command->submenu ? menu + " · " + command_words(row.command->submenu) : menu;
    into.push_back({row.action->text(), kind, row.action->shortcut().toString(QKeySequence::NativeText),
                    [action = row.action] { action->trigger(); }});
  }
}

/// By which people look for a view.
QString other_words(std::string_view view) {
  if (view == "needle") return Palette::tr("survival curve, cause of death, what took it, forgotten");
  if (view == "needle_grid") return Palette::tr("needle in a haystack, depth and length, recall");
  if (view == "predictions") return Palette::tr("next token, answer, logits, probabilities");
  if (view == "state") return Palette::tr("memory, heatmap, matrix");
  if (view == "attention") return Palette::tr("attention map, what it reads");
  return {};
}

void add_views(MainWindow& window, std::vector<PaletteEntry>& into) {
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == strip_view) continue;
    const QString title = view_words(row.title), question = view_words(row.question);
    into.push_back(
        {title, Palette::tr("show here · %1").arg(question), {}, [&window, &row] { window.show_view(row); }, other_words(row.id)});
    const std::unique_ptr<View> view = row.make();
    const std::span<const std::string_view> modes = view->modes();
    for (std::size_t mode = 0; mode < modes.size(); ++mode)
      into.push_back({Palette::tr("%1: %2").arg(title, view_words(modes[mode])), Palette::tr("show here"), {}, [&window, &row, mode] {
                        window.show_view(row, mode);
                      }});
    if (!window.stage().is_full())
      into.push_back(
          {Palette::tr("Add %1").arg(title), Palette::tr("one more view"), {}, [&window, &row] { window.stage().add_view(row); }});
  }
}

void add_places(MainWindow& window, std::vector<PaletteEntry>& into) {
  Navigator& navigator = window.navigator();
  if (!navigator.run()) return;
  const auto add = [&](const QString& text, const QString& kind, std::optional<std::int64_t> CursorMove::*field, std::int64_t value) {
    into.push_back({text, kind, {}, [&navigator, field, value] {
                      CursorMove move;
                      move.*field = value;
                      navigator.move(move);
                    }});
  };
  const std::vector<LayerInfo>& layers = navigator.run()->model.layers;
  for (std::size_t i = 0; i < layers.size(); ++i)
    add(Palette::tr("Layer %1").arg(i), QString::fromStdString(layers[i].mixer), &CursorMove::layer, static_cast<std::int64_t>(i));
  const LayerInfo* layer = navigator.layer_info();
  if (!layer) return;
  for (std::int64_t head = 0; head < layer->most_heads(); ++head)
    add(Palette::tr("Head %1").arg(head), Palette::tr("of this layer"), &CursorMove::head, head);
  for (std::int64_t slot = 0; slot < layer->slots(); ++slot)
    add(Palette::tr("Partition %1").arg(QString::fromStdString(layer->slot_names[static_cast<std::size_t>(slot)])),
        Palette::tr("of the state"), &CursorMove::slot, slot);
}

QString name_of(const std::filesystem::path& path) { return QString::fromStdString(path.stem().string()); }

/// The shipped checkpoints, to open and, where there is a place for one more, to compare with; and the shipped prompts.
void add_shipped(MainWindow& window, std::vector<PaletteEntry>& into) {
  const std::vector<std::filesystem::path> checkpoints = shipped_checkpoints();
  for (const std::filesystem::path& path : checkpoints)
    into.push_back(
        {Palette::tr("Open %1").arg(name_of(path)), Palette::tr("shipped model"), {}, [&window, path] { window.open_shipped(path); }});
  for (const std::filesystem::path& path : shipped_prompts())
    into.push_back({Palette::tr("Read the prompt %1").arg(name_of(path)), Palette::tr("shipped prompt"), {}, [&window, path] {
                      window.open_path(path);
                    }});
  if (window.comparison().is_full()) return;
  for (const std::filesystem::path& path : checkpoints)
    into.push_back({Palette::tr("Compare with %1").arg(name_of(path)), Palette::tr("shipped model"), {}, [&window, path] {
                      window.compare_with(path);
                    }});
}

}  // namespace

std::vector<PaletteEntry> palette_entries(MainWindow& window) {
  std::vector<PaletteEntry> entries;
  add_commands(window, entries);
  add_views(window, entries);
  add_places(window, entries);
  add_shipped(window, entries);
  for (const LessonEntry& entry : window.lesson_page().entries())
    entries.push_back(
        {entry.title, Palette::tr("lesson · %1").arg(entry.about), {}, [&window, file = entry.file] { window.open_lesson(file); }});
  for (const QString& path : window.recent_paths())
    entries.push_back({path, Palette::tr("recent"), {}, [&window, path] { window.open_path(path.toStdString()); }});
  return entries;
}

std::vector<PaletteEntry> tokens_found(MainWindow& window, const QString& typed) {
  const std::shared_ptr<const RunInfo> run = window.navigator().run();
  if (!run) return {};
  QString wanted = typed;
  if (wanted.startsWith("go to ", Qt::CaseInsensitive)) wanted = wanted.mid(6).trimmed();
  std::vector<PaletteEntry> found;
  const auto add = [&](std::int64_t token) {
    QStringList around;
    for (std::int64_t t = std::max<std::int64_t>(0, token - 3); t < std::min(token + 5, std::ssize(run->tokens)); ++t)
      around.push_back(QString::fromStdString(visible_text(run->tokens[static_cast<std::size_t>(t)].text)).remove(QChar(0x2423)));
    found.push_back({Palette::tr("Go to token %1: %2").arg(token).arg(around.join(" ")), Palette::tr("text"), {}, [&window, token] {
                       window.go_to_token(token);
                     }});
  };
  const auto tokens = std::ssize(run->tokens);
  if (const auto number = typed_whole(wanted); number && *number >= 0 && *number < tokens) add(*number);
  const std::string text = wanted.toStdString();
  for (std::int64_t i = 1; i <= tokens && found.size() < most_found; ++i) {
    const std::int64_t token = (window.navigator().cursor().token + i) % tokens;
    if (text_begins_at(*run, token, text)) add(token);
  }
  return found;
}

}  // namespace statescope
