#include <fmt/format.h>

#include <algorithm>

#include "app/cli_commands.h"
#include "engine/analysis/needle_fate.h"
#include "engine/error.h"
#include "engine/run/reading.h"

namespace statescope {
namespace {

TokenRange needle_of(const RunInfo& info, const std::string& prompt) {
  for (const TokenSpan& span : info.spans) {
    if (span.kind == SpanKind::needle) return {span.begin, span.end};
  }
  throw Error(prompt + ": no span of it is a needle: {\"part\": \"needle\", \"begin\": …, \"end\": …} in bytes");
}

/// "119 '8' (decay 0.12)"
std::string event_text(const LossEvent& event, const RunInfo& info) {
  return fmt::format("{} '{}' ({} {:.3f})", event.token, info.tokens[static_cast<std::size_t>(event.token)].text,
                     event.cause == Loss::decay ? "decay" : "erase", event.lost);
}

void print_head(const NeedleFate& fate, const LayerInfo& layer, const RunInfo& info) {
  const std::string slot = layer.slots() > 1 ? fmt::format("{}, ", layer.slot_names[static_cast<std::size_t>(fate.slot)]) : "";
  fmt::print("    {}head {}: wrote {:.3g}, kept {:.3f}, decay took {:.3f}, erased {:.3f}; ", slot, fate.head, fate.written, fate.kept,
             fate.decayed, fate.erased);
  fmt::print(
      "{}", fate.visited ? fmt::format("{:.3f} of what is read here is the needle's", fate.read_share) : "the question does not come here");
  for (std::size_t i = 0; i < fate.events.size(); ++i) fmt::print("{} {}", i == 0 ? "; most at" : ",", event_text(fate.events[i], info));
  fmt::print("\n");
}

/// Of a layer's first memory whose rows have coefficients (of GSA the second).
void print_layer(std::int64_t index, std::span<const MemoryTrace> memories, const RunInfo& info, TokenRange needle,
                 const NeedleArguments& arguments) {
  const LayerInfo& layer = info.model.layers[static_cast<std::size_t>(index)];
  const auto rows_decay = [](const MemoryTrace& trace) { return trace.decay_axis == DecayAxis::rows || trace.decay_width <= 1; };
  const auto memory = std::find_if(memories.begin(), memories.end(), rows_decay);
  if (memory == memories.end()) return fmt::print("  layer {} {}: no matrix memory\n", index, layer.mixer);
  const auto question = static_cast<std::int64_t>(info.prompt_length) - 1;
  const std::vector<NeedleFate> fates = needle_fates(*memory, needle, question, static_cast<std::size_t>(arguments.events));
  fmt::print("  layer {} {}: {}\n", index, layer.mixer, summary(fates).text());
  for (std::size_t i = 0; i < std::min(fates.size(), static_cast<std::size_t>(arguments.heads)); ++i) print_head(fates[i], layer, info);
}

}  // namespace

int needle_command(const NeedleArguments& arguments) {
  const auto checkpoint = open_checkpoint(arguments.checkpoint);
  const std::shared_ptr<Model> model = Model::load(checkpoint, open_device(arguments.device));
  std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
  Reading reading(model, tokenizer, load_prompt(arguments.prompt));
  if (const std::string remark = reading.run().remark(); !remark.empty()) fmt::print(stderr, "note: {}\n", remark);
  const RunInfo& info = *reading.info();
  const TokenRange needle = needle_of(info, arguments.prompt.file);
  if (info.prompt_length <= needle.end) throw Error(arguments.prompt.file + ": nothing stands behind its needle");

  std::vector<std::int32_t> ids;
  for (std::int64_t t = needle.begin; t < needle.end; ++t) ids.push_back(info.tokens[static_cast<std::size_t>(t)].id);
  fmt::print("{}: tokens {} to {}, \"{}\"; asked after token {}\n", arguments.checkpoint, needle.begin, needle.end - 1,
             tokenizer->decode(ids), info.prompt_length - 1);
  MemoryTracer tracer(checkpoint, arguments.device.threads);
  for (std::int64_t layer = 0; layer < model->layers(); ++layer)
    print_layer(layer, tracer.trace(layer, reading.run().residual(layer, 0, info.prompt_length), info.prompt_length), info, needle,
                arguments);
  return 0;
}

}  // namespace statescope
