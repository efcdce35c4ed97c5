#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "app/cli/run_outcome.h"
#include "app/common/console.h"
#include "app/common/recording.h"
#include "app/common/running.h"
#include "app/jobs/branch_report.h"
#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/place_words.h"
#include "engine/run/dump.h"
#include "engine/run/not_finite.h"
#include "engine/run/reading.h"
#include "engine/session/session_file.h"
#include "engine/tokenizer/tokenizer.h"
#include "views/parts.h"

namespace statescope {
namespace {

constexpr std::int64_t kSpan = 512;  // tokens of one forward pass

/// Reads tokens with a model, straight through; a dump, if there is one, sees everything.
class Reader {
 public:
  Reader(Model& model, const RunArguments& arguments, std::int64_t prompt_length)
      : model_(model),
        arguments_(arguments),
        prompt_length_(prompt_length),
        state_(model.start()),
        logits_(static_cast<std::size_t>(model.vocab())) {
    if (!arguments.dump.empty()) dump_.emplace(model);
    Backend& backend = model.backend();
    const std::int64_t rows = dump_ ? kSpan : 1;
    hidden_memory_ = backend.allocate(static_cast<std::size_t>(kSpan * model.hidden()) * sizeof(float));
    logits_memory_ = backend.allocate(static_cast<std::size_t>(rows * model.vocab()) * sizeof(float));
  }

  /// The logits after the last of `ids`.
  std::span<const float> read(std::span<const std::int32_t> ids, ProgressBar* bar = nullptr) {
    const std::size_t all = ids.size();
    while (!ids.empty()) {
      const auto count = static_cast<std::size_t>(std::min({static_cast<std::int64_t>(ids.size()), kSpan, to_next_snapshot()}));
      read_span(ids.first(count), ids.size() == count);
      ids = ids.subspan(count);
      if (bar) bar->show(1 - static_cast<double>(ids.size()) / static_cast<double>(all));
    }
    return logits_;
  }

  const std::vector<std::int32_t>& ids() const { return ids_; }
  /// Of all logits so far.
  bool are_finite() const { return are_finite_; }
  /// `not_finite`: what the file says of numbers that are not; empty: nothing.
  void write_dump(const std::string& not_finite) const {
    if (dump_) dump_->write(arguments_.dump, ids_, arguments_.force, not_finite);
  }

 private:
  void read_span(std::span<const std::int32_t> ids, bool last) {
    Backend& backend = model_.backend();
    const auto T = static_cast<std::int64_t>(ids.size());
    Tensor hidden(hidden_memory_.get(), DType::f32, {T, model_.hidden()});
    const std::int64_t rows = dump_ ? T : last ? 1 : 0;
    Tensor logits;
    if (rows > 0) logits = Tensor(logits_memory_.get(), DType::f32, {rows, model_.vocab()});
    model_.forward(state_, ids,
                   {.chunk_size = T == 1 ? 0 : arguments_.chunk_size, .prompt_length = prompt_length_, .outputs = rows, .logits = logits},
                   hidden, dump_ ? &*dump_ : nullptr);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    if (dump_) dump_->logits(logits);
    if (last) {
      backend.download(Tensor(logits_.data(), DType::f32, {1, model_.vocab()}), logits.slice(rows - 1, 1));
      are_finite_ = are_finite_ && std::ranges::all_of(logits_, [](float logit) { return std::isfinite(logit); });
    }
    const std::int64_t token = state_.position - 1;
    if (dump_ && std::find(arguments_.states.begin(), arguments_.states.end(), token) != arguments_.states.end())
      dump_->states(token, state_);
  }

  /// Tokens up to and including the next one whose states are to be kept.
  std::int64_t to_next_snapshot() const {
    std::int64_t nearest = kSpan;
    for (std::int64_t token : arguments_.states) {
      if (token >= state_.position) nearest = std::min(nearest, token - state_.position + 1);
    }
    return nearest;
  }

