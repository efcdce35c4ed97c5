// sentencepiece's table of characters and what they become (precompiled_charsmap).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

/// A double array (darts-clone) and the texts that its values point to. No index leaves the table, whatever a file put into it.
class Charsmap {
 public:
  struct Match {
    std::size_t length;  // bytes of the key
    std::string_view value;
  };

  /// `bytes`: the size of the array in bytes (u32, little endian), the array, the texts, each ended by NUL; empty: no keys. Throws Error.
  explicit Charsmap(std::string_view bytes);

  std::optional<Match> shortest(std::string_view text) const { return find(text, /*longest=*/false); }
  std::optional<Match> longest(std::string_view text) const { return find(text, /*longest=*/true); }

 private:
  std::optional<Match> find(std::string_view text, bool longest) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace statescope
