// How evaluations and their scores travel: to another process, to an engine on another machine.
#pragma once

#include <cereal/types/array.hpp>

#include "app/eval/eval_job.h"
#include "engine/remote/wire_archive.h"

namespace statescope {

template <class Archive>
void serialize(Archive& archive, TaskOptions& x) {
  auto& [name, length, needles, values, queries, pairs, depth_percent, haystack, value, filler, seed, split] = x;
  remote::Choice known{split, Split::training};
  archive(name, length, needles, values, queries, pairs, depth_percent, haystack, value, filler, seed, known);
}
template <class Archive>
void serialize(Archive& archive, PromptSpan& x) {
  auto& [part, begin, end] = x;
  remote::Choice known{part, PromptPart::answer};
  archive(known, begin, end);
}
STATESCOPE_FIELDS(EvalCell, task, samples, reply, special, score)
STATESCOPE_FIELDS(Prompt, text, ids, expected, answers, any_answer, spans, in_chat)
STATESCOPE_FIELDS(AskedCell, cell, text, prompts)
STATESCOPE_FIELDS(EvalJob, cells)

STATESCOPE_FIELDS(Estimate, mean, low, high)
STATESCOPE_FIELDS(TaskScore, questions, by_reply, in_chat, hits, exact, tokens, nll)
STATESCOPE_FIELDS(TextScore, windows, bits_per_byte, standard_error, parts)
template <class Archive>
void serialize(Archive& archive, CellOutcome& x) {
  auto& [not_finite, score] = x;
  auto& [checkpoint, notes, cell, impossible, task, text] = score;
  archive(not_finite, notes, impossible, task, text);
  const bool is_scored = task.has_value() != text.has_value();
  if (Archive::is_loading::value && !not_finite && is_scored != impossible.empty())
    throw remote::WireError("a message has a score whose parts do not fit together");
}

}  // namespace statescope
