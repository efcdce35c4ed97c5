// What a session file (.scope, JSON) says of a run: all of it but the recording, which lies beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device.h"
#include "engine/run/branches.h"
#include "engine/run/sampling.h"
#include "engine/session/session.h"

namespace statescope {

struct SessionRecord {
  /// Tokens that were added to the recording together, and the digest of their bytes there.
  struct Piece {
    std::int64_t tokens = 0;
    std::string digest;
  };

  std::filesystem::path checkpoint;
  std::string checkpoint_digest;  // content_digest
  DeviceChoice device;            // name and precision
  PromptInput prompt;             // as it was given; `generate`: tokens wanted after it
  std::vector<std::int32_t> prompt_ids;
  SamplingOptions sampling;
  RunOptions options;                   // chunk_size, tokens_at_once, keyframe_interval
  std::vector<std::int32_t> generated;  // read, not only drawn
  std::vector<Passes> passes;           // in which all was read
  std::vector<Piece> pieces;            // of the recording, in order
  std::vector<BranchRecord> branches;   // in the order in which they were made; 0 is the recording's run
  std::int64_t current = 0;             // the one that is shown, counted as parents are
  std::optional<RunPlace> place;        // where in it; unset: nobody has looked

  std::int64_t prompt_length() const { return std::ssize(prompt_ids); }
  /// How many have been read: the prompt, or the part of it that was, and what was generated.
  std::int64_t tokens() const;
  std::vector<std::int32_t> ids() const;  // [tokens]
};

/// Throws Error naming `path` for texts that are not UTF-8.
std::string to_json(const SessionRecord& record, const std::filesystem::path& path);
/// Of any text. Throws Error naming `path`: what is wrong with it.
SessionRecord parse_session(std::string_view text, const std::filesystem::path& path);

}  // namespace statescope
