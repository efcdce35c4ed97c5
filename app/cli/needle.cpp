#include <fmt/format.h>

#include <algorithm>

#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/common/running.h"
#include "app/needle/report.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/run/reading.h"

namespace statescope {
namespace {

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

int needle_command(const NeedleArguments& arguments) {
  ReportFile json_file(arguments.json, arguments.force), page(arguments.html, arguments.force);
  const auto checkpoint = open_checkpoint(arguments.checkpoint);
  const std::shared_ptr<Model> model = load_model(checkpoint, arguments.device);
  std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
  Reading reading(model, tokenizer, load_prompt(arguments.prompt));
  if (const std::string remark = reading.run().remark(); !remark.empty()) print_note(remark);
  refuse_not_finite(not_finite(reading.run()), *model, "verdict");
  const RunInfo& info = *reading.info();
  const TokenRange needle = needle_of(info, arguments.prompt.file);
  if (info.prompt_length <= needle.end) throw Error(arguments.prompt.file + ": nothing follows its needle");

  std::vector<std::int32_t> ids;
  for (std::int64_t t = needle.begin; t < needle.end; ++t) ids.push_back(info.tokens[static_cast<std::size_t>(t)].id);
  NeedleReport report{.checkpoint = arguments.checkpoint,
                      .run = reading.info(),
                      .needle = needle,
                      .text = tokenizer->decode(ids),
                      .question = info.prompt_length - 1,
                      .fates = {},
                      .survivals = {},
                      .verdict = {},
                      .notes = model->notes()};
  const auto events = static_cast<std::size_t>(arguments.events);
  MemoryTracer tracer(checkpoint, arguments.device.threads);
  for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
    const std::vector<float> residual = reading.run().residual(layer, 0, info.prompt_length);
    const std::vector<float> companion = reading.run().companion(layer, 0, info.prompt_length);
    add_layer(report, tracer.trace(layer, residual, info.prompt_length, nullptr, {}, companion), events);
  }
  report.verdict = verdict(report.fates);
  print_report(needle_text(report, static_cast<std::size_t>(arguments.heads), events), {&json_file, &page});
  json_file.write(needle_json(report));
  page.write(needle_html(report));
  return 0;
}

}  // namespace statescope
