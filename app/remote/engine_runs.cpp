#include "app/remote/engine_runs.h"

#include <fmt/format.h>

#include <QCoreApplication>
#include <QTimer>
#include <algorithm>
#include <optional>
#include <utility>

#include "app/common/chat_prompt.h"
#include "app/common/console.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::size_t kMostStanding = 3;  // of the places that an engine has
constexpr std::size_t kMostAsked = 128;   // questions at a time
constexpr int kWakeMs = 50;
constexpr qint64 kWaitsForEngineMs = 60'000;  // with one that has been lost
constexpr qint64 kWaitsForEndedMs = 3'000;    // with one that seems to have ended
constexpr int kAsker = 1;

[[noreturn]] void throw_again(const Failure& failure) {
  if (failure.kind == Failure::Kind::cancelled) throw Cancelled();
  if (failure.kind == Failure::Kind::unknown_word) throw UnknownWordError(failure.message);
  throw Error(failure.message);
}

}  // namespace

class EngineRuns::RunThere final : public ReadRun {
 public:
  RunThere(EngineRuns& engine, std::string checkpoint, PromptInput prompt, std::vector<std::string> interventions, Progress progress)
      : engine_(engine),
        checkpoint_(std::move(checkpoint)),
        prompt_(std::move(prompt)),
        interventions_(std::move(interventions)),
        progress_(std::move(progress)) {
    engine_.stand(*this);
  }
  ~RunThere() override { engine_.forget(*this); }

  const RunInfo& info() const override { return *run_; }

  std::shared_ptr<const Snapshot> snapshot(std::int64_t layer, std::int64_t head, std::int64_t token) override {
    const bool is_there = layer >= 0 && layer < std::ssize(run_->model.layers) && token >= 0 && token < std::ssize(run_->tokens);
    if (!is_there) return nullptr;
    engine_.stand(*this);
    const auto shown = std::make_shared<std::shared_ptr<const Snapshot>>();
    source_->show(layer, head, token, [shown](std::shared_ptr<const Snapshot> snapshot) { *shown = std::move(snapshot); });
    wait([&] { return *shown != nullptr; });
    return *shown;
  }

  std::shared_ptr<const void> find_out(const Question& question) override {
    const Findings found = find_all({question});
    const Finding& finding = *found.find(question);
    if (!finding.refused.empty()) throw Error(finding.refused);
    return finding.answer;
  }

  Findings find_all(const std::vector<Question>& questions) override {
    Findings findings;
    for (std::size_t from = 0; from < questions.size(); from += kMostAsked) {
      const std::size_t to = std::min(questions.size(), from + kMostAsked);
      find({questions.begin() + static_cast<std::ptrdiff_t>(from), questions.begin() + static_cast<std::ptrdiff_t>(to)}, findings);
    }
    return findings;
  }

  /// Of the model's weights; what it computes is only said in words.
  NotFinite not_finite() override {
    if (!not_finite_.empty())
      throw NotFiniteError(fmt::format("{}: {}. For details, run the command on the engine's machine", checkpoint_, not_finite_));
    return {engine_.facts(checkpoint_, false).not_finite, {}};
  }

  std::string decode(const std::vector<std::int32_t>& ids) override {
    engine_.stand(*this);
    return engine_.asked<std::string>([&](EngineSource& source, auto told, auto failed) { source.decode(ids, told, failed); });
  }

  /// Its session begins: what is said of the run is the same each time.
  void open() {
    fraction_ = 0;
    stands_ = false;
    source_ = engine_.make_source();
    source_->open(checkpoint_, prompt_, callbacks());
    wait_for_run();
    const std::string no_text = source_->facts().no_text.toStdString();
    if (prompt_.ids.empty() && !no_text.empty()) throw Error(fmt::format("{}: {}", checkpoint_, no_text));
    if (!interventions_.empty()) {
      std::vector<Intervention> parsed;
      for (const std::string& text : interventions_) parsed.push_back(parse_intervention(text));
      source_->intervene(std::move(parsed), callbacks());
      wait_for_run();
    }
    stands_ = has_stood_ = true;
  }
  void close() { source_.reset(); }
  bool is_open() const { return source_ != nullptr; }

 private:
  Session::OpenCallbacks callbacks() {
    is_done_ = false;
    const auto note = [this](const std::string& words) {
      if (!has_stood_) print_note(words);
    };
    return {.progress = [this](double fraction, const std::string&) { fraction_ = fraction; },
            .run =
                [this](std::shared_ptr<const RunInfo> run) {
                  // What has been asked of the one before is not answered any more.
                  if (stands_) failure_ = Failure(Error(engine_.place_.name + " had to read again; run the command again"));
                  run_ = std::move(run);
                },
            .failed = [this](const Failure& failure) { failure_ = failure; },
            .done = [this] { is_done_ = true; },
            .device_failed = note,
            .other_device = note,
            .not_finite = [this](const std::string& words) { not_finite_ = words; },
            .looks = false};
  }

  void wait(const std::function<bool()>& is_done) {
    engine_.wait([&] { return failure_ || is_done(); }, [&] { return progress_(fraction_); });
    if (failure_) throw_again(*std::exchange(failure_, std::nullopt));
  }
  void wait_for_run() {
    wait([this] { return is_done_; });
  }

