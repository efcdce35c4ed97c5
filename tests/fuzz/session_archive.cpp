// Any bytes as a session in one file: refused with an Error, which leaves nothing, or plain files in its folder, the session among them.
#include "app/common/session_archive.h"

#include <cstdlib>

#include "engine/error.h"
#include "tests/fuzz/input_file.h"

namespace fs = std::filesystem;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const statescope::fuzz::InputFile file(data, size, statescope::session_archive_ending);
  const fs::path place = file.path().string() + "-unpacked", folder = place / "session";
  fs::create_directory(place);
  bool unpacked = true;
  try {
    const fs::path session = statescope::unpack_session(file.path(), folder);
    if (session.parent_path() != folder || !fs::is_regular_file(session)) std::abort();
  } catch (const statescope::Error&) {
    unpacked = false;
  }
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    if (!unpacked || (entry.path() != folder && (entry.path().parent_path() != folder || !entry.is_regular_file()))) std::abort();
  }
  fs::remove_all(place);
  return 0;
}
