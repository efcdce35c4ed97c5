#include "app/figure/view_answers.h"

#include "engine/answers/answers.h"
#include "engine/error.h"

namespace statescope {

Findings answers(const std::vector<Question>& questions, Evidence& evidence) {
  Findings findings;
  for (const Question& question : questions) {
    try {
      findings.set(question, {find_out(question, evidence), {}, 1});
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      findings.set(question, {nullptr, error.what(), 1});
    }
  }
  return findings;
}

std::int64_t interesting_layer(const ModelInfo& model) {
  for (const bool routed : {true, false}) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      if (routed ? model.layers[i].partitions > 0 : model.layers[i].has_state()) return static_cast<std::int64_t>(i);
    }
  }
  return 0;
}

}  // namespace statescope
