// A folder with a small random model that has a tokenizer of 905 pieces, and maybe a chat template.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "engine/model/random_checkpoint.h"
#include "tests/engine/model/small_models.h"
#include "tests/source.h"

namespace statescope::test {

inline const std::string kPieceTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if not enable_thinking %}{{ '<tool_call>' }}{% endif %}{% endif %}";

inline void write_piece_model(const std::filesystem::path& folder, const std::string& chat_template = "",
                              const nlohmann::json& config = small_config("gla")) {
  Checkpoint checkpoint = *random_checkpoint(Config(with(config, {{"vocab_size", 912}})), 7);
  std::ostringstream tokenizer;
  tokenizer << std::ifstream(from_source("tests/golden/tokenizers/qwen2_bpe/tokenizer.json"), std::ios::binary).rdbuf();
  checkpoint.tokenizer["tokenizer.json"] = tokenizer.str();
  if (!chat_template.empty()) checkpoint.tokenizer["tokenizer_config.json"] = nlohmann::json{{"chat_template", chat_template}}.dump();
  write_checkpoint(checkpoint, folder);
}

}  // namespace statescope::test
