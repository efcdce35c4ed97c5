// What a session asks and answers, as bytes that go to another machine and come back as they were, to the bit: every field in its order,
// little-endian, lists with their length before them. Bytes from outside are treated as hostile: what is read is whole and in its bounds,
// or WireError says in a line what is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/error.h"
#include "engine/findings/findings.h"
#include "engine/run/intervention.h"
#include "engine/run/prompt_input.h"
#include "engine/session/session.h"
#include "engine/snapshot.h"

namespace statescope::remote {

class WireError : public Error {
 public:
  using Error::Error;
};

/// Of Question, Snapshot, Routing, RunInfo, BranchTree, PromptInput, std::vector<Intervention>, RunPlace, Failure,
/// std::optional<NotFiniteWeight>. What is shared travels
/// by value: a question that was unpacked holds states of its own and equals no other (CrossSimilarityQuestion). A snapshot comes without
/// its run and routing, which travel by themselves, and without what lies on the device: null behind unpack.
template <class T>
std::string pack(const T& value);
/// Throws WireError.
template <class T>
T unpack(std::string_view bytes);

/// With the answer, which is of the question's Answer.
std::string pack_finding(const Question& question, const Finding& finding);
/// Throws WireError.
Finding unpack_finding(const Question& question, std::string_view bytes);

}  // namespace statescope::remote
