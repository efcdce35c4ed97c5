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
#include "engine/checkpoint/json_object.h"
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

std::vector<std::int32_t> ids_in(JsonObject& object, const char* key) {
  std::vector<std::int32_t> ids;
  for (const json& id : object.list(key))
    ids.push_back(static_cast<std::int32_t>(object.integer_of(id, key, 0, std::numeric_limits<std::int32_t>::max())));
  return ids;
}

std::string digest_in(const JsonObject& object, const json& value, const char* key) {
  const auto hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const std::string digest = object.text_of(value, key);
  if (digest.size() != 16 || !std::ranges::all_of(digest, hexadecimal)) object.wrong(key, "16 hexadecimal digits");
  return digest;
}

/// The two members of one of a key's list.
std::pair<const json&, const json&> pair_in(const JsonObject& object, const json& value, const char* key) {
  if (!value.is_array() || value.size() != 2) object.wrong(key, "a list of pairs");
  return {value[0], value[1]};
}

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

std::vector<Intervention> read_interventions(JsonObject& branch) {
  std::vector<Intervention> interventions;
  for (const json& text : branch.list("interventions")) {
    if (!text.is_string()) branch.wrong("interventions", "a list of texts");
    try {
      interventions.push_back(parse_intervention(text.get<std::string>()));
    } catch (const Error& error) {
      branch.refuse(fmt::format("cannot be understood: {}", error.what()));
    }
  }
  return interventions;
}

/// The number of a run that others may leave, or that may be shown.
std::int64_t branch_number(JsonObject& from, const char* key, const SessionRecord& record) {
  const std::int64_t number = from.integer(key, 0, std::ssize(record.branches));
  if (number > 0 && record.branches[static_cast<std::size_t>(number - 1)].parent < 0) from.wrong(key, "a branch of the recording's run");
  return number;
}

void read_branches(JsonObject branches, SessionRecord& record) {
  for (const json& value : branches.list("list")) {
    JsonObject one(value, branches.place() + ": a branch");
    BranchRecord branch{.parent = -1, .interventions = {}, .prompt = {}, .generated = ids_in(one, "generated")};
    if (one.has("prompt")) {
      branch.prompt = ids_in(one, "prompt");
      if (branch.prompt.empty()) one.wrong("prompt", "a list of one or more");
    } else {
      branch.parent = branch_number(one, "parent", record);
      branch.interventions = read_interventions(one);
      if (one.has("to_generate")) branch.to_generate = one.integer("to_generate", 1, kMostTokens);
    }
    one.nothing_else("a branch");
    record.branches.push_back(std::move(branch));
  }
  record.current = branch_number(branches, "current", record);
  branches.nothing_else("a session's branches");
  if (record.tokens() < record.prompt_length()) branches.wrong("list", "empty, though the prompt has not been read");
}

/// That the model has such a layer and head, and the run such a token, whoever goes there sees to.
RunPlace read_place(JsonObject place) {
  const RunPlace read{place.integer("layer", 0, kMostTokens), place.integer("head", 0, kMostTokens), place.integer("token", 0, kMostTokens),
                      place.text("views")};
  place.nothing_else("a place");
  return read;
}

/// `size`: bytes of the text, or tokens.
std::vector<TextSpan> read_spans(JsonObject& of, std::size_t size) {
  std::vector<TextSpan> spans;
  for (const json& value : of.list("spans")) {
    JsonObject span(value, of.place() + ": a span");
    const std::string name = span.text("kind");
    const auto kind = std::ranges::find_if(kSpanKinds, [&](const auto& entry) { return name == entry.second; });
    if (kind == kSpanKinds.end()) span.wrong("kind", "needle, question or answer");
    const auto length = static_cast<std::int64_t>(size);
    const std::int64_t begin = span.integer("begin", 0, length), end = span.integer("end", begin, length);
    spans.push_back({kind->first, static_cast<std::size_t>(begin), static_cast<std::size_t>(end)});
    span.nothing_else("a span");
  }
  return spans;
}

std::vector<ChatTurn> read_turns(JsonObject& prompt) {
  std::vector<ChatTurn> turns;
  for (const json& value : prompt.list("turns")) {
    JsonObject turn(value, prompt.place() + ": a turn");
    const std::string role = turn.text("role"), text = turn.text("text");
    turns.push_back({role, text, read_spans(turn, text.size())});
    turn.nothing_else("a turn");
  }
  return turns;
}

