// What a session's thread does with the runs: each task, and the file that keeps them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/checkpoint/digest.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/run/sample_ids.h"
#include "engine/session/session_worker.h"
#include "engine/unread.h"
#include "kernels/device.h"

namespace statescope {

Session::Worker::Loaded Session::Worker::load(const std::shared_ptr<const Checkpoint>& checkpoint) const {
  check_cancelled();
  const auto model = Model::load(checkpoint, device_ ? device_ : std::shared_ptr<Backend>(make_cpu_backend(0, device_name_.precision)));
  check_cancelled();
  return {model, make_tokenizer(*checkpoint, model->vocab())};
}

void Session::Worker::check_cancelled() const {
  if (cancelled_) throw Cancelled();
}

PromptInput Session::Worker::readable(const PromptInput& prompt, const Loaded& loaded) {
  if (!prompt.ids.empty() || why_no_text(*loaded.tokenizer).empty()) return prompt;
  return {.text = {}, .spans = {}, .ids = sample_ids(loaded.model->vocab()), .expected = {}, .generate = prompt.generate.value_or(0)};
}

Session::Worker::Loaded Session::Worker::load(const std::filesystem::path& path) {
  if (path.empty() && !tree_) throw Error("no checkpoint is open");
  if (path.empty() && !is_lost()) return {tree_->root()->model(), tree_->root()->tokenizer()};
  answer(callbacks_.progress, 0.0, std::string("opening"));
  return load(open_checkpoint(path.empty() ? tree_->root()->model()->checkpoint().path : path));
}

void Session::Worker::perform(const Opening& opening) {
  const Loaded loaded = load(opening.checkpoint);
  check_cancelled();
  std::shared_ptr<ReadingTree> tree;
  {
    // Of another checkpoint the first tokens are enough to be shown. On the open model the run shown stays until the prompt has been read.
    std::unique_lock lock(run_mutex_);
    const PromptInput prompt = readable(opening.prompt, loaded);
    std::shared_ptr<Reading> read;
    if (tree_ && opening.checkpoint.empty()) {
      read = std::make_shared<Reading>(loaded.model, loaded.tokenizer, prompt, reading(lock), budgets_);
    } else {
      answer(callbacks_.progress, 0.0, std::string("reading"));
      read = Reading::begin(loaded.model, loaded.tokenizer, prompt, budgets_);
      check_cancelled();
    }
    tree = std::make_shared<ReadingTree>(std::move(read), prompt);
  }
  close_session();
  sampling_ = {};
  show(std::move(tree));
  if (callbacks_.looks && unread(*tree_->current()->info()) > 0) wait_for_look();
  generate(tree_->current()->info()->prompt_length + tree_->current()->to_generate());
}

void Session::Worker::perform(const Reopening& reopening) {
  if (file_ && file_->path() == reopening.session) close_session();
  answer(callbacks_.progress, 0.0, std::string("opening"));
  std::optional<SessionFile> file = SessionFile::open(reopening.session);
  const Loaded loaded = load(file->open_checkpoint(reopening.checkpoint_places));
  const SessionRecord record = file->record();
  std::shared_ptr<ReadingTree> tree;
  {
    std::unique_lock lock(run_mutex_);
    Branches branches = file->restore_branches(loaded.model, budgets_, in_turns(lock, telling("restoring", record.tokens())));
    Run& run = *branches[0].run;
    const std::span<const std::int32_t> prompt = record.prompt_ids;
    if (run.tokens() < std::ssize(prompt)) {
      const auto tell = in_turns(lock, telling("reading", std::ssize(prompt)));
      run.read(prompt.subspan(static_cast<std::size_t>(run.tokens())), std::ssize(prompt), [&](std::int64_t tokens) {
        write(file, [&] { file->follow(branches); });
        return tell(tokens);
      });
    }
    if (run.tokens() < std::ssize(prompt)) throw Cancelled();
    tree = std::make_shared<ReadingTree>(std::move(branches), loaded.tokenizer, record.prompt);
  }
  close_session();
  if (file) file_.emplace(std::move(*file));
  if (record.place) {
    stand(*record.place);
    answer(callbacks_.place, *record.place);
  }
  sampling_ = record.sampling;
  show(std::move(tree));
  if (const std::string words = other_device(record.device); !words.empty()) answer(callbacks_.other_device, words);
  if (record.current == 0) generate(record.prompt_length() + record.prompt.generate.value_or(0));
}

DeviceChoice Session::Worker::device_of_tree() const {
  return on_device_ ? device_name_ : DeviceChoice{.precision = device_name_.precision};
}

std::string Session::Worker::other_device(const DeviceChoice& then) const {
  const auto words = [](const DeviceChoice& device) {
    const bool rounds = device.precision == Precision::bfloat16;
    if (device.name == "cpu") return rounds ? "the CPU in bfloat16" : "the CPU";
    return rounds ? "a CUDA device in bfloat16" : "a CUDA device";
  };
  const DeviceChoice now = device_of_tree();
  const bool same = (now.name == "cpu") == (then.name == "cpu") && now.precision == then.precision;
  return same ? "" : fmt::format("Saved on {}, read on {}: numbers agree with those of then within rounding.", words(then), words(now));
}

void Session::Worker::perform(const Generating& generating) {
  check_open();
  generate(generating.tokens);
}

void Session::Worker::perform(const Adding& adding) {
  check_open();
  read_on();
  const std::shared_ptr<Reading> root = tree_->root();
  {
    std::unique_lock lock(run_mutex_);
    tree_->add(Reading(root->model(), root->tokenizer(), adding.prompt, reading(lock), root->run().beside()).run_ptr());
  }
  tell_branches();
  keep_session();
}

void Session::Worker::perform(const Intervening& intervening) {
  check_open();
  read_on();
  try {
    const Run::Progress tell = telling("reading on", tree_->current()->run().tokens());
    std::unique_lock lock(run_mutex_);
    tree_->intervene(intervening.interventions, in_turns(lock, [&](std::int64_t tokens) {
                       lock.unlock();
                       follow_session();
                       lock.lock();
                       return tell(tokens);
                     }));
  } catch (const Error&) {
    keep_session();  // which may have the beginning of the branch
    throw;
  }
  show_current();
}

template <class To>
void Session::Worker::move(To to) {
  const std::int64_t before = tree_->branches().current();
  {
    const std::lock_guard lock(run_mutex_);
    to();
  }
  if (tree_->branches().current() != before) show_current();
}

void Session::Worker::perform(const GoingTo& going) {
  check_open();
  move([&] { tree_->go_to(going.branch); });
}

void Session::Worker::perform(Step step) {
  check_open();
  move([&] { step == Step::undo ? tree_->undo() : tree_->redo(); });
}

void Session::Worker::check_open() const {
  if (!tree_) throw Error("no checkpoint is open");
}

void Session::Worker::read_again() {
  check_open();
  const Branches& lost = tree_->branches();
  const std::vector<std::int32_t>& ids = lost[0].run->ids();
  const Loaded loaded = load(std::filesystem::path());
  const Run::Progress progress = telling("reading", std::ssize(ids));
  auto run = std::make_shared<Run>(loaded.model, budgets_);
  const std::int64_t prompt = lost[0].run->prompt_length();
  run->read(std::span(ids).first(static_cast<std::size_t>(std::min(prompt, std::ssize(ids)))), prompt, progress);
  while (run->tokens() < std::ssize(ids) && !cancelled_)
    run->read(std::span(ids).subspan(static_cast<std::size_t>(run->tokens()), 1), prompt, progress);
  if (run->tokens() < std::ssize(ids)) throw Cancelled();
  Branches branches(std::move(run));
  branches.restore(lost.records(), progress);
  branches.go_to(lost.current());
  if (file_) answer(callbacks_.not_saved, file_->path().string() + ": is not kept up to date after a device has failed; save it again");
  file_.reset();
  show(std::make_shared<ReadingTree>(std::move(branches), loaded.tokenizer, tree_->prompt()));
}

void Session::Worker::show(std::shared_ptr<ReadingTree> tree) {
  {
    const std::lock_guard lock(run_mutex_);
    tree_ = std::move(tree);
  }
  std::shared_ptr<const Model> model = tree_->root()->model();
  {
    const std::lock_guard lock(mutex_);
    model_.swap(model);  // the one before ends when nobody waits for the mutex
    tokenizer_ = tree_->root()->tokenizer();
  }
  replacing_ = false;
  on_device_ = device_ != nullptr;
  set_beside(nullptr);
  show_current();
}

void Session::Worker::show_current() {
  analyst_.set_reading(tree_->current());
  tell_branches();
  answer(callbacks_.run, tree_->current()->info());
  if (!why_cpu_.empty()) answer(callbacks_.device_failed, std::exchange(why_cpu_, {}) + "; the CPU reads from here on");
  if (unread(*tree_->current()->info()) == 0) tell_not_finite();
  keep_session();
}

/// What is not finite anywhere makes the last token's logits so.
void Session::Worker::tell_not_finite() {
  const std::lock_guard lock(run_mutex_);
  Run& run = tree_->current()->run();
  const std::vector<float> logits = run.logits(run.tokens() - 1);
  if (std::ranges::all_of(logits, [](float z) { return std::isfinite(z); })) return;
  answer(callbacks_.not_finite, "What this model computes is not finite: " + not_finite(run).text());
}

void Session::Worker::tell_branches() {
  if (replacing_) return;
  auto tree = std::make_shared<BranchTree>(tree_->told());
  if (file_) tree->session = file_->path();
  answer(callbacks_.branches, std::shared_ptr<const BranchTree>(std::move(tree)));
}

void Session::Worker::wait_for_look() {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, kLook, [&] { return cancelled_ || showing_; });
  lock.unlock();
  attend();
}

