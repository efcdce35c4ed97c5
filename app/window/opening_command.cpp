#include "app/window/opening_command.h"

#include <fmt/format.h>

#include <QApplication>
#include <QClipboard>
#include <algorithm>

#include "app/assets.h"
#include "app/common/prompts.h"
#include "app/inspect/window_command.h"
#include "app/window/main_window.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

std::string path_word(const fs::path& path) { return shell_word(fs::absolute(path).lexically_normal().string()); }

bool same(const PromptInput& a, const PromptInput& b) {
  const auto span = [](const TextSpan& x, const TextSpan& y) { return x.kind == y.kind && x.begin == y.begin && x.end == y.end; };
  return a.text == b.text && a.ids == b.ids && a.generate == b.generate && a.expected == b.expected &&
         std::ranges::equal(a.spans, b.spans, span);
}

/// The shipped or recent file that holds just this; empty: there is none.
fs::path file_of(const PromptInput& prompt, const QStringList& recent) {
  std::vector<fs::path> files = shipped_prompts();
  for (const QString& path : recent)
    if (const fs::path file = path.toStdString(); file.extension() == ".json" || file.extension() == ".txt") files.push_back(file);
  const auto holds = [&prompt](const fs::path& file) {
    try {
      return same(load_prompt({.text = {}, .ids = {}, .file = file.string()}), prompt);
    } catch (const std::exception&) {
      return false;  // it is gone, or something else by now
    }
  };
  const auto found = std::ranges::find_if(files, holds);
  return found == files.end() ? fs::path() : *found;
}

bool comes_by_itself(const PromptInput& prompt, const fs::path& checkpoint) {
  try {
    return same(first_prompt({}, checkpoint.string()), prompt);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

OpeningCommand opening_command(const MainWindow& window) {
  const Navigator& navigator = window.navigator();
  const RunInfo* const run = navigator.run().get();
  if (!run) return {{}, MainWindow::tr("Open a checkpoint first")};
  if (navigator.facts().is_elsewhere) return {{}, MainWindow::tr("This is open on an engine on another machine: --engine leads there")};
  std::string line = program_word() + " " + path_word(navigator.checkpoint());
  for (const auto& peer : window.comparison().peers())
    if (!peer->checkpoint().empty()) line += " " + path_word(peer->checkpoint());
  QStringList lacks;
  const PromptInput prompt = navigator.prompt();
  if (!comes_by_itself(prompt, navigator.checkpoint())) {
    const fs::path file = file_of(prompt, window.recent_paths());
    if (file.empty() && (prompt.in_chat || prompt.text.empty()))
      return {{}, MainWindow::tr("No command line has this prompt in it: save the session, or open the prompt from a file")};
    line += file.empty() ? " --text " + shell_word(prompt.text) : " --prompt " + path_word(file);
    if (file.empty() && !prompt.spans.empty()) lacks += MainWindow::tr("what is marked in the text");
  }
  const Cursor& at = navigator.cursor();
  line += fmt::format(" --token {} --layer {} --head {} --slot {}", at.token, at.layer, at.head, at.slot);
  for (const ViewPanel* panel : window.stage().panels()) {
    const std::span<const std::string_view> modes = panel->view().modes();
    const std::size_t mode = panel->view().mode();
    const std::string id(panel->row().id);
    line += " --view " + shell_word(mode > 0 && mode < modes.size() ? fmt::format("{}/{}", id, modes[mode]) : id);
  }
  if (run->branch.number > 0) lacks += MainWindow::tr("interventions");
  const QString remark = lacks.isEmpty() ? QString() : MainWindow::tr("It does not bring: %1").arg(lacks.join(QStringLiteral(", ")));
  return {line, remark};
}

void copy_opening_command(MainWindow& window) {
  const OpeningCommand command = opening_command(window);
  if (command.line.empty()) return window.say(command.remark);
  QApplication::clipboard()->setText(QString::fromStdString(command.line));
  const QString copied = MainWindow::tr("Copied the command that opens this");
  window.say(command.remark.isEmpty() ? copied : copied + QStringLiteral(". ") + command.remark);
}

}  // namespace statescope