void read_prompt(JsonObject prompt, SessionRecord& record) {
  record.prompt.text = prompt.text("text");
  record.prompt.expected = prompt.text("expected");
  record.prompt_ids = ids_in(prompt, "ids");
  if (record.prompt_ids.empty()) prompt.wrong("ids", "a list of one or more");
  if (record.prompt.text.empty()) record.prompt.ids = record.prompt_ids;
  if (prompt.has("in_chat")) record.prompt.in_chat = prompt.flag("in_chat");
  if (prompt.has("generate")) record.prompt.generate = prompt.integer("generate", 0, kMostTokens);
  if (prompt.has("turns")) record.prompt.turns = read_turns(prompt);
  record.prompt.spans = read_spans(prompt, std::max(record.prompt.text.size(), record.prompt.ids.size()));
  prompt.nothing_else("a prompt");
}

void read_recording(JsonObject recording, SessionRecord& record) {
  std::int64_t in_passes = 0, in_pieces = 0;
  for (const json& value : recording.list("passes")) {
    const auto [tokens, times] = pair_in(recording, value, "passes");
    Passes pass{recording.integer_of(tokens, "passes", 1, record.options.tokens_at_once), 0};
    pass.times = recording.integer_of(times, "passes", 1, (kMostTokens - in_passes) / pass.tokens);
    in_passes += pass.tokens * pass.times;
    record.passes.push_back(pass);
  }
  for (const json& value : recording.list("pieces")) {
    const auto [tokens, digest] = pair_in(recording, value, "pieces");
    record.pieces.push_back({recording.integer_of(tokens, "pieces", 1, kMostTokens - in_pieces), digest_in(recording, digest, "pieces")});
    in_pieces += record.pieces.back().tokens;
  }
  recording.nothing_else("a recording");
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
  JsonObject file(parsed, path.string());
  if (file.text("format") != kFormat) fail(path, "is not a session");
  if (const auto version = file.integer("version", 0, 1'000'000'000); version != kVersion)
    fail(path, fmt::format("is a session of version {}; this program reads version {}", version, kVersion));
  JsonObject session = file.object("session");
  Digest digest;
  digest.add(parsed["session"].dump());
  if (digest_in(file, file.at("digest"), "digest") != digest.text()) fail(path, "is damaged: its content is not what its digest says");
  file.nothing_else("a session's file");

  SessionRecord record;
  JsonObject checkpoint = session.object("checkpoint");
  record.checkpoint = checkpoint.text("path");
  record.checkpoint_digest = digest_in(checkpoint, checkpoint.at("digest"), "digest");
  checkpoint.nothing_else("a checkpoint");
  JsonObject device = session.object("device");
  record.device.name = device.text("name");
  if (!wrong_device_name(record.device.name).empty()) device.wrong("name", "the name of a device");
  const std::string precision = device.text("precision");
  if (precision != "float32" && precision != "bfloat16") device.wrong("precision", "float32 or bfloat16");
  if (precision == "bfloat16") record.device.precision = Precision::bfloat16;
  device.nothing_else("a device");
  read_prompt(session.object("prompt"), record);
  JsonObject sampling = session.object("sampling");
  const json& seed = sampling.at("seed");
  if (!seed.is_number_unsigned()) sampling.wrong("seed", "a whole number from 0 on");
  record.sampling = {sampling.number("temperature", 0, 1000), sampling.number("top_p", 0, 1), seed.get<std::uint64_t>()};
  sampling.nothing_else("a sampling");
  JsonObject run = session.object("run");
  record.options = {.chunk_size = run.integer("chunk_size", 1, kMostAtOnce),
                    .tokens_at_once = run.integer("tokens_at_once", 1, kMostAtOnce),
                    .keyframe_interval = run.integer("keyframe_interval", 1, kMostTokens)};
  run.nothing_else("a run");
  record.generated = ids_in(session, "generated");
  read_recording(session.object("recording"), record);
  if (session.has("branches")) read_branches(session.object("branches"), record);
  if (session.has("place")) record.place = read_place(session.object("place"));
  session.nothing_else("a session");
  return record;
}

}  // namespace statescope
