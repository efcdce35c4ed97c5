#include "app/common/job_site.h"

#include "engine/error.h"

namespace statescope {

void JobSite::say(double part, const std::string& what) const {
  if (!goes_on(part, what)) throw Cancelled();
}

}  // namespace statescope
