#include "app/inspect/kept_results.h"

#include <fmt/format.h>

#include <QStandardPaths>
#include <QtGlobal>
#include <chrono>

#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/remote/wire.h"

namespace statescope {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigestSize = 16;       // in front of a file, of what follows
constexpr std::size_t kLargest = 256 << 20;   // bytes of a file
constexpr std::chrono::hours kKept{24 * 30};  // since it was used last
constexpr std::string_view kSuffix = ".inspection";

std::string digest_of(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.text();
}

}  // namespace

std::optional<Inspected> KeptResults::find(const std::string& checkpoint) const {
  const fs::path path = file(checkpoint).concat(kSuffix);
  std::error_code none;
  if (!fs::exists(path, none)) return {};
  try {
    const std::string bytes = read_file(path, kLargest);
    if (bytes.size() < kDigestSize || digest_of(std::string_view(bytes).substr(kDigestSize)) != bytes.substr(0, kDigestSize)) return {};
    const auto inspected = remote::unpack<Inspected>(std::string_view(bytes).substr(kDigestSize));
    fs::last_write_time(path, fs::file_time_type::clock::now(), none);  // used
    return inspected;
  } catch (const Error&) {
    return {};
  }
}

void KeptResults::keep(const std::string& checkpoint, const Inspected& inspected) const {
  const std::string bytes = remote::pack(inspected);
  try {
    fs::create_directories(folder_);
    const fs::path path = file(checkpoint).concat(kSuffix);
    Draft draft(path, true);
    OutputFile out(draft);
    out.write(digest_of(bytes));
    out.write(bytes);
    out.finish();
    draft.publish();
  } catch (const Error&) {  // a full disk, a folder that may not be written to
  } catch (const fs::filesystem_error&) {
  }
}

void KeptResults::forget_old() const {
  std::error_code gone;
  for (fs::directory_iterator entry(folder_, gone), end; !gone && entry != end; entry.increment(gone)) {
    std::error_code none;
    const auto age = fs::file_time_type::clock::now() - entry->last_write_time(none);
    if (!none && entry->path().extension() == kSuffix && age > kKept) fs::remove(entry->path(), none);
  }
}

std::string name_of_content(const Checkpoint& checkpoint) {
  const auto recipe = checkpoint.provenance.find("recipe.json");
  const std::string content = content_digest(checkpoint);
  return recipe == checkpoint.provenance.end() ? content : content + digest_of(recipe->second);
}

std::string reading_of(const InspectArguments& arguments) {
  Digest digest;
  const auto add = [&digest](std::string_view text) {
    digest.add(fmt::format("{}:", text.size()));
    digest.add(text);
  };
  // The program: a new one may read and judge otherwise.
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  add(fmt::format("{} {}", fs::file_size(program, none), fs::last_write_time(program, none).time_since_epoch().count()));
  add(fmt::format("{} {}", arguments.device.name, static_cast<int>(arguments.device.precision)));
  add(fmt::format("{}", arguments.samples));
  for (const std::int64_t length : arguments.lengths) add(fmt::format("length {}", length));
  const PromptArguments& prompt = arguments.prompt;
  add(prompt.text ? "text " + *prompt.text : "");
  add(prompt.chat ? "chat " + *prompt.chat : "");
  add(prompt.special ? "special" : "");
  for (const std::string& setting : prompt.chat_settings) add(setting);
  std::vector<std::string> files = arguments.prompts;
  for (const std::string* path : {&prompt.ids, &prompt.chat_file}) {
    if (!path->empty()) files.push_back(*path);
  }
  for (const std::string& path : files) {
    if (path == "-") return "";
    add(path);
    add(read_file(path, kLargest));
  }
  return digest.text();
}

std::optional<KeptResults> kept_results(const InspectArguments& arguments) {
  const std::string reading = reading_of(arguments);
  const QString cache = QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation);
  if (reading.empty() || cache.isEmpty() || qEnvironmentVariableIsSet("STATESCOPE_NO_SETTINGS")) return {};
  KeptResults kept(fs::path(cache.toStdString()) / "statescope" / "inspections", reading);
  kept.forget_old();
  return kept;
}

}  // namespace statescope
