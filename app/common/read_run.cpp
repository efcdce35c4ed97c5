#include "app/common/read_run.h"

#include "engine/error.h"

namespace statescope {

Findings ReadRun::find_all(const std::vector<Question>& questions) {
  Findings findings;
  for (const Question& question : questions) {
    try {
      findings.set(question, {find_out(question), {}, 1});
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      findings.set(question, {nullptr, error.what(), 1});
    }
  }
  return findings;
}

}  // namespace statescope
