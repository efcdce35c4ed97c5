// Lists of keys that families of several files of tables have in common.
#pragma once

#include "engine/config/key_tables.h"

namespace statescope {

extern const KeyTable kMamba2;                                                                     // of flash-linear-attention
extern const KeyTable kGeneral, kWellKnown;                                                        // of any model
extern const KeyTable kHybridModel, kHybridAttention, kHybridPositions, kNoPositions, kTimeSteps;  // of models that Transformers has

/// The rows of recurrent families beyond the first set (spec §17).
std::map<std::string_view, std::vector<const KeyTable*>> recurrent_key_tables();

}  // namespace statescope
