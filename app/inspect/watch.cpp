#include "app/inspect/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/error.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

std::string stamp_of(const fs::path& file, std::error_code& gone) {
  const auto time = fs::last_write_time(file, gone).time_since_epoch().count();
  return fmt::format("{} {} {};", file.string(), fs::file_size(file, gone), time);
}

/// Names, sizes and times of a checkpoint's files; empty where one went away meanwhile.
std::string stamp(const std::string& path) {
  std::error_code gone;
  if (!fs::is_directory(path)) {
    const std::string only = stamp_of(path, gone);
    return gone ? "" : only;
  }
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, gone), end; !gone && entry != end; entry.increment(gone)) {
    if (entry->is_regular_file(gone)) files.push_back(stamp_of(entry->path(), gone));
  }
  std::ranges::sort(files);
  std::string all;
  for (const std::string& file : files) all += file;
  return gone ? "" : all;
}

}  // namespace

void Watch::read(const FoundCheckpoint& found, Known& known, Look& look) {
  try {
    const std::string digest = name_of_content(*open_checkpoint(found.path));
    if (std::optional<Inspected> kept = kept_ && !results_.contains(digest) ? kept_->find(digest) : std::nullopt) {
      kept->checkpoint = found.path;
      if (found.steps > 0) kept->steps = found.steps;
      look.known.push_back(*kept);
      results_.emplace(digest, std::move(*kept));
    } else if (!results_.contains(digest)) {
      Inspected inspected = inspect_(found);
      if (stamp(found.path) != known.stamp) return;  // replaced while it was read: another time
      if (kept_) kept_->keep(digest, inspected);
      look.fresh.push_back(inspected);
      results_.emplace(digest, std::move(inspected));
    }
    known.digest = digest;
    look.changed = true;
  } catch (const Error& error) {
    const std::string why = error.what();
    look.skipped.push_back(why.find(found.path) == std::string::npos ? found.path + ": " + why : why);
  }
}

Watch::Look Watch::look(const std::vector<std::string>& given) {
  Look look;
  FoundCheckpoints found = find_checkpoints(given);
  for (const std::string& why : found.skipped) {
    if (std::exchange(known_[why].stamp, "named").empty()) look.skipped.push_back(why);
  }
  for (const FoundCheckpoint& one : found.checkpoints) {
    Known& known = known_[one.path];
    const std::string now = stamp(one.path);
    if (now.empty() || known.stamp != now) {
      look.changed = look.changed || !known.digest.empty();
      known = {.stamp = now, .digest = {}};  // new, or being written: at the next look
    } else if (known.digest.empty() && !known.refused) {
      const std::size_t skipped = look.skipped.size();
      read(one, known, look);
      known.refused = look.skipped.size() > skipped;
    }
  }
  const auto paths = [](const std::vector<FoundCheckpoint>& all) {
    std::vector<std::string> names;
    for (const FoundCheckpoint& one : all) names.push_back(one.path);
    return names;
  };
  look.changed = look.changed || paths(there_) != paths(found.checkpoints);
  there_ = std::move(found.checkpoints);
  std::vector<FoundCheckpoint> seen = there_;
  for (const FoundCheckpoint& before : seen_) {
    const auto known = known_.find(before.path);
    if (is_there(before) || known == known_.end() || known->second.digest.empty()) continue;
    seen.insert(std::ranges::find_if(seen, [&](const FoundCheckpoint& one) { return comes_before(before, one); }), before);
  }
  seen_ = std::move(seen);
  return look;
}

bool Watch::is_there(const FoundCheckpoint& checkpoint) const {
  return std::ranges::find(there_, checkpoint.path, &FoundCheckpoint::path) != there_.end();
}

std::vector<Inspected> Watch::results() const {
  std::vector<Inspected> all;
  for (const FoundCheckpoint& one : seen_) {
    const auto known = known_.find(one.path);
    const auto result = known == known_.end() ? results_.end() : results_.find(known->second.digest);
    if (result == results_.end()) continue;
    all.push_back(result->second);
    all.back().checkpoint = one.path;
    if (one.steps > 0) all.back().steps = one.steps;
    if (!is_there(one)) all.back().notes.emplace_back("the checkpoint is no longer there");
  }
  return all;
}

}  // namespace statescope
