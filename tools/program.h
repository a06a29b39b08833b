// The ttc tool as a function, so that tests can run many command lines without loading LibTorch for each.
#pragma once

namespace ttc {

// Runs one command line and ends the process with its exit code: 0 done, else the number of an ttc::Exit.
[[noreturn]] void run_program(int argc, char** argv);

}  // namespace ttc
