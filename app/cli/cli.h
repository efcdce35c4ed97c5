// The command line: the window's headless twin.
#pragma once

namespace statescope {

/// Runs what the arguments ask for; without a subcommand, the window. Returns the exit status: 0, 1 for failure, 2 for wrong use.
int run_command_line(int argc, char** argv);

}  // namespace statescope
