// What an engine sends, as gRPC hands it over: messages, each behind two bytes of its length. A client understands them, or throws
// WireError.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "app/remote/run_table.h"
#include "engine/remote/grpc/proto.h"
#include "engine/remote/wire.h"

namespace {

using namespace statescope;

void understand(ToldRuns& runs, const remote::Event& event) try {
  if (const auto* told = std::get_if<remote::RunDefined>(&event.told)) runs.define(*told);
  if (const auto* told = std::get_if<remote::RoutingDefined>(&event.told)) runs.define(*told);
  if (const auto* told = std::get_if<remote::RunShown>(&event.told); told && !runs.run(told->run)) std::abort();
  if (const auto* told = std::get_if<remote::BranchesChanged>(&event.told)) {
    const auto tree = runs.tree(*told);
    if (tree->current >= std::ssize(tree->runs)) std::abort();
  }
  if (const auto* told = std::get_if<remote::Shown>(&event.told)) {
    const auto snapshot = runs.snapshot(*told);
    if (!snapshot->run || snapshot->token >= std::ssize(snapshot->run->tokens)) std::abort();
  }
  if (const auto* told = std::get_if<remote::Failed>(&event.told)) remote::unpack<Failure>(told->failure);
  if (const auto* told = std::get_if<remote::Placed>(&event.told)) remote::unpack<RunPlace>(told->place);
  if (const auto* told = std::get_if<remote::Found>(&event.told)) remote::unpack_finding(StateQuestion{}, told->finding);
} catch (const remote::WireError& error) {
  if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ToldRuns runs;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  while (bytes.size() >= 2) {
    const std::size_t length = static_cast<std::uint8_t>(bytes[0]) + (std::size_t{static_cast<std::uint8_t>(bytes[1])} << 8);
    bytes.remove_prefix(2);
    remote::Event event;
    if (remote::proto::read(bytes.substr(0, length), event)) understand(runs, event);
    bytes.remove_prefix(std::min(length, bytes.size()));
  }
  return 0;
}
