#include "engine/run/session.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "engine/error.h"
#include "engine/run/run.h"
#include "engine/run/sampling.h"
#include "engine/text/tokenizer.h"

namespace statescope {
namespace {

constexpr std::size_t kPredictions = 8;

struct Opening {
  std::filesystem::path checkpoint;  // empty: the open model reads another prompt
  PromptInput prompt;
  Session::OpenCallbacks callbacks;
};

struct Showing {
  std::int64_t layer, token;
  std::function<void(std::shared_ptr<const Snapshot>)> done;
};

/// Tokens that lie, wholly or in part, in a span of bytes.
TokenSpan token_span(const TextSpan& span, const Encoding& encoding) {
  TokenSpan tokens{span.kind, 0, 0};
  bool found = false;
  for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
    if (encoding.end[i] <= span.begin || encoding.begin[i] >= span.end) continue;
    if (!found) tokens.begin = static_cast<std::int64_t>(i);
    tokens.end = static_cast<std::int64_t>(i) + 1;
    found = true;
  }
  return tokens;
}

}  // namespace

class Session::Worker {
 public:
  explicit Worker(std::function<void(std::function<void()>)> post) : post_(std::move(post)), thread_([this] { work(); }) {}

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      cancelled_ = true;
    }
    wake_.notify_one();
    thread_.join();
    *alive_ = false;  // closures still on their way to the interface thread do nothing
  }

  void open(Opening opening) {
    const std::lock_guard lock(mutex_);
    if (opening_) answer(opening_->callbacks.failed, "replaced by a newer opening");
    opening_ = std::move(opening);
    cancelled_ = true;  // of the one under way
    wake_.notify_one();
  }

  void show(Showing showing) {
    const std::lock_guard lock(mutex_);
    showing_ = std::move(showing);
    wake_.notify_one();
  }

  void cancel() { cancelled_ = true; }

 private:
  /// Calls `callback` on the interface thread, unless the session has ended by then.
  template <class Callback, class... Values>
  void answer(const Callback& callback, Values... values) {
    if (!callback) return;
    post_([alive = alive_, callback, values...] {
      if (*alive) callback(values...);
    });
  }

  void work() {
    while (true) {
      std::optional<Opening> opening;
      std::optional<Showing> showing;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || opening_ || (showing_ && run_); });
        if (stopping_) return;
        opening.swap(opening_);
        if (opening) {
          cancelled_ = false;
        } else {
          showing.swap(showing_);
        }
      }
      if (opening) serve(*opening);
      if (showing) serve(*showing);
    }
  }

  void serve(const Opening& opening) {
    try {
      std::shared_ptr<Model> model = run_ ? run_->model_ptr() : nullptr;
      std::shared_ptr<const Tokenizer> tokenizer = tokenizer_;
      if (!opening.checkpoint.empty()) {
        answer(opening.callbacks.progress, 0.0, std::string("opening"));
        const auto checkpoint = open_checkpoint(opening.checkpoint);
        model = Model::load(checkpoint, std::shared_ptr<Backend>(make_cpu_backend()));
        tokenizer = make_tokenizer(*checkpoint, model->vocab());
      }
      if (!model) throw Error("no checkpoint is open");
      read(opening, model, tokenizer);
    } catch (const std::exception& error) {
      answer(opening.callbacks.failed, std::string(error.what()));
    }
  }

  void read(const Opening& opening, const std::shared_ptr<Model>& model, const std::shared_ptr<const Tokenizer>& tokenizer) {
    const PromptInput& prompt = opening.prompt;
    Encoding encoding;
    encoding.ids = prompt.ids;
    if (prompt.ids.empty()) encoding = tokenizer->encode(prompt.text);
    if (encoding.ids.empty()) throw Error("the prompt is empty");
    RunInfo info;
    info.model = model->info();
    info.prompt_length = static_cast<std::int64_t>(encoding.ids.size());
    for (const TextSpan& span : prompt.spans) info.spans.push_back(token_span(span, encoding));

    // The run that is shown stays until the new one has read its prompt.
    auto run = std::make_unique<Run>(model);
    const auto total = static_cast<double>(info.prompt_length + prompt.generate);
    auto progress = [&](std::int64_t tokens) {
      answer(opening.callbacks.progress, static_cast<double>(tokens) / total, std::string("reading"));
      return !cancelled_;
    };
    run->read(encoding.ids, info.prompt_length, progress);
    if (cancelled_) throw Error("cancelled");
    for (std::int32_t id : encoding.ids) info.tokens.push_back({id, tokenizer->text_of(id)});
    run_ = std::move(run);
    tokenizer_ = tokenizer;
    publish(opening, info);
    generate(opening, info);
  }

  void publish(const Opening& opening, const RunInfo& info) {
    info_ = std::make_shared<const RunInfo>(info);
    answer(opening.callbacks.run, info_);
  }

  /// Greedy continuation; what the cursor asks for meanwhile is answered between two tokens.
  void generate(const Opening& opening, RunInfo& info) {
    for (std::int64_t i = 0; i < opening.prompt.generate && !cancelled_; ++i) {
      const std::int32_t id = most_probable_id(run_->logits(run_->tokens() - 1));
      run_->read({&id, 1}, info.prompt_length);
      info.tokens.push_back({id, tokenizer_->text_of(id)});
      answer(opening.callbacks.progress, static_cast<double>(run_->tokens()) / static_cast<double>(info.prompt_length + opening.prompt.generate),
             std::string("generating"));
      publish(opening, info);
      std::optional<Showing> showing;
      {
        const std::lock_guard lock(mutex_);
        showing.swap(showing_);
      }
      if (showing) serve(*showing);
    }
  }

  void serve(const Showing& showing) {
    if (showing.layer < 0 || showing.layer >= run_->model().layers() || showing.token < 0 || showing.token >= run_->tokens()) return;
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->run = info_;
    snapshot->layer = showing.layer;
    snapshot->token = showing.token;
    std::tie(snapshot->before, snapshot->state) = run_->states_around(showing.layer, showing.token);
    snapshot->routing = run_->routing(showing.layer);
    snapshot->predictions = most_probable(run_->logits(showing.token), kPredictions, *tokenizer_);
    snapshot->exactness = run_->is_keyframe(showing.token) ? Exactness::exact : Exactness::recomputed;
    answer(showing.done, std::shared_ptr<const Snapshot>(snapshot));
  }

  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read and written on the interface thread alone

  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Opening> opening_;  // waiting, under the mutex
  std::optional<Showing> showing_;
  bool stopping_ = false;
  std::atomic<bool> cancelled_ = false;

  // Of the worker thread alone.
  std::unique_ptr<Run> run_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const RunInfo> info_;

  std::thread thread_;  // last: starts when all else stands
};

Session::Session(std::function<void(std::function<void()>)> post) : worker_(std::make_unique<Worker>(std::move(post))) {}
Session::~Session() = default;

void Session::open(std::filesystem::path checkpoint, PromptInput prompt, OpenCallbacks callbacks) {
  worker_->open({std::move(checkpoint), std::move(prompt), std::move(callbacks)});
}
void Session::read(PromptInput prompt, OpenCallbacks callbacks) { worker_->open({{}, std::move(prompt), std::move(callbacks)}); }
void Session::cancel() { worker_->cancel(); }
void Session::show(std::int64_t layer, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) {
  worker_->show({layer, token, std::move(done)});
}

}  // namespace statescope
