// The lists of keys behind config_keys.h, as data.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "engine/config/config_keys.h"

namespace statescope {

struct KeyGroup {
  KeyUse use;
  std::string_view text;
  std::vector<std::string_view> keys;
};
using KeyTable = std::vector<KeyGroup>;

/// Family, or object of one's config, and its lists: the first that has a key says what it is.
const std::map<std::string_view, std::vector<const KeyTable*>>& key_tables();

}  // namespace statescope