  Model& model_;
  const RunArguments& arguments_;
  std::int64_t prompt_length_;
  ModelState state_;
  std::optional<Dump> dump_;
  Buffer hidden_memory_, logits_memory_;
  std::vector<float> logits_;
  bool are_finite_ = true;
  std::vector<std::int32_t> ids_;
};

void check_states(const RunArguments& arguments, std::int64_t tokens) {
  if (!arguments.states.empty() && arguments.dump.empty()) throw Error("--states needs --dump, the file that keeps them");
  for (std::int64_t token : arguments.states) {
    if (token >= tokens) throw Error("--states: " + no_such("token", token, tokens));
  }
}

std::int64_t tokens_to_generate(const RunArguments& arguments, const PromptInput& prompt, const Tokenizer& tokenizer) {
  const bool as_expected = !arguments.generate && !prompt.expected.empty();
  return as_expected ? std::ssize(tokenizer.encode(prompt.expected, kContinuation).ids) : arguments.generate.value_or(kUsualGeneration);
}

void tell(Outcome& outcome, const Model& model, const RunArguments& arguments, ReportFile& json_file) {
  outcome.checkpoint = arguments.checkpoint.empty() ? model.checkpoint().path.string() : arguments.checkpoint;
  outcome.family = model.plan().family;
  outcome.device = model.backend().description();
  outcome.notes = model.notes();
  tell(outcome, arguments, json_file);
}

/// A session and the model that it is of.
struct OpenSession {
  SessionFile file;
  std::shared_ptr<Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
};

/// A session of what the arguments ask for, in which nothing has been read.
OpenSession begin_session(const RunArguments& arguments) {
  const std::filesystem::path path = checkpoint_at(arguments.checkpoint);
  const auto checkpoint = open_checkpoint(path);
  const auto model = load_model(checkpoint, arguments.device);
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
  SessionRecord record;
  record.checkpoint = std::filesystem::absolute(path);
  record.checkpoint_digest = content_digest(*checkpoint);
  record.device = arguments.device;
  record.prompt = load_prompt(arguments.prompt, "", path.string());
  record.prompt_ids = encode(record.prompt, *tokenizer).ids;
  model->check_ids(record.prompt_ids);
  record.prompt.generate = tokens_to_generate(arguments, record.prompt, *tokenizer);
  record.sampling = arguments.sampling;
  record.options.chunk_size = arguments.chunk_size;
  record.options.keyframe_interval = Run(model, record.options).keyframe_interval();
  record.options.tokens_at_once = tokens_within_a_second(model, record.prompt_ids, record.options);
  return {SessionFile::create(arguments.session, std::move(record), arguments.interval), model, tokenizer};
}

/// A session that goes on.
OpenSession reopen_session(const RunArguments& arguments) {
  SessionFile file = SessionFile::open(arguments.session, arguments.interval);
  DeviceChoice device = file.record().device;
  device.threads = arguments.device.threads;
  const auto checkpoint = file.open_checkpoint(checkpoint_places());
  const auto model = load_model(checkpoint, device);
  return {std::move(file), model, make_tokenizer(*checkpoint, model->vocab())};
}

/// Reads what is left of the prompt.
void read_prompt(Branches& tree, SessionFile& session) {
  Run& run = *tree[tree.current()].run;
  const std::vector<std::int32_t> prompt = session.record().prompt_ids;  // a copy: every saving makes another record
  if (run.tokens() >= std::ssize(prompt)) return;
  ProgressBar bar("reading");
  run.read(std::span(prompt).subspan(static_cast<std::size_t>(run.tokens())), std::ssize(prompt), [&](std::int64_t tokens) {
    session.follow(tree);
    bar.show(static_cast<double>(tokens) / static_cast<double>(prompt.size()));
    return true;
  });
}

/// Generates on the current branch until it has `end` tokens.
void generate(Branches& tree, SessionFile& session, std::int64_t end) {
  Run& run = *tree[tree.current()].run;
  const std::int64_t prompt = session.record().prompt_length();
  Sampler sampler(session.record().sampling);
  sampler.skip(run.tokens() - prompt);
  ProgressBar bar("generating");
  while (run.tokens() < end) {
    const std::int32_t id = sampler.next(run.logits(run.tokens() - 1));
    run.read({&id, 1}, prompt);
    session.follow(tree);
    bar.show(static_cast<double>(run.tokens() - prompt) / static_cast<double>(end - prompt));
  }
}

void check_branch(const Branches& tree, std::int64_t branch, const RunArguments& arguments) {
  if (branch >= tree.count()) throw Error(fmt::format("{}: it has branches 0 to {}", arguments.session, tree.count() - 1));
  if (branch > 0 && tree[branch].parent < 0)
    throw Error(fmt::format("{}: run {} is of another prompt, not a branch", arguments.session, branch));
}

/// Other prompts, as runs that states can be imported from; then a branch, where interventions are asked for. The session is kept up to
/// date meanwhile.
void intervene(Branches& tree, OpenSession& open, const RunArguments& arguments) {
  for (const std::string& file : arguments.others) {
    const PromptInput prompt = load_prompt({.file = file});
    const std::vector<std::int32_t> ids = encode(prompt, *open.tokenizer).ids;
    auto run = std::make_shared<Run>(open.model, tree[0].run->beside());
    run->read(ids, std::ssize(ids));
    fmt::print(stderr, "run {}: {}\n", tree.add(std::move(run)), printable(file));
  }
  std::vector<Intervention> interventions;
  for (const std::string& text : arguments.interventions) interventions.push_back(parse_intervention(text));
  if (interventions.empty()) return;
  ProgressBar bar("reading on");
  const auto tokens = static_cast<double>(tree[tree.current()].run->tokens());
  tree.intervene(std::move(interventions), [&](std::int64_t read) {
    open.file.follow(tree);
    bar.show(static_cast<double>(read) / tokens);
    return true;
  });
}

/// The tree of a session, on the branch that is asked for, and what has been read of it.
Branches restore_session(const OpenSession& open, const RunArguments& arguments) {
  const SessionRecord& record = open.file.record();
  ProgressBar bar("restoring");
  Branches tree = open.file.restore_branches(open.model, recording_budgets(arguments.memory), [&](std::int64_t tokens) {
    bar.show(static_cast<double>(tokens) / static_cast<double>(std::max<std::int64_t>(record.tokens(), 1)));
    return true;
  });
  for (const auto& branch : {arguments.branch, arguments.against}) check_branch(tree, branch.value_or(0), arguments);
  if (arguments.branch) tree.go_to(*arguments.branch);
  return tree;
}

/// Begins or reopens a session, reads and generates what is left of its branch, and leaves it as asked; all of it is told, not only what is
/// new.
int session_command(const RunArguments& arguments, ReportFile& json_file) {
  Outcome outcome;
  const auto opening = std::chrono::steady_clock::now();
  OpenSession open = arguments.checkpoint.empty() ? reopen_session(arguments) : begin_session(arguments);
  Branches tree = restore_session(open, arguments);
  const bool branched = tree.current() > 0;
  const std::int64_t restored = tree[tree.current()].run->tokens(), prompt = open.file.record().prompt_length();
  std::int64_t end = branched ? restored : prompt + open.file.record().prompt.generate.value_or(0);
  if (arguments.checkpoint.empty() && arguments.generate) {
    end = std::max(restored, prompt) + *arguments.generate;
    if (!branched) open.file.want(end - prompt);
  }
  for (const std::string& text : arguments.interventions) changed_layers(parse_intervention(text), *open.model, std::max(end, prompt));
  outcome.load_seconds = seconds_since(opening);
  outcome.restored = restored;
  outcome.prompt_length = prompt;
  outcome.expected = open.file.record().prompt.expected;

  const auto reading = std::chrono::steady_clock::now();
  read_prompt(tree, open.file);
  outcome.read_seconds = seconds_since(reading);
  const auto generating = std::chrono::steady_clock::now();
  generate(tree, open.file, end);
  intervene(tree, open, arguments);
  open.file.save(tree);
  outcome.generate_seconds = seconds_since(generating);
  if (tree.count() > 1) fmt::print(stderr, "branch {} of 0 to {}\n", tree.current(), tree.count() - 1);

  Run& run = *tree[tree.current()].run;
  const std::vector<std::int32_t> answer(run.ids().begin() + prompt, run.ids().end());
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const std::vector<float> logits = run.logits(prompt + static_cast<std::int64_t>(i) - 1);
    outcome.generated.push_back({answer[i], open.tokenizer->text_of(answer[i]), probability_of(logits, answer[i])});
  }
  if (answer.empty()) outcome.next = most_probable(run.logits(run.tokens() - 1), 8, *open.tokenizer);
  outcome.text = open.tokenizer->decode(answer);
  outcome.recording = run.recording();
  outcome.not_finite = not_finite(run);
  if (arguments.against) outcome.difference = report_branches(tree, *arguments.against, tree.current(), *open.tokenizer, outcome.expected);
  tell(outcome, *open.model, arguments, json_file);
  if (outcome.difference && !json_file.is_standard_output()) {
    fmt::print("branch {} (after), compared with branch {} (before):\n", tree.current(), *arguments.against);
    print(*outcome.difference);
  }
  return 0;
}

/// Before anything is read: --force replaces an older dump, not the model, nor a file in its folder. Throws Error.
void check_dump(const RunArguments& arguments) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (arguments.dump.empty()) return;
  const fs::path checkpoint = checkpoint_at(arguments.checkpoint);
  const fs::path place = fs::is_directory(checkpoint, error) ? fs::absolute(arguments.dump).parent_path() : fs::path(arguments.dump);
  if (fs::equivalent(place, checkpoint, error))
    throw Error(fmt::format("{}: is the checkpoint itself, or in it; --dump needs another file", arguments.dump));
  const ReportFile says_what_is_in_the_way(arguments.dump, arguments.force);
}

}  // namespace

