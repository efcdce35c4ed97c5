#include "engine/session/session_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"

namespace statescope {
namespace {

using json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kFormat = "statescope-session";
constexpr int kVersion = 1;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31, kMostAtOnce = std::int64_t{1} << 20;
constexpr std::array<std::pair<SpanKind, const char*>, 3> kSpanKinds{
    {{SpanKind::needle, "needle"}, {SpanKind::question, "question"}, {SpanKind::answer, "answer"}}};

/// An object that has exactly the keys that it is asked for.
class Object {
 public:
  Object(const json& value, std::string name, const fs::path& path) : value_(value), name_(std::move(name)), path_(path) {
    if (!value_.is_object()) fail(path_, fmt::format("{} is not an object", name_));
  }

  const json& operator[](const char* key) {
    const auto found = value_.find(key);
    if (found == value_.end()) fail(path_, fmt::format("{} has no \"{}\"", name_, key));
    ++asked_;
    return *found;
  }
  bool has(const char* key) const { return value_.contains(key); }
  Object object(const char* key) { return {(*this)[key], key, path_}; }
  std::string text(const char* key) {
    const json& value = (*this)[key];
    if (!value.is_string()) wrong(key, "a text");
    return value.get<std::string>();
  }
  bool flag(const char* key) {
    const json& value = (*this)[key];
    if (!value.is_boolean()) wrong(key, "true or false");
    return value.get<bool>();
  }
  const fs::path& path() const { return path_; }
  std::string digest(const char* key) { return digest((*this)[key], key); }
  std::string digest(const json& value, const char* key) const {
    const auto hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (!value.is_string() || value.get_ref<const std::string&>().size() != 16 ||
        !std::ranges::all_of(value.get_ref<const std::string&>(), hexadecimal))
      wrong(key, "16 hexadecimal digits");
    return value.get<std::string>();
  }
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) { return integer((*this)[key], key, least, most); }
  std::int64_t integer(const json& value, const char* key, std::int64_t least, std::int64_t most) const {
    const bool fits =
        value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most) : value.is_number_integer();
    if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      wrong(key, fmt::format("an integer from {} to {}", least, most));
    return value.get<std::int64_t>();
  }
  double number(const char* key, double least, double most) {
    const json& value = (*this)[key];
    if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
      wrong(key, fmt::format("a number from {} to {}", least, most));
    return value.get<double>();
  }
  std::uint64_t unsigned_integer(const char* key) {
    const json& value = (*this)[key];
    if (!value.is_number_unsigned()) wrong(key, "an integer from 0 on");
    return value.get<std::uint64_t>();
  }
  const json& list(const char* key) {
    const json& value = (*this)[key];
    if (!value.is_array()) wrong(key, "a list");
    return value;
  }
  std::vector<std::int32_t> ids(const char* key) {
    std::vector<std::int32_t> ids;
    for (const json& id : list(key))
      ids.push_back(static_cast<std::int32_t>(integer(id, key, 0, std::numeric_limits<std::int32_t>::max())));
    return ids;
  }
  /// Its two members.
  std::pair<const json&, const json&> pair(const json& value, const char* key) const {
    if (!value.is_array() || value.size() != 2) wrong(key, "a list of pairs");
    return {value[0], value[1]};
  }
  void nothing_else() const {
    if (value_.size() != asked_) fail(path_, fmt::format("{} has keys that this version does not know", name_));
  }
  [[noreturn]] void wrong(const char* key, std::string_view expected) const {
    fail(path_, fmt::format("\"{}\" of {} is not {}", key, name_, expected));
  }

 private:
  const json& value_;
  std::string name_;
  const fs::path& path_;
  std::size_t asked_ = 0;
};

json spans_json(const std::vector<TextSpan>& all) {
  json spans = json::array();
  for (const TextSpan& span : all) {
    const auto kind = std::ranges::find(kSpanKinds, span.kind, &std::pair<SpanKind, const char*>::first);
    spans.push_back({{"kind", kind->second}, {"begin", span.begin}, {"end", span.end}});
  }
  return spans;
}

json prompt_json(const SessionRecord& record) {
  json prompt{{"text", record.prompt.text},
              {"spans", spans_json(record.prompt.spans)},
              {"ids", record.prompt_ids},
              {"expected", record.prompt.expected}};
  if (record.prompt.in_chat) prompt["in_chat"] = true;
  for (const ChatTurn& turn : record.prompt.turns)
    prompt["turns"].push_back({{"role", turn.role}, {"text", turn.text}, {"spans", spans_json(turn.spans)}});
  if (record.prompt.generate) prompt["generate"] = *record.prompt.generate;
  return prompt;
}

json recording_json(const SessionRecord& record) {
  json passes = json::array(), pieces = json::array();
  for (const Passes& pass : record.passes) passes.push_back({pass.tokens, pass.times});
  for (const SessionRecord::Piece& piece : record.pieces) pieces.push_back({piece.tokens, piece.digest});
  return {{"passes", passes}, {"pieces", pieces}};
}

