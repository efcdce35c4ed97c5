#include "app/jobs/model_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/jobs/layer_details.h"
#include "engine/model/model.h"
#include "engine/place_words.h"
#include "kernels/passes/passes.h"

namespace statescope {
namespace {

std::string program_of(const Model& model, std::int64_t layer, const ModelJob& job) {
  if (model.mixer(layer) == nullptr) return "this layer has no mixer\n";
  const program::Program& program = model.mixer(layer)->program();
  if (!job.after_passes) return program::to_string(program);
  const program::Purpose purpose{.wanted = std::vector<bool>(program.channels.size(), false), .one_token = job.one_token};
  return program::to_string(program::compiled(program, purpose));
}

std::vector<ModelFound::Program> programs_of(const Model& model, const ModelJob& job) {
  std::vector<ModelFound::Program> programs;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    if (job.layer && layer != *job.layer) continue;
    std::string text = program_of(model, layer, job);
    auto known = std::ranges::find(programs, text, &ModelFound::Program::text);
    if (known == programs.end()) known = programs.insert(programs.end(), {std::move(text), {}});
    known->layers.push_back(layer);
  }
  return programs;
}

}  // namespace

ModelFound do_job(const ModelJob& job, const JobSite& site) {
  const auto model = Model::load(open_checkpoint(site.path), open_device(site.device));
  if (job.layer) check_index("layer", *job.layer, model->layers());
  return {.info = model->info(),
          .details = layer_details(*model),
          .hidden = model->hidden(),
          .vocab = model->vocab(),
          .programs = job.programs ? programs_of(*model, job) : std::vector<ModelFound::Program>()};
}

}  // namespace statescope
