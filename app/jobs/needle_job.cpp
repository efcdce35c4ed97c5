#include "app/jobs/needle_job.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/run/reading.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostEvents = 1000;

TokenRange needle_of(const RunInfo& info, const std::string& prompt) {
  for (const TokenSpan& span : info.spans) {
    if (span.kind == SpanKind::needle) return {span.begin, span.end};
  }
  throw Error(prompt + ": no span of it is a needle: {\"part\": \"needle\", \"begin\": …, \"end\": …} in bytes");
}

/// Adds a layer, of its first memory whose rows have coefficients (of GSA the second).
void add_layer(NeedleReport& report, std::span<const MemoryTrace> memories, std::size_t events) {
  std::vector<NeedleFate>& fates = report.fates.emplace_back();
  std::vector<Survival>& survivals = report.survivals.emplace_back();
  const auto rows_decay = [](const MemoryTrace& trace) { return trace.decay_axis == DecayAxis::rows || trace.decay_width <= 1; };
  const auto memory = std::find_if(memories.begin(), memories.end(), rows_decay);
  if (memory == memories.end()) return;
  fates = needle_fates(*memory, report.needle, report.question, std::max<std::size_t>(events, 1));
  for (const NeedleFate& fate : fates) survivals.push_back(survival(*memory, fate.slot, fate.head, report.needle.begin, report.needle.end));
}

}  // namespace

NeedleFound do_job(const NeedleJob& job, const JobSite& site) {
  if (job.events < 0 || job.events > kMostEvents) throw Error("so many tokens of a head are not shown");
  const auto checkpoint = open_checkpoint(site.path);
  const std::shared_ptr<Model> model = Model::load(checkpoint, open_device(site.device));
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
  Reading reading(model, tokenizer, job.prompt, [&](double fraction) { return site.goes_on(fraction, "reading"); });
  refuse_not_finite(not_finite(reading.run()), site.checkpoint, "verdict");
  const RunInfo& info = *reading.info();
  const TokenRange needle = needle_of(info, job.prompt_name);
  if (info.prompt_length <= needle.end) throw Error(job.prompt_name + ": nothing follows its needle");

  std::vector<std::int32_t> ids;
  for (std::int64_t t = needle.begin; t < needle.end; ++t) ids.push_back(info.tokens[static_cast<std::size_t>(t)].id);
  NeedleFound found{.report = {.checkpoint = site.checkpoint,
                               .run = reading.info(),
                               .needle = needle,
                               .text = tokenizer->decode(ids),
                               .question = info.prompt_length - 1,
                               .fates = {},
                               .survivals = {},
                               .verdict = {},
                               .notes = model->notes()},
                    .remark = reading.run().remark()};
  MemoryTracer tracer(checkpoint, site.device.threads);
  for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
    site.say(static_cast<double>(layer) / static_cast<double>(model->layers()), "following the needle");
    const std::vector<float> residual = reading.run().residual(layer, 0, info.prompt_length);
    const std::vector<float> companion = reading.run().companion(layer, 0, info.prompt_length);
    add_layer(found.report, tracer.trace(layer, residual, info.prompt_length, nullptr, {}, companion),
              static_cast<std::size_t>(job.events));
  }
  found.report.verdict = verdict(found.report.fates);
  return found;
}

}  // namespace statescope
