#include "tests/source.h"

namespace statescope {

std::string from_source(const std::string& path) { return STATESCOPE_SOURCE_DIR "/" + path; }

}  // namespace statescope
