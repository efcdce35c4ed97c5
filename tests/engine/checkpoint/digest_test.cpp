#include "engine/checkpoint/digest.h"

#include "tests/engine/checkpoint/checkpoint_files.h"

namespace statescope::test::digest_test {

TEST_CASE("digest: as xxhsum prints it, in whatever pieces") {
  const auto digest_of = [](std::string_view text, std::size_t piece) {
    Digest digest;
    for (; text.size() > piece; text.remove_prefix(piece)) digest.add(text.substr(0, piece));
    digest.add(text);
    return digest.text();
  };
  CHECK(digest_of("", 1) == "ef46db3751d8e999");
  CHECK(digest_of("a", 1) == "d24ec4f1a98c6e5b");
  CHECK(digest_of("abc", 2) == "44bc2cf5ad770999");
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) CHECK(digest_of(text, piece) == "0b242d361fda71bc");
}

}  // namespace statescope::test::digest_test
