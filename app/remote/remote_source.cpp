#include "app/remote/remote_source.h"

#include <fmt/format.h>

#include <QCoreApplication>
#include <QTimer>
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "app/remote/engine_link.h"
#include "app/remote/run_table.h"
#include "app/remote/tunnel.h"
#include "app/runs/branch_source.h"
#include "app/runs/post.h"
#include "engine/error.h"
#include "engine/remote/wire.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

using remote::About;
using remote::pack;
using remote::unpack;
using remote::WireError;

constexpr std::size_t kListeners = 64;  // of the newest requests
constexpr int kSayLostMs = 1000;        // a connection that is back by then is not spoken of

class RemoteSource final : public EngineSource {
 public:
  RemoteSource(EnginePlace place, LinkHearing hears_of_link) : place_(std::move(place)), hears_of_link_(std::move(hears_of_link)) {
    link_ = std::make_unique<EngineLink>(
        place_, EngineLink::Hearing{.event = [this](remote::Event event) { hear(std::move(event)); },
                                    .connected = [this](bool anew) { later([this, anew] { connected(anew); }); },
                                    .lost = [this](const remote::Ending& ending) { later([this, ending] { lost(ending); }); }});
  }
  ~RemoteSource() override {
    *alive_ = false;
    link_.reset();
  }