  void find(const std::vector<Question>& questions, Findings& findings) {
    if (questions.empty()) return;
    engine_.stand(*this);
    std::size_t left = questions.size();
    fraction_ = 0;
    source_->ask(kAsker, run_, questions, [&](const Question& question, const Finding& finding) {
      fraction_ = finding.progress;
      const bool is_answered = finding.answer && finding.progress >= 1;
      if (finding.refused.empty() && !is_answered) return;
      if (!findings.find(question)) --left;
      findings.set(question, finding);
    });
    const struct Hearing {  // of nothing more, however this ends
      EngineSource& source;
      const std::shared_ptr<const RunInfo>& run;
      ~Hearing() {
        source.ask(kAsker, run, {}, [](const Question&, const Finding&) {});
      }
    } hearing{*source_, run_};
    wait([&] { return left == 0; });
  }

  EngineRuns& engine_;
  const std::string checkpoint_;
  const PromptInput prompt_;
  const std::vector<std::string> interventions_;
  const Progress progress_;
  double fraction_ = 0;
  std::shared_ptr<const RunInfo> run_;
  std::optional<Failure> failure_;
  std::string not_finite_;
  bool is_done_ = false, stands_ = false, has_stood_ = false;
  std::unique_ptr<EngineSource> source_;  // last; null: its session has ended

  friend class EngineRuns;
};

template <class Answer>
Answer EngineRuns::asked(
    const std::function<void(EngineSource&, std::function<void(Answer)> told, std::function<void(const Failure&)> failed)>& ask,
    const std::function<bool()>& goes_on) {
  struct Heard {
    std::optional<Answer> answer;
    std::optional<Failure> failure;
  };
  const auto heard = std::make_shared<Heard>();
  const std::unique_ptr<EngineSource> own = standing_.empty() ? make_source() : nullptr;
  ask(
      own ? *own : *standing_.back()->source_, [heard](Answer answer) { heard->answer = std::move(answer); },
      [heard](const Failure& why) { heard->failure = why; });
  wait([&] { return heard->answer || heard->failure; }, goes_on);
  if (heard->failure) throw_again(*heard->failure);
  return *std::move(heard->answer);
}

CheckpointFacts EngineRuns::facts(const std::string& checkpoint, bool digest) {
  const auto known = facts_.find(checkpoint);
  if (known != facts_.end() && (!digest || !known->second.sha256.empty())) return known->second;
  using Told = std::pair<CheckpointFacts, std::string>;
  const Told heard = asked<Told>([&](EngineSource& source, auto told, auto failed) {
    source.describe(
        checkpoint, digest,
        [told](const CheckpointFacts& facts, const std::string& device) {
          told({facts, device});
        },
        failed);
  });
  device_ = heard.second;
  return facts_[checkpoint] = heard.first;
}

PromptInput EngineRuns::prompt(const PromptArguments& arguments, const std::string& checkpoint) {
  const bool is_made_there = arguments.is_chat() || (arguments.special && arguments.text) || arguments.example > 0;
  if (!is_made_there) return load_prompt(arguments);
  remote::MakePrompt make{.checkpoint = checkpoint,
                          .conversation = arguments.is_chat() ? conversation_of(arguments) : "",
                          .settings = arguments.chat_settings,
                          .text = arguments.text.value_or(""),
                          .example = arguments.example,
                          .number = arguments.number};
  return asked<PromptInput>([&](EngineSource& source, auto told, auto failed) { source.make_prompt(make, told, failed); });
}

std::unique_ptr<ReadRun> EngineRuns::read(const std::string& checkpoint, const PromptInput& prompt,
                                          const std::vector<std::string>& interventions, const Progress& progress) {
  return std::make_unique<RunThere>(*this, checkpoint, prompt, interventions, progress);
}

std::string EngineRuns::work(const std::string& checkpoint, const std::string& job,
                             const std::function<bool(double fraction, const std::string& what)>& tell) {
  const auto heard = std::make_shared<std::pair<double, std::string>>();
  return asked<std::string>(
      [&](EngineSource& source, auto told, auto failed) {
        const auto hear = [heard](double fraction, const std::string& what) { *heard = {fraction, what}; };
        source.work({checkpoint, job}, hear, told, failed);
      },
      [&] { return tell(heard->first, heard->second); });
}

std::unique_ptr<EngineSource> EngineRuns::make_source() {
  return make_remote_source(place_, [this](LinkNews news, const std::string& words) {
    switch (news) {
      case LinkNews::lost:
      case LinkNews::ended:
        hear_away(news, words);
        break;
      case LinkNews::back:
        if (away_ == LinkNews::lost) print_note(words);
        away_.reset();
        break;
      case LinkNews::anew:
        gone_ = place_.name + " no longer has what it read for this command; run the command again";
        break;
      case LinkNews::refused:
        gone_ = words;
        break;
    }
  });
}

void EngineRuns::hear_away(LinkNews news, const std::string& words) {
  if (away_ == news) return;
  if (news == LinkNews::lost) print_note(words);
  away_ = news;
  away_since_.start();
}

void EngineRuns::wait(const std::function<bool()>& is_done, const std::function<bool()>& goes_on) {
  QTimer look;
  look.start(kWakeMs);
  while (!is_done()) {
    if (!gone_.empty()) throw Error(gone_);
    if (away_ == LinkNews::lost && away_since_.hasExpired(kWaitsForEngineMs))
      throw Error(place_.name + " has not answered for a minute; run the command again");
    if (away_ == LinkNews::ended && away_since_.hasExpired(kWaitsForEndedMs))
      throw Error(place_.name + ": the engine ended before the command was done");
    if (!goes_on()) throw Cancelled();
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  }
}

void EngineRuns::stand(RunThere& run) {
  forget(run);
  if (!run.is_open()) {
    if (standing_.size() >= kMostStanding) {
      standing_.front()->close();
      standing_.erase(standing_.begin());
    }
    run.open();
  }
  standing_.push_back(&run);
}

}  // namespace statescope