int run_command(const RunArguments& arguments) {
  ReportFile json_file(arguments.json, arguments.force);
  if (!arguments.engine.place.empty()) return run_there(arguments, json_file);
  if (!arguments.session.empty()) return session_command(arguments, json_file);
  check_dump(arguments);
  Outcome outcome;
  const auto opening = std::chrono::steady_clock::now();
  const std::filesystem::path path = checkpoint_at(arguments.checkpoint);
  const auto checkpoint = open_checkpoint(path);
  const auto model = load_model(checkpoint, arguments.device);
  const auto tokenizer = make_tokenizer(*checkpoint, model->vocab());
  const PromptInput prompt = load_prompt(arguments.prompt, "", path.string());
  const std::vector<std::int32_t> ids = encode(prompt, *tokenizer).ids;
  outcome.load_seconds = seconds_since(opening);

  outcome.prompt_length = static_cast<std::int64_t>(ids.size());
  outcome.expected = prompt.expected;
  const std::int64_t generate = tokens_to_generate(arguments, prompt, *tokenizer);
  check_states(arguments, outcome.prompt_length + generate);

  Reader reader(*model, arguments, outcome.prompt_length);
  const auto reading = std::chrono::steady_clock::now();
  std::span<const float> logits;
  {
    ProgressBar bar("reading");
    logits = reader.read(ids, &bar);
  }
  outcome.read_seconds = seconds_since(reading);
  if (generate == 0) outcome.next = most_probable(logits, 8, *tokenizer);

  const auto generating = std::chrono::steady_clock::now();
  {
    Sampler sampler(arguments.sampling);
    ProgressBar bar("generating");
    for (std::int64_t i = 0; i < generate; ++i) {
      const std::int32_t id = sampler.next(logits);
      outcome.generated.push_back({id, tokenizer->text_of(id), probability_of(logits, id)});
      // The last token is read as well where a dump shall show what it did.
      if (i + 1 < generate || !arguments.dump.empty()) logits = reader.read({&id, 1});
      bar.show(static_cast<double>(i + 1) / static_cast<double>(generate));
    }
  }
  outcome.generate_seconds = seconds_since(generating);
  if (!reader.are_finite() || find_not_finite(*model, LookedThrough::all_but_experts)) outcome.not_finite = not_finite(model, reader.ids());
  reader.write_dump(outcome.not_finite.text());

  std::vector<std::int32_t> answer;
  for (const Prediction& token : outcome.generated) answer.push_back(token.id);
  outcome.text = tokenizer->decode(answer);
  tell(outcome, *model, arguments, json_file);
  return 0;
}

}  // namespace statescope
