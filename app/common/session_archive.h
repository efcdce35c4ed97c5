// A session in one file to give away: the session, its recording and, where that is small, its checkpoint. It is a zip; any tool opens it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace statescope {

inline constexpr const char* session_archive_ending = ".scope.zip";

/// The largest checkpoint that goes along, in bytes.
inline constexpr std::uint64_t most_of_checkpoint = 256'000'000;

struct PackedSession {
  std::uint64_t bytes = 0;
  bool has_checkpoint = false;
};
/// Writes `archive`, which is not there yet, whole or not at all. A checkpoint that is a folder, or larger than `most`, stays away; one
/// that is not the session's any more is refused. Throws Error.
PackedSession pack_session(const std::filesystem::path& session, const std::filesystem::path& checkpoint,
                           const std::filesystem::path& archive, std::uint64_t most = most_of_checkpoint);

/// Where the session's checkpoint lay. Throws Error.
std::filesystem::path checkpoint_of(const std::filesystem::path& session);

/// Unpacks into `folder`, which is not there yet, whole or not at all: the session's path in it. Throws Error for what is no such archive,
/// holds anything else, or would be absurdly large.
std::filesystem::path unpack_session(const std::filesystem::path& archive, const std::filesystem::path& folder);

}  // namespace statescope
