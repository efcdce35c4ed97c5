#include "app/eval/score_bytes.h"

#include <cereal/types/array.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include "app/ranks/packed.h"

namespace statescope {

// Every field: a structured binding does not compile where one is missing.

template <class Archive>
void serialize(Archive& archive, Estimate& x) {
  auto& [mean, low, high] = x;
  archive(mean, low, high);
}
template <class Archive>
void serialize(Archive& archive, TaskScore& x) {
  auto& [questions, by_reply, in_chat, hits, exact, tokens, nll] = x;
  archive(questions, by_reply, in_chat, hits, exact, tokens, nll);
}
template <class Archive>
void serialize(Archive& archive, TextScore& x) {
  auto& [windows, bits_per_byte, standard_error, parts] = x;
  archive(windows, bits_per_byte, standard_error, parts);
}
template <class Archive>
void serialize(Archive& archive, CellScore& x) {
  auto& [checkpoint, notes, cell, impossible, task, text] = x;
  archive(notes, impossible, task, text);
}
template <class Archive>
void serialize(Archive& archive, CellOutcome& x) {
  auto& [not_finite, score] = x;
  archive(not_finite, score);
}

std::string packed(const CellOutcome& outcome) { return packed<CellOutcome>(outcome); }
CellOutcome unpacked_outcome(const std::string& bytes) { return unpacked<CellOutcome>(bytes); }

}  // namespace statescope