  void open(fs::path checkpoint, PromptInput prompt, Session::OpenCallbacks callbacks) override {
    const bool looks = callbacks.looks;
    begin(remote::Open{name_on_engine(checkpoint), pack(prompt), looks}, std::move(callbacks));
  }
  void read(PromptInput prompt, Session::OpenCallbacks callbacks) override {
    const bool looks = callbacks.looks;
    begin(remote::Read{pack(prompt), looks}, std::move(callbacks));
  }
  void generate(std::int64_t tokens, Session::OpenCallbacks callbacks) override { request(remote::Generate{tokens}, std::move(callbacks)); }
  void cancel() override {
    if (!is_connected_) fail_all(Cancelled());
    send(++last_id_, remote::Cancel{});
  }
  void intervene(std::vector<Intervention> interventions, Session::OpenCallbacks callbacks) override {
    request(remote::Intervene{pack(interventions)}, std::move(callbacks));
  }
  void add_run(PromptInput prompt, Session::OpenCallbacks callbacks) override {
    request(remote::AddRun{pack(prompt)}, std::move(callbacks));
  }
  void undo(Session::OpenCallbacks callbacks) override { request(remote::Step{false}, std::move(callbacks)); }
  void redo(Session::OpenCallbacks callbacks) override { request(remote::Step{true}, std::move(callbacks)); }
  void go_to_branch(std::int64_t branch, Session::OpenCallbacks callbacks) override {
    request(remote::GoToBranch{branch}, std::move(callbacks));
  }
  void save(fs::path path, std::function<void()> saved, std::function<void(std::string)> failed) override {
    if (!refused_.empty()) return later([this, failed] { failed(refused_); });
    saving_ = {++last_id_, std::move(saved), std::move(failed)};
    send(saving_.id, remote::Save{path.string()});
  }
  void stand_at(RunPlace place) override { send_newest(++last_id_, remote::Stand{pack(place)}); }
  void open_session(fs::path path, fs::path located, Session::OpenCallbacks callbacks) override {
    begin(remote::OpenSession{path.string(), located.string()}, std::move(callbacks));
  }
  void show(std::int64_t layer, std::int64_t head, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) override {
    show_at(nullptr, layer, head, token, std::move(done));
  }
  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
           std::function<void(Question, Finding)> tell) override {
    ask_of(false, asker, run, std::move(questions), std::move(tell));
  }
  void describe(const std::string& checkpoint, bool digest, Described told, std::function<void(const Failure&)> failed) override {
    find_out(remote::Describe{name_on_engine(checkpoint), digest}, {.described = std::move(told), .failed = std::move(failed)});
  }
  void make_prompt(remote::MakePrompt asked, std::function<void(const PromptInput&)> told,
                   std::function<void(const Failure&)> failed) override {
    asked.checkpoint = name_on_engine(asked.checkpoint);
    find_out(std::move(asked), {.made = std::move(told), .failed = std::move(failed)});
  }
  void work(remote::Work asked, std::function<void(double fraction, const std::string& what)> progress,
            std::function<void(const std::string&)> told, std::function<void(const Failure&)> failed) override {
    asked.checkpoint = name_on_engine(asked.checkpoint);
    find_out(std::move(asked), {.worked = std::move(told), .progress = std::move(progress), .failed = std::move(failed)});
  }
  void decode(std::vector<std::int32_t> ids, std::function<void(const std::string&)> told,
              std::function<void(const Failure&)> failed) override {
    find_out(remote::Decode{std::move(ids)}, {.decoded = std::move(told), .failed = std::move(failed)});
  }
  ModelFacts facts() const override { return facts_; }
  std::unique_ptr<RunSource> beside(std::shared_ptr<const RunInfo> run) override;

  /// `run`: a branch beside the run shown; null: that itself.
  void show_at(const std::shared_ptr<const RunInfo>& run, std::int64_t layer, std::int64_t head, std::int64_t token,
               std::function<void(std::shared_ptr<const Snapshot>)> done) {
    const std::uint64_t number = run ? number_of(run) : 0;
    if (run && number == 0) return;
    Looking& looking = looking_[run ? 1 : 0];
    looking = {++last_id_, std::move(done)};
    link_->out().add_instead({.id = looking.id, .asked = remote::Show{number, layer, head, token}}, [&](const remote::Request& older) {
      const auto* show = std::get_if<remote::Show>(&older.asked);
      return show && (show->beside == 0) == (number == 0);
    });
  }
  void ask_of(bool beside, int asker, const std::shared_ptr<const RunInfo>& run, std::vector<Question> questions,
              std::function<void(Question, Finding)> tell) {
    const std::uint64_t number = number_of(run);
    if (number == 0) return;
    remote::Ask ask{asker, number, beside, {}};
    for (const Question& question : questions) ask.questions.push_back(pack(question));
    const std::uint64_t id = ++last_id_;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(asking_, [&](const auto& one) { return one.second.asker == asker && one.second.beside == beside; });
      asking_[id] = {asker, beside, std::move(questions), std::move(tell)};
    }
    link_->out().add_instead({.id = id, .asked = std::move(ask)}, [&](const remote::Request& older) {
      const auto* asked = std::get_if<remote::Ask>(&older.asked);
      return asked && asked->asker == asker && asked->beside == beside;
    });
  }

 private:
  struct Looking {
    std::uint64_t id = 0;
    std::function<void(std::shared_ptr<const Snapshot>)> done;
  };
  struct Asking {
    int asker = 0;
    bool beside = false;
    std::vector<Question> questions;
    std::function<void(Question, Finding)> tell;
  };
  struct Saving {
    std::uint64_t id = 0;
    std::function<void()> saved;
    std::function<void(std::string)> failed;
  };
  struct FindingOut {
    Described described = {};
    std::function<void(const PromptInput&)> made = {};
    std::function<void(const std::string&)> decoded = {}, worked = {};
    std::function<void(double fraction, const std::string& what)> progress = {};
    std::function<void(const Failure&)> failed = {};
    decltype(remote::Request::asked) asked = {};
  };
  struct Listener {
    Session::OpenCallbacks callbacks;
    bool waits = true;  // neither done nor failed
  };
  using Opening = decltype(remote::Request::asked);

  // On the interface thread.

  void later(std::function<void()> work) const {
    post([alive = alive_, work = std::move(work)] {
      if (*alive) work();
    });
  }
  template <class Asked>
  void send(std::uint64_t id, Asked asked) {
    link_->out().add({.id = id, .asked = std::move(asked)});
  }
  template <class Asked>
  void send_newest(std::uint64_t id, Asked asked) {
    link_->out().add_instead({.id = id, .asked = std::move(asked)},
                             [](const remote::Request& older) { return std::holds_alternative<Asked>(older.asked); });
  }
  template <class Asked>
  void request(Asked asked, Session::OpenCallbacks callbacks) {
    const std::uint64_t id = ++last_id_;
    listeners_[id] = {std::move(callbacks)};
    while (listeners_.size() > kListeners) listeners_.erase(listeners_.begin());
    if (!refused_.empty()) return later([this] { fail_all(Error(refused_)); });
    send(id, std::move(asked));
  }
  void find_out(decltype(remote::Request::asked) asked, FindingOut finding_out) {
    if (!refused_.empty()) return later([this, failed = finding_out.failed] { failed(Error(refused_)); });
    finding_out.asked = asked;
    finding_out_[++last_id_] = std::move(finding_out);
    link_->out().add({.id = last_id_, .asked = std::move(asked)});
  }
  template <class Asked>
  void begin(Asked asked, Session::OpenCallbacks callbacks) {
    request(asked, std::move(callbacks));
    opening_ = std::move(asked);
    opening_id_ = last_id_;
  }
  std::uint64_t number_of(const std::shared_ptr<const RunInfo>& run) const {
    const std::lock_guard lock(mutex_);
    return runs_.number_of(run);
  }

  void fail_all(const std::exception& error) {
    const Failure failure(error);
    std::vector<std::function<void(const Failure&)>> failed;
    for (auto& [id, listener] : listeners_) {
      if (std::exchange(listener.waits, false) && listener.callbacks.failed) failed.push_back(listener.callbacks.failed);
    }
    for (const auto& tell : failed) tell(failure);
    if (saving_.failed) std::exchange(saving_, {}).failed(failure.message);
  }
  /// Whoever listens to the connection hears of it, or else whoever asked last for a run.
  void say(LinkNews news, const std::string& words) const {
    if (hears_of_link_) return hears_of_link_(news, words);
    if (!listeners_.empty() && listeners_.rbegin()->second.callbacks.device_failed)
      listeners_.rbegin()->second.callbacks.device_failed(words);
  }

  void connected(bool anew) {
    is_connected_ = true;
    ++connections_;
    if (std::exchange(said_, std::nullopt)) say(LinkNews::back, fmt::format("{} answers again.", place_.name));
    if (!anew) return;
    restart();
    link_->go_on();
  }

  /// The engine knows nothing of what was there.
  void restart() {
    link_->out().begin_anew();
    {
      const std::lock_guard lock(mutex_);
      runs_.forget_all();
      asking_.clear();
    }
    for (const auto& [id, finding_out] : finding_out_) link_->out().add({.id = id, .asked = finding_out.asked});
    const auto waiting = listeners_.find(opening_id_);
    const bool was_opening = waiting != listeners_.end() && waiting->second.waits;
    const Session::OpenCallbacks newest = listeners_.empty() ? Session::OpenCallbacks() : listeners_.rbegin()->second.callbacks;
    if (was_opening) waiting->second.waits = false;
    for (auto& [id, listener] : listeners_) listener.waits = listener.waits && !was_opening;
    if (!was_opening) fail_all(Error(fmt::format("{} does not have this session any more", place_.name)));
    if (!tree_ && !was_opening) return;
    const bool of_tree = tree_ && (!was_opening || std::holds_alternative<remote::Read>(opening_));
    if (of_tree && !was_opening && !tree_->session.empty()) {
      begin(remote::OpenSession{tree_->session.string(), {}}, newest);
    } else if (of_tree) {
      const auto* read = std::get_if<remote::Read>(&opening_);
      const std::string prompt = was_opening && read ? read->prompt : pack(tree_->prompt);
      begin(remote::Open{name_on_engine(tree_->checkpoint), prompt, newest.looks}, newest);
    } else {
      request_again(newest);
    }
    say(LinkNews::anew,
        fmt::format("{} does not have this session any more: what it had read is read again; branches that were not saved are gone.",
                    place_.name));
  }
  void request_again(const Session::OpenCallbacks& callbacks) {
    std::visit([&](auto asked) { begin(std::move(asked), callbacks); }, Opening(opening_));
  }

  void lost(const remote::Ending& ending) {
    is_connected_ = false;
    ending_ = ending;
    if (ending.final) {
      refused_ = fmt::format("{}: {}", place_.name, ending.why);
      for (const auto& [id, finding_out] : std::exchange(finding_out_, {})) finding_out.failed(Error(refused_));
      fail_all(Error(refused_));
      return say(LinkNews::refused, refused_);
    }
    if (said_ == away_as()) return;
    QTimer::singleShot(kSayLostMs, qApp, [this, alive = alive_, connections = connections_] {
      if (*alive && !is_connected_ && connections == connections_) say_away();
    });
  }
  /// What is known of an engine that does not answer. Where ssh leads there, its port here is closed while ssh is away.
  LinkNews away_as() const {
    const bool ended = ending_.closed || (ending_.refused && !is_ssh(place_.name));
    return ended ? LinkNews::ended : LinkNews::lost;
  }
  void say_away() {
    const LinkNews news = away_as();
    if (said_ == news) return;
    said_ = news;
    const char* const run = news == LinkNews::ended ? "The engine seems to have ended" : "The run stays there";
    say(news, fmt::format("{} does not answer ({}). {}; what is asked of it waits until it answers again.", place_.name, ending_.why, run));
  }

  // On the stream's thread.

  void hear(remote::Event event) {
    const std::uint64_t id = event.id;
    std::visit([&](auto& told) { hear(id, told); }, event.told);
  }
  void hear(std::uint64_t, const std::monostate&) {}
  void hear(std::uint64_t, const remote::Welcome&) {}
  void hear(std::uint64_t, const remote::RunDefined& told) {
    const std::lock_guard lock(mutex_);
    runs_.define(told);
  }
  void hear(std::uint64_t, const remote::RoutingDefined& told) {
    const std::lock_guard lock(mutex_);
    runs_.define(told);
  }
  void hear(std::uint64_t id, const remote::Progressed& told) {
    later([this, id, told] {
      const auto finding_out = finding_out_.find(id);
      if (finding_out != finding_out_.end() && finding_out->second.progress) finding_out->second.progress(told.fraction, told.what);
    });
    call(id, &Session::OpenCallbacks::progress, told.fraction, told.what);
  }
  void hear(std::uint64_t id, const remote::RunShown& told) {
    const std::lock_guard lock(mutex_);
    call(id, &Session::OpenCallbacks::run, runs_.run(told.run));
  }
  void hear(std::uint64_t id, const remote::Failed& told) {
    later([this, id, failure = unpack<Failure>(told.failure)] {
      if (const auto finding_out = finding_out_.extract(id)) finding_out.mapped().failed(failure);
    });
    end(id);
    call(id, &Session::OpenCallbacks::failed, unpack<Failure>(told.failure));
  }
  void hear(std::uint64_t id, const remote::Done&) {
    end(id);
    call(id, &Session::OpenCallbacks::done);
  }
  void hear(std::uint64_t id, const remote::Remarked& told) {
    constexpr std::array ways{&Session::OpenCallbacks::device_failed, &Session::OpenCallbacks::not_saved,
                              &Session::OpenCallbacks::other_device, &Session::OpenCallbacks::not_finite};
    call(id, ways[static_cast<std::size_t>(told.about)], told.text);
  }
  void hear(std::uint64_t id, const remote::BranchesChanged& told) {
    std::shared_ptr<BranchTree> tree;
    {
      const std::lock_guard lock(mutex_);
      tree = runs_.tree(told);
    }
    tree->checkpoint = name_from_engine(tree->checkpoint.string());
    later([this, tree] { tree_ = tree; });
    call(id, &Session::OpenCallbacks::branches, std::shared_ptr<const BranchTree>(tree));
  }
  void hear(std::uint64_t id, const remote::Placed& told) { call(id, &Session::OpenCallbacks::place, unpack<RunPlace>(told.place)); }
  void hear(std::uint64_t id, const remote::Saved&) {
    later([this, id] {
      if (saving_.id == id && saving_.saved) std::exchange(saving_, {}).saved();
    });
  }
  void hear(std::uint64_t id, const remote::NotSaved& told) {
    later([this, id, why = told.why] {
      if (saving_.id == id && saving_.failed) std::exchange(saving_, {}).failed(why);
    });
  }
  void hear(std::uint64_t id, const remote::Shown& told) {
    std::shared_ptr<const Snapshot> snapshot;
    {
      const std::lock_guard lock(mutex_);
      snapshot = runs_.snapshot(told);
    }
    later([this, id, which = told.beside ? 1 : 0, snapshot] {
      const Looking& looking = looking_[static_cast<std::size_t>(which)];
      if (looking.id == id && looking.done) Looking(looking).done(snapshot);
    });
  }
  void hear(std::uint64_t id, const remote::Found& told) {
    Question question;
    std::function<void(Question, Finding)> tell;
    {
      const std::lock_guard lock(mutex_);
      const auto asking = asking_.find(id);
      if (asking == asking_.end()) return;  // something else has been asked since
      if (told.question >= asking->second.questions.size()) throw WireError("an answer is of no question");
      question = asking->second.questions[told.question];
      tell = asking->second.tell;
    }
    const Finding finding = remote::unpack_finding(question, told.finding);
    later([this, id, tell, question, finding] {
      {
        const std::lock_guard lock(mutex_);
        if (!asking_.contains(id)) return;
      }
      tell(question, finding);
    });
  }
  void hear(std::uint64_t, const remote::FactsTold& told) {
    later([this, told] {
      facts_ = {.no_text = QString::fromStdString(told.no_text),
                .vocab = told.vocab,
                .tokenizer = nullptr,
                .chat = nullptr,
                .is_elsewhere = true};
    });
  }

  void hear(std::uint64_t id, const remote::Described& told) {
    CheckpointFacts facts{.config = told.config,
                          .sha256 = told.digest,
                          .prompt = {},
                          .why_no_prompt = told.why_no_prompt,
                          .not_finite = unpack<std::optional<NotFiniteWeight>>(told.weight)};
    if (!told.prompt.empty()) facts.prompt = unpack<PromptInput>(told.prompt);
    later([this, id, facts = std::move(facts), device = told.device] {
      const auto finding_out = finding_out_.extract(id);
      if (finding_out && finding_out.mapped().described) finding_out.mapped().described(facts, device);
    });
  }
  void hear(std::uint64_t id, const remote::Decoded& told) {
    later([this, id, text = told.text] {
      const auto finding_out = finding_out_.extract(id);
      if (finding_out && finding_out.mapped().decoded) finding_out.mapped().decoded(text);
    });
  }
  void hear(std::uint64_t id, const remote::Worked& told) {
    later([this, id, found = told.found] {
      const auto finding_out = finding_out_.extract(id);
      if (finding_out && finding_out.mapped().worked) finding_out.mapped().worked(found);
    });
  }
  void hear(std::uint64_t id, const remote::PromptMade& told) {
    later([this, id, prompt = unpack<PromptInput>(told.prompt)] {
      const auto finding_out = finding_out_.extract(id);
      if (finding_out && finding_out.mapped().made) finding_out.mapped().made(prompt);
    });
  }

  void end(std::uint64_t id) {
    later([this, id] {
      if (const auto listener = listeners_.find(id); listener != listeners_.end()) listener->second.waits = false;
    });
  }
  template <class Callback, class... Values>
  void call(std::uint64_t id, Callback Session::OpenCallbacks::*which, Values... values) {
    later([this, id, which, values...] {
      const auto listener = listeners_.find(id);
      if (listener == listeners_.end()) return;
      const Callback callback = listener->second.callbacks.*which;
      if (callback) callback(values...);
    });
  }

  const EnginePlace place_;
  const LinkHearing hears_of_link_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read and written on the interface thread alone

  // Of the interface thread.
  std::uint64_t last_id_ = 0, opening_id_ = 0;
  std::map<std::uint64_t, Listener> listeners_;
  Opening opening_;                         // what was opened or read last
  std::shared_ptr<const BranchTree> tree_;  // that is shown
  std::array<Looking, 2> looking_;          // at the run shown, at one beside it
  Saving saving_;
  std::map<std::uint64_t, FindingOut> finding_out_;  // about checkpoints
  ModelFacts facts_;
  bool is_connected_ = false;
  int connections_ = 0;
  remote::Ending ending_;         // of the last stream
  std::optional<LinkNews> said_;  // lost or ended; none: it answers, or nobody has been told
  std::string refused_;           // why nothing more is asked; empty: all is well

  mutable std::mutex mutex_;
  ToldRuns runs_;
  std::map<std::uint64_t, Asking> asking_;

  std::unique_ptr<EngineLink> link_;  // last
};

std::unique_ptr<RunSource> RemoteSource::beside(std::shared_ptr<const RunInfo> run) {
  return std::make_unique<BranchSource>(
      std::move(run),
      [this](auto branch, std::int64_t layer, std::int64_t head, std::int64_t token, auto done) {
        show_at(branch, layer, head, token, std::move(done));
      },
      [this](int asker, auto branch, auto questions, auto tell) { ask_of(true, asker, branch, std::move(questions), std::move(tell)); });
}

}  // namespace

std::unique_ptr<EngineSource> make_remote_source(EnginePlace place, LinkHearing link) {
  return std::make_unique<RemoteSource>(std::move(place), std::move(link));
}

}  // namespace statescope