void Session::Worker::read_on() {
  const std::shared_ptr<Reading> reading = tree_->current();
  if (unread(*reading->info()) == 0) return;
  const Run& run = reading->run();
  const Run::Progress tell = telling("reading", run.prompt_length());
  tell(run.tokens());
  auto told = Clock::now();
  while (unread(*reading->info()) > 0 && !cancelled_) {
    {
      const std::lock_guard lock(run_mutex_);
      reading->read_on();
    }
    tell(run.tokens());
    if (const auto now = Clock::now(); now - told >= kOften) {
      told = now;
      answer(callbacks_.run, reading->info());
    }
    follow_session();
    attend();
  }
  answer(callbacks_.run, reading->info());
  if (unread(*reading->info()) > 0) throw Cancelled();
  tell_not_finite();
}

void Session::Worker::generate(std::int64_t tokens) {
  read_on();
  const std::shared_ptr<Reading> reading = tree_->current();
  Run& run = reading->run();
  const std::int64_t first = run.tokens();
  Sampler sampler(sampling_);
  sampler.skip(first - run.prompt_length());
  auto told = Clock::now();
  while (run.tokens() < tokens && !cancelled_) {
    {
      const std::lock_guard lock(run_mutex_);
      reading->append(sampler.next(run.logits(run.tokens() - 1)));
    }
    if (const auto now = Clock::now(); now - told >= kOften) {
      told = now;
      answer(callbacks_.progress, static_cast<double>(run.tokens() - first) / static_cast<double>(tokens - first),
             std::string("generating"));
      answer(callbacks_.run, reading->info());
    }
    follow_session();
    attend();
  }
  if (run.tokens() > first) answer(callbacks_.run, reading->info());
  if (run.tokens() < tokens) throw Cancelled();
}

