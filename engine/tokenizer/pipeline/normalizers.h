// What is done to a text before it is cut into words.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/tokenizer/text/aligned_text.h"

namespace statescope {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(AlignedText& text) const = 0;
  /// How many bytes may stand in the place of one.
  virtual double growth() const { return 1; }
  /// Its text is in the byte alphabet.
  virtual bool is_byte_level() const { return false; }
};

/// `part`: what a tokenizer.json has as its normalizer; null: none. Throws Error naming the part that is not understood.
std::vector<std::unique_ptr<Normalizer>> read_normalizers(const nlohmann::json& part);

}  // namespace statescope
