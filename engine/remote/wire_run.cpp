// What a session is told and tells of its runs, on the wire.
#include "engine/remote/wire_fields.h"

namespace statescope {

namespace remote {

template std::string pack(const Snapshot&);
template std::string pack(const Routing&);
template std::string pack(const RunInfo&);
template std::string pack(const BranchTree&);
template std::string pack(const PromptInput&);
template std::string pack(const std::vector<Intervention>&);
template std::string pack(const RunPlace&);
template std::string pack(const std::optional<NotFiniteWeight>&);
template Snapshot unpack(std::string_view);
template Routing unpack(std::string_view);
template RunInfo unpack(std::string_view);
template BranchTree unpack(std::string_view);
template PromptInput unpack(std::string_view);
template std::vector<Intervention> unpack(std::string_view);
template RunPlace unpack(std::string_view);
template std::optional<NotFiniteWeight> unpack(std::string_view);

// A failure is made of what was thrown.
template <>
std::string pack(const Failure& failure) {
  auto [kind, message] = failure;
  Writer writer;
  writer(Choice{kind, Failure::Kind::unknown_word}, message);
  return writer.take();
}
template <>
Failure unpack(std::string_view bytes) {
  return read_whole(bytes, [](Reader& reader) {
    Failure failure = Error("");
    auto& [kind, message] = failure;
    Choice known{kind, Failure::Kind::unknown_word};
    reader(known, message);
    return failure;
  });
}

}  // namespace remote
}  // namespace statescope
