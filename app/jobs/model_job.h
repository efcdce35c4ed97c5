// What a model is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/common/job_site.h"
#include "engine/snapshot.h"

namespace statescope {

struct ModelFound {
  /// What some layers compute, line by line.
  struct Program {
    std::string text;
    std::vector<std::int64_t> layers;
  };
  ModelInfo info;
  std::vector<std::string> details;  // of each layer (layer_details.h)
  std::int64_t hidden = 0, vocab = 0;
  std::vector<Program> programs = {};  // each once; empty: they were not asked for
};

struct ModelJob {
  using Found = ModelFound;
  bool programs = false;
  std::optional<std::int64_t> layer = {};  // of the programs; unset: each kind of layer once
  bool after_passes = false, one_token = false;
};
/// Throws Error.
ModelFound do_job(const ModelJob& job, const JobSite& site);

}  // namespace statescope
