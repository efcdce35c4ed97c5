// What a program says of itself to people (to_string of program.h), value by value.
#pragma once

#include <string>

#include "kernels/program/program.h"

namespace statescope::program {

/// As to_string calls it.
std::string name_in(const Program& program, Value v);

}  // namespace statescope::program
