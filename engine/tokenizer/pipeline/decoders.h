// How pieces become text again.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace statescope {

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& pieces) const = 0;
  /// What one piece stands for, wherever it is.
  virtual std::string shown(std::string piece) const { return piece; }
  /// How many bytes may stand in the place of one.
  virtual double growth() const { return 1; }
  /// Every piece is bytes, and the text all bytes together.
  virtual bool joins_bytes() const { return false; }
};

/// `part`: what a tokenizer.json has as its decoder; null: pieces are joined by spaces. Throws Error naming the part that is not
/// understood.
std::vector<std::unique_ptr<Decoder>> read_decoders(const nlohmann::json& part);

/// Pieces in the byte alphabet (GPT-2).
std::unique_ptr<Decoder> byte_level_decoder();

/// <0xE4> is a byte; -1: it is not such a piece.
int byte_of_piece(std::string_view piece);

}  // namespace statescope
