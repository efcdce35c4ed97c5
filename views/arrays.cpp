#include "views/arrays.h"

#include "views/parts.h"

namespace statescope {

ArrayAxis counted_axis(std::string name, std::int64_t count) { return {.name = std::move(name), .unit = {}, .count = count}; }

ArrayAxis named_axis(std::string name, std::vector<std::string> labels) {
  const std::int64_t count = std::ssize(labels);
  return {.name = std::move(name), .unit = {}, .labels = std::move(labels), .count = count};
}

ArrayAxis token_axis(const TokenAxis& tokens) {
  ArrayAxis axis{.name = "token", .unit = {}, .count = tokens.count()};
  for (const std::int32_t token : tokens.tokens) {
    axis.coordinates.push_back(token);
    axis.labels.push_back(visible_token(*tokens.run, token));
  }
  return axis;
}

std::int64_t room(const std::vector<ArrayAxis>& axes) {
  std::int64_t values = 1;
  for (const ArrayAxis& axis : axes) values *= axis.count;
  return values;
}

}  // namespace statescope
