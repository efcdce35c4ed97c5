// A model that reads no text: why, and token ids to begin with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace statescope {

class Tokenizer;

/// Empty: texts can be read.
std::string why_no_text(const Tokenizer& tokenizer);

/// 64 ids of 0 … vocab − 1 in no order, the second half as the first: what is read again can be remembered. vocab ≥ 1.
std::vector<std::int32_t> sample_ids(std::int64_t vocab);

}  // namespace statescope
