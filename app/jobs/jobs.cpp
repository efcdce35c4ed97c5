#include "app/jobs/jobs.h"

#include <new>

#include "app/common/running.h"
#include "engine/error.h"
#include "engine/remote/wire.h"

namespace statescope {

std::string do_packed_job(std::string_view packed, JobSite site) {
  const auto asked = remote::unpack<JobAsked>(packed);
  site.checkpoint = asked.checkpoint;
  const auto done_as = [&]<class J>(const J& job) {
    JobDone<typename J::Found> done;
    run_with_fallback(
        site.device, [&] { return done.found = do_job(job, site), 0; }, [&](const std::string& note) { done.note = note; });
    return remote::pack(done);
  };
  try {
    return std::visit(done_as, asked.job);
  } catch (const std::bad_alloc&) {
    throw Error("the engine is out of memory");
  }
}

}  // namespace statescope
