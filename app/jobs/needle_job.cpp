#include "app/jobs/needle_job.h"

#include <algorithm>
#include <functional>

#include "engine/answers/needle_places.h"
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
  throw Error(prompt +
              ": no span of it is a needle: {\"part\": \"needle\", \"begin\": …, \"end\": …} in bytes, or in tokens where it has ids");
}

/// The token after which the answer is predicted: before an answer that the prompt has itself, else its last.
std::int64_t question_of(const RunInfo& info, TokenRange needle) {
  for (const TokenSpan& span : info.spans) {
    if (span.kind == SpanKind::answer && span.begin >= needle.end) return span.begin - 1;
  }
  return info.prompt_length - 1;
}

void add_layer(NeedleReport& report, std::int64_t layer, std::size_t events, Evidence& evidence,
               const std::function<void(double part)>& say) {
  const std::vector<NeedlePlace> places =
      needle_places(layer, report.needle, report.question, std::max<std::size_t>(events, 1), evidence, say);
  report.fates.push_back(fates_of(places));
  std::vector<Survival>& survivals = report.survivals.emplace_back();
  for (const NeedlePlace& place : places) survivals.push_back(place.left);
}

}  // namespace

NeedleFound do_job(const NeedleJob& job, const JobSite& site) {
  if (job.events < 0 || job.events > kMostEvents) throw Error("so many tokens of a head are not shown");
  const auto checkpoint = open_checkpoint(site.path);
  const std::shared_ptr<Model> model = Model::load(checkpoint, open_device(site.device));
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
  const auto reading =
      std::make_shared<Reading>(model, tokenizer, job.prompt, [&](double fraction) { return site.goes_on(fraction, "reading"); });
  refuse_not_finite(not_finite(reading->run()), site.checkpoint, "verdict");
  const RunInfo& info = *reading->info();
  const TokenRange needle = needle_of(info, job.prompt_name);
  const std::int64_t question = question_of(info, needle);
  if (question < needle.end) throw Error(job.prompt_name + ": nothing follows its needle");

  std::vector<std::int32_t> ids;
  for (std::int64_t t = needle.begin; t < needle.end; ++t) ids.push_back(info.tokens[static_cast<std::size_t>(t)].id);
  NeedleFound found{.report = {.checkpoint = site.checkpoint,
                               .run = reading->info(),
                               .needle = needle,
                               .text = tokenizer->decode(ids),
                               .question = question,
                               .fates = {},
                               .survivals = {},
                               .verdict = {},
                               .notes = model->notes()},
                    .remark = reading->run().remark()};
  FairMutex mutex;
  Evidence evidence(reading, mutex, 0);
  for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
    const auto say = [&](double part) {
      site.say((static_cast<double>(layer) + part) / static_cast<double>(model->layers()), "following the needle");
    };
    say(0);
    add_layer(found.report, layer, static_cast<std::size_t>(job.events), evidence, say);
  }
  found.report.verdict = verdict(found.report.fates);
  return found;
}

}  // namespace statescope
