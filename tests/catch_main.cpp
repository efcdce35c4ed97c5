#define CATCH_CONFIG_MAIN
#include "tests/catch.h"
#if __has_include(<catch2/catch_all.hpp>)
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#endif
