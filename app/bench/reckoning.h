// How fast a model of which only the config is there would decode on GPUs that nobody has to have: where its layers would lie, what one
// token would move through their memory, and what that takes at best.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/config/config.h"
#include "engine/model/placement.h"
#include "engine/model/token_traffic.h"

namespace statescope {

/// As data sheets say: bytes, and bytes a second.
struct GpuKind {
  std::string name;  // "H100 SXM"; empty: nobody has said
  double memory = 0, bandwidth = 0;
  double link = 0;  // to the next GPU, one way
};

/// The host that runs what has no room on the GPUs; without memory: there is none.
struct HostKind {
  double memory = 0, bandwidth = 0;
};

/// A model's config, and what follows from it.
struct PaperModel {
  std::string name;
  Config config;
  Plan plan;
  DType dtype = DType::bf16;  // of its matrices
  double parameters = 0;
  std::vector<PartBytes> parts;
  std::vector<TokenTraffic> traffic;  // of one token, as `parts`

  double takes() const;    // bytes on devices, with what kPlacedTokens leave behind
  double weights() const;  // bytes that one token reads
  double states() const;   // reads and writes
  double cache() const;    // reads for each token before it
};
/// Of a config.json, or the folder that holds it; its matrices are of the type that it names. Throws Error.
PaperModel paper_model(const std::filesystem::path& path);

/// Decoding one token after `context` others.
struct Reckoned {
  std::vector<std::int64_t> layers;  // on each device; the host is the last, where it has some
  std::vector<std::string> reasons;  // Placement::reasons
  double memory_seconds = 0;         // the devices take their turns: the sum of what each reads and writes over its bandwidth
  double link_seconds = 0;           // of the residual stream from one to the next, and back to the first for the head
  std::string no_room;               // why it does not fit; empty: it does

  double seconds() const { return memory_seconds + link_seconds; }
};
Reckoned reckon(std::span<const PartBytes> parts, std::span<const TokenTraffic> traffic, std::int64_t hidden, int gpus, const GpuKind& kind,
                const HostKind& host, std::int64_t context);

/// What is known of GPUs, and which share of its limit decoding has reached where it was measured.
struct KnownGpus {
  std::vector<GpuKind> kinds;
  double reached = 1;
  std::string where;
};
/// assets/placement/gpus.json
KnownGpus known_gpus(const std::filesystem::path& file);

}  // namespace statescope
