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

/// "119 '8'"
std::string token_text(std::int64_t token, const RunInfo& info) {
  return fmt::format("{} '{}'", token, info.tokens[static_cast<std::size_t>(token)].text);
}

/// "partition 2, head 0"; without the slot where there is but one.
std::string place_text(std::int64_t slot, std::int64_t head, const LayerInfo& layer) {
  if (layer.slots() == 1) return fmt::format("head {}", head);
  const std::string& name = layer.slot_names[static_cast<std::size_t>(slot)];
  return fmt::format("{}{}, head {}", name == "shared" ? "" : "partition ", name, head);
}

void print_head(const NeedleFate& fate, const LayerInfo& layer, const RunInfo& info, std::size_t events) {
  fmt::print("    {}: wrote {:.3g}, kept {:.3f}; ", place_text(fate.slot, fate.head, layer), fate.written, fate.kept);
  if (fate.read) {
    fmt::print("{:.3f} is left clear, {:.3f} of what is read here is the needle's", fate.readable(), fate.read_share);
  } else {
    fmt::print("the question does not read here");
  }
  for (std::size_t i = 0; i < std::min(fate.events.size(), events); ++i) {
    const LossEvent& event = fate.events[i];
    fmt::print("{} {} ({} {:.3f})", i == 0 ? "; most at" : ",", token_text(event.token, info), name_of(event.cause), event.lost);
  }
  fmt::print("\n");
}

/// Of a layer's first memory whose rows have coefficients (of GSA the second). Returns its fates.
std::vector<NeedleFate> print_layer(std::int64_t index, std::span<const MemoryTrace> memories, const RunInfo& info, TokenRange needle,
                                    const NeedleArguments& arguments) {
  const LayerInfo& layer = info.model.layers[static_cast<std::size_t>(index)];
  const auto rows_decay = [](const MemoryTrace& trace) { return trace.decay_axis == DecayAxis::rows || trace.decay_width <= 1; };
  const auto memory = std::find_if(memories.begin(), memories.end(), rows_decay);
  if (memory == memories.end()) {
    fmt::print("  layer {} {}: no matrix memory\n", index, layer.mixer);
    return {};
  }
  const auto question = static_cast<std::int64_t>(info.prompt_length) - 1;
  const auto events = static_cast<std::size_t>(arguments.events);
  std::vector<NeedleFate> fates = needle_fates(*memory, needle, question, std::max<std::size_t>(events, 1));
  fmt::print("  layer {} {}: {}\n", index, layer.mixer, summary(fates).text());
  for (std::size_t i = 0; i < std::min(fates.size(), static_cast<std::size_t>(arguments.heads)); ++i)
    print_head(fates[i], layer, info, events);
  return fates;
}

/// The line that answers, then the causes of death over all layers and heads.
void print_verdict(const NeedleVerdict& verdict, const RunInfo& info, std::size_t shown) {
  if (verdict.losses.empty()) return fmt::print("  nothing of the needle was lost in a matrix memory\n");
  fmt::print("  of what the needle wrote {}\n", verdict.summary.text());
  for (std::size_t i = 0; i < std::min(verdict.losses.size(), shown); ++i) {
    const NeedleLoss& loss = verdict.losses[i];
    const LayerInfo& layer = info.model.layers[static_cast<std::size_t>(loss.layer)];
    fmt::print("    {}. {} took {:.3f} in layer {}, {}, most at {}\n", i + 1, name_of(loss.cause), loss.lost, loss.layer,
               place_text(loss.slot, loss.head, layer), token_text(loss.token, info));
  }
  fmt::print("  parts of 1, {}; layers count the same, heads by the squares of what was written\n", NeedleVerdict::accuracy.text());
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
  std::vector<std::vector<NeedleFate>> fates;
  for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
    const std::vector<float> residual = reading.run().residual(layer, 0, info.prompt_length);
    fates.push_back(print_layer(layer, tracer.trace(layer, residual, info.prompt_length), info, needle, arguments));
  }
  constexpr std::size_t causes = 8;
  print_verdict(verdict(fates), info, causes);
  return 0;
}

}  // namespace statescope
