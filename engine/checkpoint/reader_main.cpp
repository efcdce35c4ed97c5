// statescope-reader FILE: reads an HDF5 checkpoint for another program, which started it and takes its answer from shared memory
// (isolate.h).
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/hdf5_catalogue.h"

int main(int argc, char** argv) try {
  using namespace statescope;
  if (argc != 2) {
    std::fputs("statescope-reader: statescope starts it by itself to read an HDF5 file\n", stderr);
    return 2;
  }
  const std::filesystem::path path = argv[1];
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return answer_in_isolation(path, error ? 0 : bytes, [&](SharedMemory& memory) {
    const MappedFile file(path);
    return hdf5_catalogue(path, file.bytes(), memory);
  });
} catch (const std::exception&) {
  return 1;  // the other program names the file
}
