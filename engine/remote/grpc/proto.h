// Messages from and to protobuf.
#pragma once

#include <string>
#include <string_view>

#include "engine/remote/messages.h"

namespace statescope::remote::proto {

class Request;
class Event;

Request to_proto(remote::Request request);
Event to_proto(remote::Event event);
/// Of anything that protobuf could read: what is missing has its usual value, what is not known is left out.
remote::Request from_proto(Request&& request);
remote::Event from_proto(Event&& event);

// The same, of bytes.
std::string bytes_of(const remote::Request& request);
std::string bytes_of(const remote::Event& event);
/// False where protobuf cannot read them.
bool read(std::string_view bytes, remote::Request& request);
bool read(std::string_view bytes, remote::Event& event);

}  // namespace statescope::remote::proto