json branches_json(const SessionRecord& record) {
  json branches = json::array();
  for (const BranchRecord& branch : record.branches) {
    json interventions = json::array();
    for (const Intervention& intervention : branch.interventions) interventions.push_back(to_text(intervention));
    json one{{"generated", branch.generated}};
    if (branch.parent < 0) {
      one["prompt"] = branch.prompt;
    } else {
      one["parent"] = branch.parent;
      one["interventions"] = interventions;
    }
    if (branch.to_generate > 0) one["to_generate"] = branch.to_generate;
    branches.push_back(std::move(one));
  }
  return {{"current", record.current}, {"list", branches}};
}

std::vector<Intervention> read_interventions(Object& branch) {
  std::vector<Intervention> interventions;
  for (const json& text : branch.list("interventions")) {
    if (!text.is_string()) branch.wrong("interventions", "a list of texts");
    try {
      interventions.push_back(parse_intervention(text.get<std::string>()));
    } catch (const Error& error) {
      fail(branch.path(), fmt::format("a branch cannot be understood: {}", error.what()));
    }
  }
  return interventions;
}

/// The number of a run that others may leave, or that may be shown.
std::int64_t branch_number(Object& from, const char* key, const SessionRecord& record) {
  const std::int64_t number = from.integer(key, 0, std::ssize(record.branches));
  if (number > 0 && record.branches[static_cast<std::size_t>(number - 1)].parent < 0) from.wrong(key, "a branch of the recording's run");
  return number;
}

void read_branches(Object branches, SessionRecord& record) {
  for (const json& value : branches.list("list")) {
    Object one(value, "a branch", branches.path());
    BranchRecord branch{.parent = -1, .interventions = {}, .prompt = {}, .generated = one.ids("generated")};
    if (one.has("prompt")) {
      branch.prompt = one.ids("prompt");
      if (branch.prompt.empty()) one.wrong("prompt", "a list of one or more");
    } else {
      branch.parent = branch_number(one, "parent", record);
      branch.interventions = read_interventions(one);
      if (one.has("to_generate")) branch.to_generate = one.integer("to_generate", 1, kMostTokens);
    }
    one.nothing_else();
    record.branches.push_back(std::move(branch));
  }
  record.current = branch_number(branches, "current", record);
  branches.nothing_else();
  if (record.tokens() < record.prompt_length()) branches.wrong("list", "empty, though the prompt has not been read");
}

/// That the model has such a layer and head, and the run such a token, whoever goes there sees to.
RunPlace read_place(Object place) {
  const RunPlace read{place.integer("layer", 0, kMostTokens), place.integer("head", 0, kMostTokens), place.integer("token", 0, kMostTokens),
                      place.text("views")};
  place.nothing_else();
  return read;
}

std::vector<TextSpan> read_spans(Object& of, const std::string& text) {
  std::vector<TextSpan> spans;
  for (const json& value : of.list("spans")) {
    Object span(value, "a span", of.path());
    const std::string name = span.text("kind");
    const auto kind = std::ranges::find_if(kSpanKinds, [&](const auto& entry) { return name == entry.second; });
    if (kind == kSpanKinds.end()) span.wrong("kind", "needle, question or answer");
    const auto length = static_cast<std::int64_t>(text.size());
    const std::int64_t begin = span.integer("begin", 0, length), end = span.integer("end", begin, length);
    spans.push_back({kind->first, static_cast<std::size_t>(begin), static_cast<std::size_t>(end)});
    span.nothing_else();
  }
  return spans;
}

std::vector<ChatTurn> read_turns(Object& prompt) {
  std::vector<ChatTurn> turns;
  for (const json& value : prompt.list("turns")) {
    Object turn(value, "a turn", prompt.path());
    const std::string role = turn.text("role"), text = turn.text("text");
    turns.push_back({role, text, read_spans(turn, text)});
    turn.nothing_else();
  }
  return turns;
}

void read_prompt(Object prompt, SessionRecord& record) {
  record.prompt.text = prompt.text("text");
  record.prompt.expected = prompt.text("expected");
  record.prompt_ids = prompt.ids("ids");
  if (record.prompt_ids.empty()) prompt.wrong("ids", "a list of one or more");
  if (record.prompt.text.empty()) record.prompt.ids = record.prompt_ids;
  if (prompt.has("in_chat")) record.prompt.in_chat = prompt.flag("in_chat");
  if (prompt.has("generate")) record.prompt.generate = prompt.integer("generate", 0, kMostTokens);
  if (prompt.has("turns")) record.prompt.turns = read_turns(prompt);
  record.prompt.spans = read_spans(prompt, record.prompt.text);
  prompt.nothing_else();
}

