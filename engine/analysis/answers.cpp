#include "engine/analysis/answers.h"

#include "engine/error.h"

namespace statescope {

std::shared_ptr<const void> find_out(const Question& question, Evidence& evidence) {
  return std::visit(
      [&]<class Q>(const Q& asked) -> std::shared_ptr<const void> {
        if constexpr (requires { answer(asked, evidence); }) {
          return std::make_shared<const typename Q::Answer>(answer(asked, evidence));
        } else {
          throw Error("this build has no answer to that");
        }
      },
      question);
}

}  // namespace statescope
