// What a figure was made from: the files themselves.
#include <QCryptographicHash>
#include <QImageReader>
#include <algorithm>

#include "app/figure/provenance.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/error.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

void add_file(QCryptographicHash& hash, const fs::path& path) {
  const MappedFile file(path);
  constexpr std::size_t piece = 1 << 20;
  for (std::string_view rest = file.text(); !rest.empty(); rest.remove_prefix(std::min(piece, rest.size())))
    hash.addData(QByteArrayView(rest.data(), static_cast<qsizetype>(std::min(piece, rest.size()))));
  file.require_whole();
}

std::string sha256_of(const fs::path& path) {
  QCryptographicHash hash(QCryptographicHash::Sha256);
  if (!fs::is_directory(path)) {
    add_file(hash, path);
  } else {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      hash.addData(QByteArray::fromStdString(file.filename().string()));
      add_file(hash, file);
    }
  }
  return hash.result().toHex().toStdString();
}

}  // namespace

std::vector<FigureSource> sources_of(const FigureSpec& spec, FigureRuns& runs) {
  std::vector<FigureSource> sources;
  const auto add = [&](const std::string& name, const char* kind, const std::string& config) {
    const auto known = std::ranges::find(sources, name, &FigureSource::name);
    if (known == sources.end()) sources.push_back({name, sha256_of(runs.file(name, kind)), config});
  };
  for (const FigurePanel& panel : spec.panels) {
    for (const std::string& name : panel.checkpoints) add(name, "checkpoints", runs.model(name)->checkpoint().config);
    for (const std::string& name : panel.data) add(name, "scores", "");
  }
  return sources;
}

Provenance read_provenance(const fs::path& figure) {
  const std::string name = figure.string();
  if (figure.extension() != ".png") {
    const MappedFile file(figure);
    return parse_provenance(provenance_in(file.text(), name), name);
  }
  QImageReader reader(QString::fromStdString(name), "png");
  const QString text = reader.text(kProvenanceText);
  if (text.isEmpty()) fail(figure, reader.canRead() ? "this picture does not say what it was made from" : "this is not a PNG");
  return parse_provenance(text.toStdString(), name);
}

}  // namespace statescope
