#include "app/remote/served.h"

#include <QCoreApplication>
#include <algorithm>
#include <ranges>
#include <utility>

#include "app/common/path_words.h"
#include "app/runs/post.h"
#include "engine/error.h"
#include "engine/remote/wire.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

using remote::pack;
using remote::unpack;

constexpr std::size_t kWindow = 2;             // snapshots on the way at a time
constexpr std::size_t kMostUnheard = 200'000;  // events; a client that is so far behind is given up
constexpr std::size_t kMostQuestions = 256;
constexpr std::chrono::milliseconds kTellEvery{50};

}  // namespace

/// A stream of this session. The transport keeps it.
class Served::Stream final : public remote::EngineEnd {
 public:
  Stream(std::shared_ptr<Served> served, int number, remote::Event welcome)
      : served_(std::move(served)), number_(number), welcome_(std::move(welcome)) {}

  bool hear(remote::Request request) override {
    if (!served_->out_.take(request.number, request.heard)) return true;
    if (request.number == 0) return true;
    const std::weak_ptr<Served> weak = served_;
    QMetaObject::invokeMethod(
        qApp,
        [weak, request = std::move(request)]() mutable {
          if (const std::shared_ptr<Served> served = weak.lock()) served->perform(std::move(request));
        },
        Qt::QueuedConnection);
    return true;
  }
  std::optional<remote::Event> next() override {
    if (welcome_) return std::exchange(welcome_, std::nullopt);
    return served_->out_.next(number_);
  }
  void gone(const remote::Ending&) override {
    if (!served_->out_.end(number_)) return;
    const std::lock_guard lock(served_->mutex_);
    served_->alone_since_ = std::chrono::steady_clock::now();
  }
  /// Perhaps the last that knows of the session, which ends where it was made.
  ~Stream() override {
    QMetaObject::invokeMethod(
        qApp, [served = std::move(served_)] {}, Qt::QueuedConnection);
  }

 private:
  std::shared_ptr<Served> served_;
  const int number_;
  std::optional<remote::Event> welcome_;
};

Served::Served(std::string id, ServedRoot root, MakeSource make_source, AboutCheckpoints about)
    : id_(std::move(id)),
      root_(std::move(root)),
      make_source_(std::move(make_source)),
      about_(std::move(about)),
      out_([this](std::size_t on_the_way) { send_snapshot(on_the_way); }) {}

Served::~Served() = default;

std::shared_ptr<remote::EngineEnd> Served::attach(std::uint64_t heard, bool resumed) {
  const std::lock_guard lock(mutex_);
  alone_since_.reset();
  const int stream = out_.begin(heard);
  remote::Event welcome{.heard = out_.taken(), .told = remote::Welcome{id_, resumed, STATESCOPE_VERSION}};
  return std::make_shared<Stream>(shared_from_this(), stream, std::move(welcome));
}

std::optional<std::chrono::steady_clock::time_point> Served::alone_since() const {
  const std::lock_guard lock(mutex_);
  return alone_since_;
}

bool Served::is_over() const { return over_ || out_.count() > kMostUnheard; }

void Served::end() { out_.begin(0); }

RunSource& Served::source() {
  if (!source_) source_ = make_source_();
  return *source_;
}

RunSource* Served::beside(std::uint64_t run) {
  if (beside_.source && beside_.run == run) return beside_.source.get();
  std::shared_ptr<const RunInfo> branch;
  {
    const std::lock_guard lock(mutex_);
    branch = runs_.run(run);
  }
  if (!branch) return nullptr;
  beside_ = {run, source().beside(std::move(branch))};
  return beside_.source.get();
}

std::filesystem::path Served::existing(const std::string& name) {
  const std::filesystem::path path = root_.existing(name);
  called_[path] = name;
  return path;
}

std::string Served::as_called(const std::string& text) const {
  // Of two folders, one in the other, the inner one comes first.
  for (const auto& [path, name] : called_ | std::views::reverse) {
    if (says_path(text, path)) return with_path_called(text, path, name);
  }
  return root_.as_called(text);
}