void read_recording(Object recording, SessionRecord& record) {
  std::int64_t in_passes = 0, in_pieces = 0;
  for (const json& value : recording.list("passes")) {
    const auto [tokens, times] = recording.pair(value, "passes");
    Passes pass{recording.integer(tokens, "passes", 1, record.options.tokens_at_once), 0};
    pass.times = recording.integer(times, "passes", 1, (kMostTokens - in_passes) / pass.tokens);
    in_passes += pass.tokens * pass.times;
    record.passes.push_back(pass);
  }
  for (const json& value : recording.list("pieces")) {
    const auto [tokens, digest] = recording.pair(value, "pieces");
    record.pieces.push_back({recording.integer(tokens, "pieces", 1, kMostTokens - in_pieces), recording.digest(digest, "pieces")});
    in_pieces += record.pieces.back().tokens;
  }
  recording.nothing_else();
  const std::int64_t beyond_prompt = in_passes - record.prompt_length();
  if (in_pieces != in_passes || std::ssize(record.generated) != std::max(beyond_prompt, std::int64_t{0}))
    recording.wrong("passes", "of as many tokens as its other lists");
}

}  // namespace

std::int64_t SessionRecord::tokens() const {
  std::int64_t tokens = 0;
  for (const Passes& pass : passes) tokens += pass.tokens * pass.times;
  return tokens;
}

std::vector<std::int32_t> SessionRecord::ids() const {
  std::vector<std::int32_t> ids = prompt_ids;
  ids.resize(static_cast<std::size_t>(std::min(prompt_length(), tokens())));
  ids.insert(ids.end(), generated.begin(), generated.end());
  return ids;
}

std::string to_json(const SessionRecord& record, const fs::path& path) try {
  json session{
      {"checkpoint", {{"path", record.checkpoint.string()}, {"digest", record.checkpoint_digest}}},
      {"device", {{"name", record.device.name}, {"precision", record.device.precision == Precision::bfloat16 ? "bfloat16" : "float32"}}},
      {"prompt", prompt_json(record)},
      {"sampling", {{"temperature", record.sampling.temperature}, {"top_p", record.sampling.top_p}, {"seed", record.sampling.seed}}},
      {"run",
       {{"chunk_size", record.options.chunk_size},
        {"tokens_at_once", record.options.tokens_at_once},
        {"keyframe_interval", record.options.keyframe_interval}}},
      {"generated", record.generated},
      {"recording", recording_json(record)}};
  if (!record.branches.empty()) session["branches"] = branches_json(record);
  if (const auto& place = record.place)
    session["place"] = {{"layer", place->layer}, {"head", place->head}, {"token", place->token}, {"views", place->views}};
  Digest digest;
  digest.add(session.dump());
  return json{{"format", kFormat}, {"version", kVersion}, {"digest", digest.text()}, {"session", session}}.dump() + "\n";
} catch (const json::type_error&) {
  fail(path, "cannot be written: the prompt, or the checkpoint's path, is not UTF-8");
}

SessionRecord parse_session(std::string_view text, const fs::path& path) {
  check_json_text(path, "the session", text);
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) fail(path, "is not JSON; was it cut short?");
  Object file(parsed, "the file", path);
  if (file.text("format") != kFormat) fail(path, "is not a session");
  if (const auto version = file.integer("version", 0, 1'000'000'000); version != kVersion)
    fail(path, fmt::format("is a session of version {}; this program reads version {}", version, kVersion));
  Object session = file.object("session");
  Digest digest;
  digest.add(parsed["session"].dump());
  if (file.digest("digest") != digest.text()) fail(path, "is damaged: its content is not what its digest says");
  file.nothing_else();

  SessionRecord record;
  Object checkpoint = session.object("checkpoint");
  record.checkpoint = checkpoint.text("path");
  record.checkpoint_digest = checkpoint.digest("digest");
  checkpoint.nothing_else();
  Object device = session.object("device");
  record.device.name = device.text("name");
  if (!wrong_device_name(record.device.name).empty()) device.wrong("name", "the name of a device");
  const std::string precision = device.text("precision");
  if (precision != "float32" && precision != "bfloat16") device.wrong("precision", "float32 or bfloat16");
  if (precision == "bfloat16") record.device.precision = Precision::bfloat16;
  device.nothing_else();
  read_prompt(session.object("prompt"), record);
  Object sampling = session.object("sampling");
  record.sampling = {sampling.number("temperature", 0, 1000), sampling.number("top_p", 0, 1), sampling.unsigned_integer("seed")};
  sampling.nothing_else();
  Object run = session.object("run");
  record.options = {.chunk_size = run.integer("chunk_size", 1, kMostAtOnce),
                    .tokens_at_once = run.integer("tokens_at_once", 1, kMostAtOnce),
                    .keyframe_interval = run.integer("keyframe_interval", 1, kMostTokens)};
  run.nothing_else();
  record.generated = session.ids("generated");
  read_recording(session.object("recording"), record);
  if (session.has("branches")) read_branches(session.object("branches"), record);
  if (session.has("place")) record.place = read_place(session.object("place"));
  session.nothing_else();
  return record;
}

}  // namespace statescope
