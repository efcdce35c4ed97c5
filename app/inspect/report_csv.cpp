// An inspection in long format, for R, pandas or a spreadsheet.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "app/inspect/report.h"

namespace statescope {
namespace {

/// RFC 4180: in quotation marks where it has to be.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

class Lines {
 public:
  Lines(const Inspected& inspected, std::size_t sequence)
      : start_(fmt::format("{},{},{},{}", field(inspected.checkpoint), inspected.steps > 0 ? std::to_string(inspected.steps) : "",
                           field(inspected.names[sequence]), inspected.sequences[sequence].tokens)) {}
  void add(const std::string& layer, const std::string& part, std::string_view quantity, double value, bool at_least = false) {
    if (!std::isnan(value)) text += fmt::format("{},{},{},{},{},{}\n", start_, layer, field(part), quantity, value, at_least ? ">=" : "=");
  }
  void add(const std::string& layer, const std::string& part, std::string_view quantity, const std::optional<double>& value,
           bool at_least = false) {
    if (value) add(layer, part, quantity, *value, at_least);
  }
  std::string text;

 private:
  std::string start_;
};

void add_layer(Lines& lines, const std::string& l, const LayerReport& layer) {
  lines.add(l, "", "residual_norm", layer.residual_norm);
  lines.add(l, "", "read_effect", layer.read_effect);
  lines.add(l, "", "likest_heads_cosine", layer.likest_heads);
  lines.add(l, "", "longest_half_life", layer.longest_half_life);
  lines.add(l, "", "shortest_half_life", layer.shortest_half_life);
  for (const Moments& moments : layer.moments) {
    const std::string at = fmt::format("after {}", moments.tokens);
    lines.add(l, at, "state_norm", moments.norm);
    lines.add(l, at, "state_mean", moments.mean);
    lines.add(l, at, "state_variance", moments.variance);
    lines.add(l, at, "state_largest", moments.largest);
  }
  for (std::size_t h = 0; h < layer.heads.size(); ++h) {
    const std::string part = fmt::format("head {}", h);
    lines.add(l, part, "effective_rank", layer.heads[h].stacked.rank);
    lines.add(l, part, "spectral_entropy", layer.heads[h].stacked.entropy);
    lines.add(l, part, "mean_abs_cosine", layer.heads[h].rows.mean_abs);
  }
  for (const SlotReport& slot : layer.slots) {
    const std::string part = "slot " + slot.name;
    lines.add(l, part, "state_norm", slot.norm);
    lines.add(l, part, "load", slot.load);
    lines.add(l, part, "half_life", slot.half_life);
    lines.add(l, part, "receptive_field", slot.receptive_field, slot.censored.value_or(0) > 0);
    lines.add(l, part, "censored", slot.censored);
  }
  if (!layer.routing) return;
  lines.add(l, "", "load_entropy", layer.routing->load_entropy);
  lines.add(l, "", "token_entropy", layer.routing->token_entropy);
}

}  // namespace

std::string inspection_csv(const std::vector<Inspected>& all) {
  std::string text = "checkpoint,steps,sequence,tokens,layer,part,quantity,value,bound\n";
  for (const Inspected& inspected : all) {
    for (std::size_t i = 0; i < inspected.sequences.size(); ++i) {
      const SequenceReport& report = inspected.sequences[i];
      Lines lines(inspected, i);
      lines.add("", "", "nll", report.predicting.nll);
      lines.add("", "", "asked_nll", report.predicting.asked);
      lines.add("", "", "all_reads_effect", report.all_reads_effect);
      for (std::size_t l = 0; l < report.layers.size(); ++l) add_layer(lines, std::to_string(l), report.layers[l]);
      text += lines.text;
    }
  }
  return text;
}

}  // namespace statescope