remote::Failed Served::failed(Failure failure) const {
  failure.message = as_called(failure.message);
  return {pack(failure)};
}

template <class Told>
void Served::tell(std::uint64_t id, Told told) {
  out_.add({.id = id, .told = std::move(told)});
}

void Served::tell_progress(std::uint64_t id, double fraction, const std::string& what) {
  const auto is_older = [id](const remote::Event& event) {
    return event.id == id && std::holds_alternative<remote::Progressed>(event.told);
  };
  out_.add_instead({.id = id, .told = remote::Progressed{fraction, what}}, is_older);
}

void Served::tell_run(std::uint64_t id, const std::shared_ptr<const RunInfo>& run) {
  const bool grown = shown_ && shown_->model.name == run->model.name && shown_->prompt_length == run->prompt_length &&
                     shown_->tokens.size() < run->tokens.size();
  if (!grown) {
    const ModelFacts facts = source().facts();
    tell(id, remote::FactsTold{facts.no_text.toStdString(), facts.vocab});
  }
  shown_ = run;
  const std::lock_guard lock(mutex_);
  std::vector<remote::Event> before;
  const std::uint64_t number = runs_.number_of(run, before);
  for (remote::Event& event : before) out_.add(std::move(event));
  out_.add({.id = id, .told = remote::RunShown{number}});
}

void Served::tell_branches(std::uint64_t id, const BranchTree& tree) {
  BranchTree bare = tree;
  bare.runs.clear();
  bare.checkpoint = root_.name_of(tree.checkpoint);
  if (!tree.session.empty()) bare.session = root_.name_of(tree.session);
  remote::BranchesChanged told{.tree = pack(bare), .runs = {}};
  const std::lock_guard lock(mutex_);
  std::vector<remote::Event> before;
  for (const std::shared_ptr<const RunInfo>& run : tree.runs) {
    told.runs.push_back(run ? runs_.number_of(run, before) : 0);
    runs_.hold(told.runs);
  }
  for (remote::Event& event : before) out_.add(std::move(event));
  out_.add({.id = id, .told = std::move(told)});
}

/// On a stream's thread, when there is nothing else to send.
void Served::send_snapshot(std::size_t on_the_way) {
  if (on_the_way >= kWindow) return;
  const std::lock_guard lock(mutex_);
  const auto next = std::ranges::find_if(wanted_, [](const Wanted& wanted) { return wanted.snapshot != nullptr; });
  if (next == wanted_.end()) return;
  const bool is_beside = next != wanted_.begin();
  const std::shared_ptr<const Snapshot> snapshot = std::exchange(next->snapshot, nullptr);
  std::vector<remote::Event> events;
  const std::uint64_t run = runs_.number_of(snapshot->run, events);
  if (snapshot->routing) runs_.tell_routing(snapshot->layer, is_beside, snapshot->routing, events);
  events.push_back({.id = next->id, .told = remote::Shown{run, is_beside, snapshot->routing != nullptr, pack(*snapshot)}});
  out_.add_late(std::move(events));
}

Session::OpenCallbacks Served::callbacks(std::uint64_t id, bool looks) {
  const std::weak_ptr<Served> weak = weak_from_this();
  const auto telling = [weak, id](auto make) {
    return [weak, id, make](auto&&... values) {
      if (const std::shared_ptr<Served> self = weak.lock()) self->tell(id, make(values...));
    };
  };
  const auto remarking = [&](remote::About about) {
    return [weak, id, about](const std::string& text) {
      if (const std::shared_ptr<Served> self = weak.lock()) self->tell(id, remote::Remarked{about, self->as_called(text)});
    };
  };
  Session::OpenCallbacks result;
  result.looks = looks;
  result.progress = [weak, id](double fraction, const std::string& what) {
    if (const std::shared_ptr<Served> self = weak.lock()) self->tell_progress(id, fraction, what);
  };
  result.run = [weak, id](const std::shared_ptr<const RunInfo>& run) {
    if (const std::shared_ptr<Served> self = weak.lock()) self->tell_run(id, run);
  };
  result.failed = [weak, id](const Failure& failure) {
    if (const std::shared_ptr<Served> self = weak.lock()) self->tell(id, self->failed(failure));
  };
  result.done = telling([] { return remote::Done{}; });
  result.device_failed = remarking(remote::About::device_failed);
  result.not_saved = remarking(remote::About::not_saved);
  result.other_device = remarking(remote::About::other_device);
  result.not_finite = remarking(remote::About::not_finite);
  result.place = telling([](const RunPlace& place) { return remote::Placed{pack(place)}; });
  result.branches = [weak, id](const std::shared_ptr<const BranchTree>& tree) {
    if (const std::shared_ptr<Served> self = weak.lock()) self->tell_branches(id, *tree);
  };
  return result;
}

