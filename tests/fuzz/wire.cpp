// A byte that says what it is, then any bytes as a message: refused with one line, or a value that is packed to the same bytes again.
#include "tests/fuzz/wire_input.h"

namespace {

using namespace statescope;
using namespace statescope::remote;
using fuzz::attempt;

template <std::size_t... I>
Question question_of(std::size_t number, std::index_sequence<I...>) {
  Question question;
  ((number == I ? void(question.emplace<I>()) : void()), ...);
  return question;
}

void attempt_as(std::uint8_t what, std::string_view bytes) {
  constexpr std::size_t questions = std::variant_size_v<Question>;
  switch (what) {
    case 0:
      return attempt<Question>(bytes);
    case 1:
      return attempt<Snapshot>(bytes);
    case 2:
      return attempt<Routing>(bytes);
    case 3:
      return attempt<RunInfo>(bytes);
    case 4:
      return attempt<BranchTree>(bytes);
    case 5:
      return attempt<PromptInput>(bytes);
    case 6:
      return attempt<std::vector<Intervention>>(bytes);
    case 7:
      return attempt<RunPlace>(bytes);
    case 8:
      return attempt<Failure>(bytes);
    default:
      break;
  }
  const Question question = question_of((what - 9u) % questions, std::make_index_sequence<questions>());
  if (pack_finding(question, unpack_finding(question, bytes)) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { return fuzz::attempt_input(data, size, attempt_as); }
