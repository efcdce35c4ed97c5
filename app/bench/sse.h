// How fast the three ways to compute SSE are, over length and over the number of partitions (SSE Fig. 6), and the file that keeps it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device.h"

namespace statescope {

/// Of one layer's memory of `heads` heads of `head_dim` × `head_dim`, the decayed outer product, `chosen` partitions a token.
struct SseTiming {
  std::string form;  // "sequential", "masking" or "varlen"
  std::int64_t length = 0, partitions = 0;
  double seconds = 0, least = 0, most = 0;  // median and ends of the repeats
};
struct SseTimings {
  std::string device;  // Backend::description
  std::int64_t heads = 0, head_dim = 0, chosen = 0;
  std::vector<SseTiming> timings;
};

/// What is measured: a token sequence of `length` with `partitions` partitions.
struct SsePlace {
  std::int64_t length = 0, partitions = 0;
};
/// Every pair of what is given; a list that is empty stands for one usual value, both for the two sweeps of the figure.
std::vector<SsePlace> sse_places(std::vector<std::int64_t> lengths, std::vector<std::int64_t> partitions, bool on_device);

/// Checks that the forms agree, then times them. `tell` gets each line of numbers as it is known. Throws DeviceError, and Error where the
/// forms differ.
SseTimings measure_sse(const DeviceChoice& device, const std::vector<SsePlace>& places, const std::function<void(std::string)>& tell);

std::string to_json(const SseTimings& timings);
/// What to_json wrote. Throws Error: `name` and what is wrong.
SseTimings parse_sse_timings(std::string_view text, const std::string& name);
SseTimings load_sse_timings(const std::filesystem::path& path);

}  // namespace statescope