void Served::perform(remote::Request request) {
  const std::uint64_t id = request.id;
  try {
    std::visit(
        [&](auto& asked) {
          using Asked = std::decay_t<decltype(asked)>;
          if constexpr (std::is_same_v<Asked, remote::Open> || std::is_same_v<Asked, remote::Ask> || std::is_same_v<Asked, remote::Show> ||
                        std::is_same_v<Asked, remote::Describe> || std::is_same_v<Asked, remote::MakePrompt> ||
                        std::is_same_v<Asked, remote::Work>) {
            perform(id, asked);
          } else if constexpr (std::is_same_v<Asked, remote::Decode>) {
            const std::shared_ptr<const Tokenizer> tokenizer = source().facts().tokenizer;
            if (!tokenizer) throw Error("no checkpoint is open");
            tell(id, remote::Decoded{tokenizer->decode(asked.ids)});
          } else if constexpr (std::is_same_v<Asked, remote::Read>) {
            source().read(unpack<PromptInput>(asked.prompt), callbacks(id, asked.looks));
          } else if constexpr (std::is_same_v<Asked, remote::Generate>) {
            source().generate(asked.tokens, callbacks(id));
          } else if constexpr (std::is_same_v<Asked, remote::Cancel>) {
            source().cancel();
          } else if constexpr (std::is_same_v<Asked, remote::Intervene>) {
            source().intervene(unpack<std::vector<Intervention>>(asked.interventions), callbacks(id));
          } else if constexpr (std::is_same_v<Asked, remote::AddRun>) {
            source().add_run(unpack<PromptInput>(asked.prompt), callbacks(id));
          } else if constexpr (std::is_same_v<Asked, remote::Step>) {
            asked.forwards ? source().redo(callbacks(id)) : source().undo(callbacks(id));
          } else if constexpr (std::is_same_v<Asked, remote::GoToBranch>) {
            source().go_to_branch(asked.branch, callbacks(id));
          } else if constexpr (std::is_same_v<Asked, remote::Stand>) {
            source().stand_at(unpack<RunPlace>(asked.place));
          } else if constexpr (std::is_same_v<Asked, remote::OpenSession>) {
            const std::filesystem::path located = asked.located.empty() ? std::filesystem::path() : existing(asked.located);
            const std::filesystem::path path = root_.session(asked.path);
            called_[path] = asked.path;
            source().open_session(path, located, callbacks(id));
          } else if constexpr (std::is_same_v<Asked, remote::Save>) {
            const std::weak_ptr<Served> weak = weak_from_this();
            source().save(
                root_.writable(asked.path),
                [weak, id] {
                  if (const std::shared_ptr<Served> self = weak.lock()) self->tell(id, remote::Saved{});
                },
                [weak, id](const std::string& why) {
                  if (const std::shared_ptr<Served> self = weak.lock()) self->tell(id, remote::NotSaved{self->as_called(why)});
                });
          } else if constexpr (std::is_same_v<Asked, remote::Leave>) {
            over_ = true;
          }
        },
        request.asked);
  } catch (const std::exception& error) {
    if (std::holds_alternative<remote::Save>(request.asked)) return tell(id, remote::NotSaved{as_called(error.what())});
    tell(id, failed(Failure(error)));
  }
}

void Served::perform(std::uint64_t id, remote::Open& open) {
  source().open(existing(open.checkpoint), unpack<PromptInput>(open.prompt), callbacks(id, open.looks));
}