template <class Work>
void Session::Worker::write(std::optional<SessionFile>& file, Work work) {
  if (!file) return;
  try {
    return work();
  } catch (const std::exception& error) {
    answer(callbacks_.not_saved, std::string(error.what()));
  }
  file.reset();
}

template <class Work>
void Session::Worker::with_session(Work work) {
  if (!file_) return;
  {
    const std::lock_guard lock(run_mutex_);
    write(file_, work);
  }
  if (!file_) tell_branches();
}

void Session::Worker::save_one(const Saving& saving) {
  try {
    if (file_ && file_->path() == saving.path) {
      const std::lock_guard lock(run_mutex_);
      file_->stand(place());
      file_->save(tree_->branches());
    } else {
      file_.emplace(begin_file(saving.path));
    }
    tell_branches();
    answer(saving.saved);
  } catch (const std::exception& error) {
    answer(saving.failed, std::string(error.what()));
  }
}

SessionFile Session::Worker::begin_file(const std::filesystem::path& path) {
  const Run& root = tree_->root()->run();
  SessionRecord record;
  record.checkpoint = std::filesystem::absolute(root.model().checkpoint().path);
  record.checkpoint_digest = content_digest(root.model().checkpoint());
  record.device = device_of_tree();
  record.prompt = tree_->prompt();
  record.prompt.generate = std::max(tree_->root()->to_generate(), root.tokens() - root.prompt_length());
  record.prompt_ids = tree_->root()->prompt_ids();
  record.sampling = sampling_;
  record.options = root.options();
  record.place = place();
  SessionFile file = SessionFile::create(path, std::move(record));
  try {
    const std::lock_guard lock(run_mutex_);
    file.save(tree_->branches());
  } catch (...) {
    file.remove();
    throw;
  }
  return file;
}

void Session::Worker::keep_session() {
  with_session([&] {
    file_->stand(place());
    file_->save(tree_->branches());
  });
}

void Session::Worker::follow_session() {
  with_session([&] {
    file_->stand(place());
    file_->follow(tree_->branches());
  });
}

void Session::Worker::close_session() {
  keep_session();
  file_.reset();
}

}  // namespace statescope
