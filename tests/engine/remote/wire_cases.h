// What every value on the wire has to stand.
#pragma once

#include <string>
#include <string_view>

#include "engine/remote/wire.h"
#include "tests/catch.h"

namespace statescope::test {

using remote::pack;
using remote::unpack;
using remote::WireError;

template <class T>
void check_damage(const std::string& bytes, const T& read) {
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK_THROWS_AS(read(bytes.substr(0, size)), WireError);
  CHECK_THROWS_AS(read(bytes + '\0'), WireError);
  // A length that cannot be is refused before there is room made for it.
  for (std::size_t i = 0; i + 8 <= bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged.replace(i, 8, 8, '\x7f');
    try {
      read(damaged);
    } catch (const WireError& error) {
      CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
    }
  }
}

template <class T>
void check_whole(const T& value) {
  const std::string bytes = pack(value);
  CHECK(pack(unpack<T>(bytes)) == bytes);
  check_damage(bytes, unpack<T>);
}

inline TokenInfo token(std::int32_t id) { return {id, "w" + std::to_string(id)}; }

inline RunInfo run_info() {
  LayerInfo layer{.mixer = "sse", .memory = "decayed", .slot_names = {"shared", "1"}, .heads = 2, .rows = 3, .columns = 4};
  layer.partitions = 1;
  layer.has_shared_slot = layer.head_gates = true;
  layer.device = "cuda:1";
  RunInfo run;
  run.model = {"name", "family", "device", 12, 34, 56, {layer, {}}, {"here"}, {"note", ""}};
  run.tokens = {token(1), token(2)};
  run.spans = {{SpanKind::needle, 0, 1}, {SpanKind::answer, 1, 2}};
  run.prompt_length = 2;
  run.expected = {token(7)};
  run.branch = {3, 1, 2, {"zero layer 0 at 1"}};
  run.recording = {16, 1, 2, 3, 4, 5};
  return run;
}

}  // namespace statescope::test
