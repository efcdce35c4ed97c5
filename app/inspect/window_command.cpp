#include "app/inspect/window_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "engine/chat/values/unicode.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

/// $'…' of bash, zsh and POSIX 2024, for what cannot stand in plain quotes on one line.
std::string escaped_word(const std::string& word, bool is_text) {
  std::string quoted = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      quoted += "\\n";
    else if (c == '\'' || c == '\\')
      quoted += std::string("\\") + c;
    else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text))
      quoted += fmt::format("\\{:03o}", byte);
    else
      quoted += c;
  }
  return quoted + "'";
}

/// The view that shows an illness.
std::string_view view_of(Illness illness) {
  switch (illness) {
    case Illness::untrained:
      return "predictions";
    case Illness::memory_unwritten:
      return "writes";
    case Illness::forgets_at_once:
    case Illness::never_forgets:
      return "decay/Half-life";
    case Illness::memory_unread:
      return "attention";
    case Illness::routing_collapse:
    case Illness::dead_partition:
      return "routing";
    case Illness::head_gate_collapse:
      return "head_gates";
    case Illness::rank_collapse:
      return "spectrum";
    case Illness::duplicate_heads:
      return "similarity/Heads";
    case Illness::length_drift:
      return "spectrum/Norm along the run";
    case Illness::not_finite:
      break;
  }
  return "state";
}

/// The longest that is no longer than what the model was trained on, or, for what shows itself behind that, the longest of all.
std::size_t telling_sequence(const Inspected& inspected, Illness illness) {
  const bool any_length = illness == Illness::length_drift || illness == Illness::never_forgets || inspected.trained == 0;
  std::size_t best = 0;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < inspected.sequences.size(); ++i) {
    constexpr double about = 1.1;  // the unit of the length may be a word, of a token and a bit
    const std::int64_t tokens = inspected.sequences[i].tokens;
    if (!any_length && static_cast<double>(tokens) > about * static_cast<double>(inspected.trained)) continue;
    if (tokens > most) best = i, most = tokens;
  }
  return best;
}

std::optional<std::int64_t> number_of(const Diagnosis& diagnosis, std::string_view name) {
  const auto found = std::ranges::find(diagnosis.evidence, name, &std::pair<std::string, double>::first);
  return found == diagnosis.evidence.end() ? std::nullopt : std::optional(static_cast<std::int64_t>(found->second));
}

}  // namespace

std::string program_word() {
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  if (none) return "statescope";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path there = fs::path(folder) / "statescope";
    if (!folder.empty() && fs::exists(there, none)) return fs::equivalent(there, program, none) ? "statescope" : shell_word(program);
  }
  return shell_word(program);
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+%@";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  const bool is_text = chat::valid_utf8(word);
  const bool drives = std::ranges::any_of(word, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (drives || !is_text) return escaped_word(word, is_text);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

SeenAt seen_at(const Inspected& inspected, const Diagnosis& diagnosis) {
  SeenAt seen{.sequence = telling_sequence(inspected, diagnosis.illness), .place = {.view = std::string(view_of(diagnosis.illness))}};
  seen.place.layer = number_of(diagnosis, "layer");
  if (!diagnosis.heads.empty()) seen.place.head = diagnosis.heads.front();
  if (seen.sequence < inspected.sequences.size()) seen.place.token = inspected.sequences[seen.sequence].tokens - 1;
  if (diagnosis.illness == Illness::not_finite) seen.place.token = number_of(diagnosis, "token");
  return seen;
}

std::string place_words(const PlaceInRun& place) {
  std::string words;
  for (const auto& [option, value] :
       {std::pair("--layer", place.layer), std::pair("--head", place.head), std::pair("--token", place.token)}) {
    if (value) words += fmt::format("{}{} {}", words.empty() ? "" : " ", option, *value);
  }
  return words;
}

std::optional<WindowCommand> window_command_at(const Inspected& inspected, std::size_t sequence, const PlaceInRun& place) {
  if (sequence >= inspected.reread.size() || inspected.reread[sequence].empty()) return {};
  const std::string checkpoint =
      inspected.engine.empty() ? fs::absolute(inspected.checkpoint).lexically_normal().string() : inspected.checkpoint;
  return WindowCommand{
      .before = fmt::format("{} {}{}{}", program_word(), inspected.engine, inspected.engine.empty() ? "" : " ", shell_word(checkpoint)),
      .place = place_words(place),
      .after = fmt::format("--view {} {}", shell_word(place.view), inspected.reread[sequence])};
}

}  // namespace statescope
