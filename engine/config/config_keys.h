// What every key of a config.json means to a family's forward pass: it is computed with, it does nothing there, or one value alone is
// right. A key that no list has may change the mathematics, so it is refused by name. The lists are key_tables.cpp, which reads
// as a table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/config.h"

namespace statescope {

enum class KeyUse {
  computed,  // the forward pass reads it
  harmless,  // nothing that is computed depends on it
  fixed,     // the forward pass is that of one value
  with,      // harmless as long as another key is false
};

struct KeyRule {
  KeyUse use;
  std::string_view text;  // harmless: why; fixed: the value, as JSON or in terms of head_dim; with: the other key
};

/// What `key` is to a family's config, to "attn", "sla" or "row_sparse" of it, to "rope" settings, or to the "wrapper" around a text model;
/// none: unknown. `where` is the family, or family and name as in "gla.attn".
std::optional<KeyRule> key_rule(std::string_view where, std::string_view key);

/// Throws Error naming the keys of a model's config, and of the objects in it, that are unknown or not of the one value that is computed.
/// A null counts as absent.
void require_known_keys(const Config& config, std::string_view family);

/// The same for the settings of rotary positions (mixers/rope.h).
void require_known_rope_keys(const Config& settings);

/// The same for what stands around a text model's config: a key that the text config has too must have its value there.
void require_known_wrapper_keys(const Config& wrapper, const Config& text_config);

}  // namespace statescope
