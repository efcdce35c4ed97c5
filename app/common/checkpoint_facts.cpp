#include "app/common/checkpoint_facts.h"

#include <QCryptographicHash>
#include <algorithm>
#include <string_view>
#include <vector>

#include "app/common/own_task.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/error.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

void add_file(QCryptographicHash& hash, const fs::path& path, const std::function<bool()>& goes_on) {
  const MappedFile file(path);
  constexpr std::size_t piece = 1 << 20;
  for (std::string_view rest = file.text(); !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
    if (goes_on && !goes_on()) throw Cancelled();
    hash.addData(QByteArrayView(rest.data(), static_cast<qsizetype>(std::min(piece, rest.size()))));
  }
  file.require_whole();
}

}  // namespace

std::string sha256_of(const fs::path& path, const std::function<bool()>& goes_on) {
  QCryptographicHash hash(QCryptographicHash::Sha256);
  if (!fs::is_directory(path)) {
    add_file(hash, path, goes_on);
  } else {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      hash.addData(QByteArray::fromStdString(file.filename().string()));
      add_file(hash, file, goes_on);
    }
  }
  return hash.result().toHex().toStdString();
}

CheckpointFacts facts_of(const fs::path& checkpoint, const std::string& name, bool digest, const std::function<bool()>& goes_on) {
  const auto opened = open_checkpoint(checkpoint);
  CheckpointFacts facts{.config = opened->config, .sha256 = {}, .prompt = {}, .why_no_prompt = {}, .not_finite = {}};
  try {
    facts.prompt = own_prompt(*opened, name);
  } catch (const Error& error) {
    facts.why_no_prompt = error.what();
  }
  facts.not_finite = find_not_finite(*opened);
  if (digest) facts.sha256 = sha256_of(checkpoint, goes_on);
  return facts;
}

}  // namespace statescope
