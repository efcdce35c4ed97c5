// What a figure was made from: the files themselves.
#include <fcntl.h>
#include <unistd.h>

#include <QImageReader>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "app/figure/provenance.h"
#include "engine/checkpoint/descriptor.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/error.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytesOfFigure = std::size_t{1} << 30;  // of a figure

}  // namespace

std::vector<FigureSource> sources_of(const FigureSpec& spec, FigureRuns& runs) {
  std::vector<FigureSource> sources;
  const auto is_new = [&](const std::string& name) { return std::ranges::find(sources, name, &FigureSource::name) == sources.end(); };
  for (const FigurePanel& panel : spec.panels) {
    for (const std::string& name : panel.checkpoints) {
      if (!is_new(name)) continue;
      CheckpointFacts facts = runs.made_from(name);
      sources.push_back({name, std::move(facts.sha256), std::move(facts.config)});
    }
    for (const std::string& name : panel.data) {
      if (is_new(name)) sources.push_back({name, sha256_of(runs.file(name, "scores")), ""});
    }
  }
  return sources;
}

namespace {

/// Under other names.
template <class Rename>
void rename_files(Provenance& provenance, const Rename& rename) {
  for (FigureSource& source : provenance.sources) source.name = rename(source.name);
  for (FigurePanel& panel : provenance.spec.panels) {
    for (std::string& name : panel.checkpoints) name = rename(name);
    for (std::string& name : panel.data) name = rename(name);
  }
}

/// "gla.h5" of "/home/anna/gla.h5", "gla" of "runs/gla/".
std::string own_name(const std::string& name) {
  const fs::path path = fs::path(name).lexically_normal();
  return (path.has_filename() ? path.filename() : path.parent_path().filename()).string();
}

/// A config without what tells where it lay.
std::string without_origin(const std::string& config) {
  nlohmann::json value = nlohmann::json::parse(config, nullptr, false);
  if (!value.is_object()) return config;
  for (const char* key : {"_name_or_path", "name_or_path"}) value.erase(key);
  return value.dump();
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder.empty() ? fs::path(".") : folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const bool holds_model = entry->is_directory(ignored) && fs::exists(entry->path() / "config.json", ignored);
    const std::string ending = entry->path().extension().string();
    if (holds_model || ending == ".h5" || ending == ".json" || ending == ".csv") files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

/// The first of that digest; empty: there is none.
fs::path file_of_digest(const std::string& sha256, const std::string& name, const std::vector<fs::path>& folders) {
  std::vector<fs::path> candidates;
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> more = files_in(folder);
    candidates.insert(candidates.end(), more.begin(), more.end());
  }
  const fs::path ending = fs::path(name).extension();
  std::erase_if(candidates, [&](const fs::path& path) { return path.extension() != ending; });
  std::ranges::stable_partition(candidates, [&](const fs::path& path) { return path.filename() == fs::path(name).filename(); });
  const auto found = std::ranges::find_if(candidates, [&](const fs::path& path) { return sha256_of(path) == sha256; });
  return found == candidates.end() ? fs::path() : *found;
}

/// libpng says what is wrong with a file straight on standard error; an error of ours says it once.
class QuietErrors {
 public:
  QuietErrors() : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (before_.get() >= 0 && nowhere.get() >= 0) ::dup2(nowhere.get(), STDERR_FILENO);
  }
  ~QuietErrors() {
    if (before_.get() >= 0) ::dup2(before_.get(), STDERR_FILENO);
  }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  Descriptor before_;
};

QString text_of_png(const std::string& name) {
  const QuietErrors quiet;
  QImageReader reader(QString::fromStdString(name), "png");
  return reader.text(kProvenanceText);
}

}  // namespace

Provenance anonymous(Provenance provenance) {
  rename_files(provenance, own_name);
  for (FigureSource& source : provenance.sources) source.config = without_origin(source.config);
  provenance.command = "statescope figure";
  return provenance;
}

Provenance found_again(Provenance provenance, const fs::path& folder) {
  std::vector<fs::path> folders{folder, fs::path(".")};
  std::ranges::copy(checkpoint_places(), std::back_inserter(folders));
  try {
    folders.push_back(assets_folder() / "scores");
  } catch (const Error&) {
  }
  std::map<std::string, std::string> names;
  for (const FigureSource& source : provenance.sources) {
    const bool is_checkpoint = std::ranges::any_of(
        provenance.spec.panels, [&](const FigurePanel& panel) { return std::ranges::count(panel.checkpoints, source.name) > 0; });
    try {
      figure_file(source.name, folder, is_checkpoint ? "checkpoints" : "scores");
    } catch (const Error&) {
      if (const fs::path found = file_of_digest(source.sha256, source.name, folders); !found.empty()) names[source.name] = found.string();
    }
  }
  rename_files(provenance, [&](const std::string& name) { return names.contains(name) ? names[name] : name; });
  return provenance;
}

Provenance read_provenance(const fs::path& figure) {
  const std::string name = figure.string();
  if (figure.extension() != ".png") {
    const MappedFile file(figure);
    return parse_provenance(provenance_in(file.text(), name), name);
  }
  const bool is_png = read_file(figure, kMostBytesOfFigure).starts_with("\x89PNG\r\n\x1a\n");
  const QString text = text_of_png(name);
  if (text.isEmpty()) fail(figure, is_png ? "this picture does not say what it was made from" : "this is not a PNG");
  return parse_provenance(text.toStdString(), name);
}

}  // namespace statescope
