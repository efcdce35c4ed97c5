// A run source that answers from hand-made snapshots, when the test says so.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "app/runs/run_source.h"

namespace statescope {

/// `tokens` tokens, needle [3, 6), question [12, 15); layers 0 and 1 route to 4 partitions, layer 2 keeps no state.
inline std::shared_ptr<const RunInfo> fake_run(std::int64_t tokens, std::string name = "fake") {
  static const char* const words[] = {"the",  " grass", " was", " anna", " is",  " 4177", " .",    " the",
                                      " old", " mill",  " .",   "\n",    "what", " is",   " anna", " ?"};
  LayerInfo layer{.mixer = "sse",
                  .memory = "decayed outer product",
                  .slot_names = {"shared", "1", "2", "3", "4"},
                  .heads = 2,
                  .rows = 24,
                  .columns = 32,
                  .partitions = 4,
                  .has_shared_slot = true};
  RunInfo run;
  run.model = {
      .name = std::move(name),
      .family = "sse_gla",
      .device = "CPU, 2 threads",
      .parameters = 1'234'567,
      .weight_bytes = 0,
      .layers = {layer, layer, {.mixer = "softmax_attention", .memory = "softmax attention", .slot_names = {}, .attention_heads = 3}}};
  for (std::int64_t t = 0; t < tokens; ++t) run.tokens.push_back({static_cast<std::int32_t>(t), words[t % 16]});
  run.spans = {{SpanKind::needle, 3, 6}, {SpanKind::question, 12, 15}};
  run.prompt_length = tokens;
  return std::make_shared<const RunInfo>(std::move(run));
}

/// The state's cell (slot, head, row, column) after `token`: a function of the last token that the slot was written by.
inline float fake_cell(std::int64_t layer, std::int64_t token, std::int64_t slot, std::int64_t head, std::int64_t row,
                       std::int64_t column) {
  const std::int64_t last = slot == 0 ? token : token - (token - (slot - 1) + 4) % 4;
  if (last < 0) return 0;
  const auto phase = static_cast<float>(last * 7 + layer * 3 + head);
  return std::sin(phase * 0.7f + static_cast<float>(row) * 0.9f) * std::cos(phase * 0.3f + static_cast<float>(column) * 0.4f);
}

inline HeadState fake_state(const LayerInfo& info, std::int64_t layer, std::int64_t head, std::int64_t token) {
  HeadState state{info.slots(), info.heads, info.rows, info.columns, {}};
  for (std::int64_t s = 0; s < state.slots; ++s)
    for (std::int64_t r = 0; r < state.rows; ++r)
      for (std::int64_t c = 0; c < state.columns; ++c) state.values.push_back(token < 0 ? 0 : fake_cell(layer, token, s, head, r, c));
  return state;
}

inline std::shared_ptr<const Snapshot> fake_snapshot(std::shared_ptr<const RunInfo> run, std::int64_t layer, std::int64_t head,
                                                     std::int64_t token) {
  const LayerInfo& info = run->model.layers[static_cast<std::size_t>(layer)];
  Snapshot snapshot;
  snapshot.layer = layer;
  snapshot.head = head;
  snapshot.token = token;
  if (info.has_state()) {
    snapshot.state = fake_state(info, layer, head, token);
    snapshot.before = fake_state(info, layer, head, token - 1);
    Routing routing{.partitions = info.partitions, .gate = {}, .selected = {}};
    for (std::int64_t t = 0; t < static_cast<std::int64_t>(run->tokens.size()); ++t)
      for (std::int64_t n = 0; n < info.partitions; ++n) {
        routing.gate.push_back(t % 4 == n ? 0.7f : 0.1f);
        routing.selected.push_back(t % 4 == n);
      }
    snapshot.routing = std::make_shared<const Routing>(std::move(routing));
  }
  snapshot.predictions = {{1, " mill", 0.61f}, {2, " house", 0.2f}, {3, " old", 0.08f}, {4, "\n", 0.03f}, {5, " .", 0.01f}};
  snapshot.accuracy = kReplayed;
  snapshot.run = std::move(run);
  return std::make_shared<const Snapshot>(std::move(snapshot));
}

class FakeSource : public RunSource {
 public:
  struct Request {
    std::int64_t layer, head, token;
    std::function<void(std::shared_ptr<const Snapshot>)> done;
  };

  void open(std::filesystem::path checkpoint, PromptInput prompt, Session::OpenCallbacks callbacks) override {
    opened = std::move(checkpoint);
    read(std::move(prompt), std::move(callbacks));
  }
  void read(PromptInput prompt, Session::OpenCallbacks callbacks) override {
    read_prompt = std::move(prompt);
    opening = std::move(callbacks);
  }
  void generate(std::int64_t tokens, Session::OpenCallbacks callbacks) override {
    generated = tokens;
    opening = std::move(callbacks);
  }
  void cancel() override { ++cancelled; }
  void intervene(std::vector<Intervention> interventions, Session::OpenCallbacks callbacks) override {
    intervened = std::move(interventions);
    opening = std::move(callbacks);
  }
  void add_run(PromptInput prompt, Session::OpenCallbacks callbacks) override {
    added = std::move(prompt);
    opening = std::move(callbacks);
  }
  void undo(Session::OpenCallbacks callbacks) override { opening = std::move(callbacks); }
  void redo(Session::OpenCallbacks callbacks) override { opening = std::move(callbacks); }
  void go_to_branch(std::int64_t, Session::OpenCallbacks callbacks) override { opening = std::move(callbacks); }
  void save(std::filesystem::path, std::function<void()> saved, std::function<void(std::string)>) override { saved(); }
  void open_session(std::filesystem::path path, std::filesystem::path, Session::OpenCallbacks callbacks) override {
    opened = std::move(path);
    opening = std::move(callbacks);
  }
  void show(std::int64_t layer, std::int64_t head, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) override {
    requests.push_back({layer, head, token, std::move(done)});
    if (at_once) answer_all();
  }
  void ask(int asker, std::shared_ptr<const RunInfo> run_, std::vector<Question> questions,
           std::function<void(Question, Finding)> tell) override {
    asked[asker] = {std::move(run_), std::move(questions), std::move(tell)};
  }

  ModelFacts facts() const override { return known; }

  /// As far as it has come: more is being generated.
  void grow(std::shared_ptr<const RunInfo> run_) {
    run = std::move(run_);
    opening.run(run);
  }
  void stand(std::shared_ptr<const RunInfo> run_) {
    grow(std::move(run_));
    opening.done();
  }
  void answer(const Request& request) { request.done(fake_snapshot(run, request.layer, request.head, request.token)); }
  void answer_all() {
    for (const Request& request : std::exchange(requests, {})) answer(request);
  }

  struct Asked {
    std::shared_ptr<const RunInfo> run;
    std::vector<Question> questions;
    std::function<void(Question, Finding)> tell;
  };

  ModelFacts known;
  std::filesystem::path opened;
  PromptInput read_prompt;
  std::int64_t generated = 0;  // of the whole run, as wanted
  PromptInput added;
  std::vector<Intervention> intervened;
  Session::OpenCallbacks opening;
  std::shared_ptr<const RunInfo> run;
  std::deque<Request> requests;  // not yet answered
  std::map<int, Asked> asked;    // by asker, never answered by itself
  bool at_once = true;           // answer every request as it comes
  int cancelled = 0;
};

}  // namespace statescope
