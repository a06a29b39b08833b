// The process of the ttc tool.
#include "program.h"

int main(int argc, char** argv) { ttc::run_program(argc, argv); }
