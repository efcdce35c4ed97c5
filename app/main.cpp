#include "app/cli/cli.h"
#include "app/common/process.h"

int main(int argc, char** argv) { return statescope::prepare_process() ? statescope::run_command_line(argc, argv) : 1; }