void Served::perform(std::uint64_t id, const remote::Describe& describe) {
  find_out(id, [describe, path = existing(describe.checkpoint), of = about_.describe](const auto& goes_on) {
    return of(describe, path, goes_on);
  });
}

void Served::perform(std::uint64_t id, const remote::MakePrompt& make) {
  find_out(id, [make, path = existing(make.checkpoint), of = about_.make_prompt](const auto&) { return of(make, path); });
}

void Served::perform(std::uint64_t id, const remote::Work& work) {
  if (!about_.do_job) throw Error("this engine does nothing for commands");
  using Clock = std::chrono::steady_clock;
  // Of the thread that works. What is said of it is said on the one where a session may end.
  const auto tell = [weak = weak_from_this(), id](double fraction, const std::string& what) {
    post([weak, id, fraction, what] {
      if (const std::shared_ptr<Served> self = weak.lock()) self->tell_progress(id, fraction, what);
    });
  };
  find_out(id, [job = work.job, path = existing(work.checkpoint), does = about_.do_job, tell](const auto& goes_on) {
    Clock::time_point told;
    return remote::Worked{does(job, path, [&](double fraction, const std::string& what) {
      if (const Clock::time_point now = Clock::now(); now - told > kTellEvery) {
        told = now;
        tell(fraction, what);
      }
      return goes_on();
    })};
  });
}

void Served::find_out(std::uint64_t id, std::function<Describing::Told(const std::function<bool()>&)> work) {
  if (!describing_) describing_ = std::make_unique<Describing>();
  describing_->add({std::move(work), [weak = weak_from_this(), id](Describing::Told told) {
                      const std::shared_ptr<Served> self = weak.lock();
                      if (!self) return;
                      if (const auto* why = std::get_if<remote::Failed>(&told)) told = self->failed(unpack<Failure>(why->failure));
                      self->out_.add({.id = id, .told = std::move(told)});
                    }});
}

void Served::perform(std::uint64_t id, const remote::Show& show) {
  RunSource* const looked_at = show.beside == 0 ? &source() : beside(show.beside);
  if (looked_at == nullptr) return;
  const std::size_t which = show.beside == 0 ? 0 : 1;
  {
    const std::lock_guard lock(mutex_);
    newest_show_[which] = id;
    wanted_[which].snapshot = nullptr;
  }
  looked_at->show(show.layer, show.head, show.token, [weak = weak_from_this(), id, which](std::shared_ptr<const Snapshot> snapshot) {
    const std::shared_ptr<Served> self = weak.lock();
    if (!self) return;
    {
      const std::lock_guard lock(self->mutex_);
      if (self->newest_show_[which] != id) return;
      self->wanted_[which] = {id, std::move(snapshot)};
    }
    self->out_.wake();
  });
}

void Served::perform(std::uint64_t id, remote::Ask& ask) {
  if (ask.questions.size() > kMostQuestions) throw remote::WireError("too many questions at a time");
  std::shared_ptr<const RunInfo> run;
  {
    const std::lock_guard lock(mutex_);
    run = runs_.run(ask.run);
  }
  RunSource* const asked = ask.beside ? beside(ask.run) : &source();
  if (!run || asked == nullptr) return;  // of a run that is not shown any more
  std::vector<Question> questions;
  for (const std::string& question : ask.questions) questions.push_back(unpack<Question>(question));
  const auto known = std::make_shared<const std::vector<Question>>(questions);
  asked->ask(ask.asker, std::move(run), std::move(questions),
             [weak = weak_from_this(), id, known, asker = ask.asker](const Question& question, const Finding& finding) {
               const auto found = std::ranges::find(*known, question);
               const std::shared_ptr<Served> self = weak.lock();
               if (!self || found == known->end()) return;
               const auto number = static_cast<std::uint32_t>(found - known->begin());
               const auto is_older = [&](const remote::Event& event) {
                 const auto* older = std::get_if<remote::Found>(&event.told);
                 return older && event.id == id && older->question == number;
               };
               self->out_.add_instead({.id = id, .told = remote::Found{asker, number, remote::pack_finding(question, finding)}}, is_older);
             });
}

}  // namespace statescope
