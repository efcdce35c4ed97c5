// Every answer says how exact it is.
#include <type_traits>

#include "engine/answers/answers.h"
#include "tests/catch.h"

namespace statescope::test::answers_accuracy_test {
namespace {

template <class Answer>
concept SaysHowExact = requires {
  { Answer::accuracy } -> std::convertible_to<Accuracy>;
};

template <class Variant>
struct AllSay;
template <class... Q>
struct AllSay<std::variant<Q...>> {
  /// A state's accuracy is the snapshot's and depends on its token; each of the named quantities has its own.
  static constexpr bool value = ((SaysHowExact<typename Q::Answer> || std::is_same_v<typename Q::Answer, LayerState> ||
                                  std::is_same_v<typename Q::Answer, HeadState> || std::is_same_v<typename Q::Answer, Observables>)&&...);
};

}  // namespace

TEST_CASE("answers: each says how exact it is") { CHECK(AllSay<Question>::value); }

}  // namespace statescope::test::answers_accuracy_test
