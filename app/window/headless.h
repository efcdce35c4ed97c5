// The main job without a display: read the prompt, answer it, and write pictures of the views.
#pragma once

#include "app/window/arguments.h"

namespace statescope {

/// Prints the answer and writes one PNG per view of the catalogue that has something to show into the folder "statescope-views". Returns
/// the exit status. Throws Error.
int run_headless(int argc, char** argv, const WindowArguments& arguments);

}  // namespace statescope
