// The messages of grpc/engine.proto, as plain data: the program itself links neither protobuf nor gRPC.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace statescope::remote {

/// Grows whenever a message, or what is packed in one, changes.
inline constexpr int kProtocol = 10;

/// What a client says before anything else.
struct Hello {
  int protocol = kProtocol;
  std::string version;      // of the program
  std::string token;        // the secret that both know
  std::string session;      // that it goes on with; empty: a new one
  std::uint64_t heard = 0;  // the last of that session's events that has come
};

// What is asked.
struct Open {
  std::string checkpoint, prompt;
  bool looks = true;  // Session::OpenCallbacks
};
struct Read {
  std::string prompt;
  bool looks = true;
};
struct Generate {
  std::int64_t tokens = 0;
};
struct Cancel {};
struct Intervene {
  std::string interventions;
};
struct AddRun {
  std::string prompt;
};
struct Step {
  bool forwards = false;
};
struct GoToBranch {
  std::int64_t branch = 0;
};
struct Save {
  std::string path;
};
struct Stand {
  std::string place;
};
struct OpenSession {
  std::string path, located;
};
struct Show {
  std::uint64_t beside = 0;
  std::int64_t layer = 0, head = 0, token = 0;
};
struct Ask {
  std::int32_t asker = 0;
  std::uint64_t run = 0;
  bool beside = false;
  std::vector<std::string> questions;
};
struct Leave {};
/// What a checkpoint's files say of it; `digest`: with that of their bytes.
struct Describe {
  std::string checkpoint;
  bool digest = false;
};
/// A prompt that the model's own files make: of a conversation, of a text with special tokens in it, or an example.
struct MakePrompt {
  std::string checkpoint;
  std::string conversation;           // JSON, as a line of `statescope chat`; empty: it is none
  std::vector<std::string> settings;  // NAME=VALUE for the chat template
  std::string text;
  std::int64_t example = 0, number = 0;  // its length, and which; 0: it is none
};
/// Of the model of the run that is shown: the text of these tokens together.
struct Decode {
  std::vector<std::int32_t> ids;
};

/// Something long that a command has a checkpoint's model do, beside all else.
struct Work {
  std::string checkpoint, job;
};

struct Request {
  std::uint64_t number = 0, heard = 0, id = 0;
  std::variant<std::monostate, Open, Read, Generate, Cancel, Intervene, AddRun, Step, GoToBranch, Save, Stand, OpenSession, Show, Ask,
               Leave, Describe, MakePrompt, Decode, Work>
      asked = {};
};

// What is told.
struct Welcome {
  std::string session;
  bool resumed = false;
  std::string version;
};
struct Progressed {
  double fraction = 0;
  std::string what;
};
struct RunShown {
  std::uint64_t run = 0;
};
struct Failed {
  std::string failure;
};
struct Done {};
/// Which of Session's callbacks in a line.
enum class About : std::uint8_t { device_failed, not_saved, other_device, not_finite };
struct Remarked {
  About about = About::device_failed;
  std::string text;
};
struct BranchesChanged {
  std::string tree;
  std::vector<std::uint64_t> runs;
};
struct Placed {
  std::string place;
};
struct Saved {};
struct NotSaved {
  std::string why;
};
struct RunDefined {
  std::uint64_t run = 0, base = 0, first = 0, last = 0;
  std::string middle;
  std::uint64_t same_tokens = 0;
  std::string tokens;
  std::vector<std::uint64_t> forgotten;
};
struct RoutingDefined {
  std::int64_t layer = 0;
  bool beside = false;
  std::int64_t same_tokens = 0;
  std::string rest;
};
struct Shown {
  std::uint64_t run = 0;
  bool beside = false, routed = false;
  std::string snapshot;
};
struct Found {
  std::int32_t asker = 0;
  std::uint32_t question = 0;
  std::string finding;
};
struct FactsTold {
  std::string no_text;
  std::int64_t vocab = 0;
};
struct Described {
  std::string device, config, digest;
  std::string prompt, why_no_prompt;  // one of them is empty
  std::string weight;
};
struct PromptMade {
  std::string prompt;
};
struct Decoded {
  std::string text;
};

struct Worked {
  std::string found;
};

struct Event {
  std::uint64_t number = 0, heard = 0, id = 0;
  std::variant<std::monostate, Welcome, Progressed, RunShown, Failed, Done, Remarked, BranchesChanged, Placed, Saved, NotSaved, RunDefined,
               RoutingDefined, Shown, Found, FactsTold, Described, PromptMade, Decoded, Worked>
      told = {};
};

}  // namespace statescope::remote
