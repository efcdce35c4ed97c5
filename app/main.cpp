#include "app/cli/cli.h"

int main(int argc, char** argv) { return statescope::run_command_line(argc, argv); }
