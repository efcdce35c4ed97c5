// What the program asks of the system before it does anything else.
#pragma once

namespace statescope {

/// Descriptors 0 to 2 that whoever started the program had closed are opened, so that no file of ours takes their place; a limit on the
/// size of files is an error of the writing, not a signal; an exception that nobody can catch is said in a line. False, and a line says
/// why, where the stack is too small to run at all.
bool prepare_process();

/// Says that no thread can be started, takes unfinished files away and ends with 1: for those who would wait for one for ever.
[[noreturn]] void end_for_lack_of_threads();

}  // namespace statescope
