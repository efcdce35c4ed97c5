// The model: its layers from the embedding up to the head, what each one remembers with, how large it is.
#pragma once

#include <string>
#include <vector>

#include "views/plot.h"
#include "views/view.h"

namespace statescope {

/// What a layer remembers with, told apart by the sign in front of it.
enum class LayerSign {
  matrix,      // one matrix a head: a grid
  partitions,  // several, among which tokens are routed: small grids
  tokens,      // keys and values of every token: lines that become longer
  none,        // none of these, and embedding, last norm and head: an empty frame
};

struct LayerBox {
  std::int64_t layer = -1;  // −1: not a layer
  std::string name;         // "2  sse"; "embedding"
  std::string memory;       // "decayed outer product"
  std::string size;         // "4 heads of 64 × 64, shared and 4 partitions"
  LayerSign sign = LayerSign::none;
  std::vector<std::int64_t> identities;  // of the slots, drawn in the sign; empty without partitions
  bool chosen = false;
  std::string parameters, state;               // "1.2 M parameters"; "state 328 kB", "512 B a token"; empty while they are counted
  float parameter_count = 0, state_bytes = 0;  // the same; of layers whose state grows: a token
};

struct ModelMapData {
  Message message;      // instead of all else
  std::string summary;  // "niah-sse: sse, 4 layers, 1.2 M parameters"
  std::string device;
  std::vector<LayerBox> boxes;  // bottom first
  std::int64_t layer = 0;
  std::string counting;                      // why no sizes are shown; empty: they are
  bool with_program = false;                 // shown in the place of the tensors
  std::vector<ModelMap::TensorRow> tensors;  // of the chosen layer
  std::vector<std::string> program;          // of the chosen layer; empty: it has no mixer
};

/// "987", "1.23 k", "45.6 M"
std::string count_text(std::int64_t count);
/// "320 B", "1.5 kB", "12 MB": thousands
std::string bytes_text(std::int64_t bytes);

/// "64 × 128"
std::string shape_text(const std::vector<std::int64_t>& shape);

ModelMapData build_model_map(const Snapshot& snapshot, const Findings& findings, bool with_program = false);
void draw(const ModelMapData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_model_map();

}  // namespace statescope
