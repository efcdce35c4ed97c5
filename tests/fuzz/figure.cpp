// Any bytes as a figure's spec, as what a figure says it was made from, and as a figure: refused with one line, or read back as written.
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "app/figure/provenance.h"

namespace {

template <class Read>
void try_to(const Read& read) try {
  read();
} catch (const std::runtime_error& error) {
  if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace statescope;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_to([&] {
    const std::string text = to_json(parse_figure_spec(bytes, "spec"));
    if (to_json(parse_figure_spec(text, "spec")) != text) std::abort();
  });
  try_to([&] { parse_provenance(bytes, "figure"); });
  try_to([&] { parse_provenance(provenance_in(bytes, "figure"), "figure"); });
  return 0;
}
