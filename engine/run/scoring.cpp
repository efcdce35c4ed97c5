#include "engine/run/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/run/sampling.h"
#include "kernels/cpu/parallel.h"

namespace statescope {
namespace {

constexpr std::int64_t kSpan = 512;                      // tokens of one forward pass
constexpr std::int64_t kLogits = std::int64_t{1} << 22;  // floats held at once
constexpr std::int64_t kLargeModel = 50'000'000;         // parameters from which one model takes all threads

double negative_log_likelihood(std::span<const float> logits, float largest, std::int32_t id) {
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest);
  return std::log(sum) - (static_cast<double>(logits[static_cast<std::size_t>(id)]) - static_cast<double>(largest));
}

TargetScore score_of(std::span<const float> logits, std::int32_t id) {
  const std::int32_t best = most_probable_id(logits);
  return {best == id, negative_log_likelihood(logits, logits[static_cast<std::size_t>(best)], id)};
}

Buffer allocate_floats(Backend& backend, std::int64_t count) { return backend.allocate(static_cast<std::size_t>(count) * sizeof(float)); }

}  // namespace

Scorer::Scorer(std::shared_ptr<Model> model)
    : model_(std::move(model)), logit_rows_(std::clamp<std::int64_t>(kLogits / model_->vocab(), 1, kSpan)) {
  Backend& backend = model_->backend();
  hidden_ = allocate_floats(backend, kSpan * model_->hidden());
  rows_ = allocate_floats(backend, logit_rows_ * model_->hidden());
  logits_ = allocate_floats(backend, logit_rows_ * model_->vocab());
}

std::vector<TargetScore> Scorer::score(const ScoredSequence& sequence, const std::stop_token& stop) {
  std::vector<TargetScore> scores;
  if (sequence.targets.empty()) return scores;
  const std::int64_t tokens = sequence.targets.back().position + 1;
  for (const Target& target : sequence.targets) model_->check_ids({&target.id, 1});
  ModelState state = model_->start();
  std::span<const Target> targets(sequence.targets);
  for (std::int64_t first = 0; first < tokens; first += kSpan) {
    if (stop.stop_requested()) throw Cancelled();
    const std::int64_t T = std::min(kSpan, tokens - first);
    Tensor hidden(hidden_.get(), DType::f32, {T, model_->hidden()});
    const auto ids = std::span(sequence.ids).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(T));
    const std::int64_t outputs = std::max<std::int64_t>(first + T - targets.front().position, 0);  // from the first target on
    model_->forward(state, ids, {.chunk_size = T == 1 ? 0 : 64, .prompt_length = sequence.prompt_length, .outputs = outputs}, hidden);
    const auto end = std::find_if(targets.begin(), targets.end(), [&](const Target& target) { return target.position >= first + T; });
    const auto here = static_cast<std::size_t>(end - targets.begin());
    score_rows(targets.first(here), first, hidden, scores);
    targets = targets.subspan(here);
  }
  if (!std::ranges::all_of(scores, [](const TargetScore& score) { return std::isfinite(score.nll); })) refuse_not_finite(sequence);
  return scores;
}

void Scorer::refuse_not_finite(const ScoredSequence& sequence) {
  statescope::refuse_not_finite(not_finite(model_, sequence.ids), *model_, "score");
}

/// `hidden` [T, D]: of the tokens from `first` on.
void Scorer::score_rows(std::span<const Target> targets, std::int64_t first, ConstTensor hidden, std::vector<TargetScore>& scores) {
  Backend& backend = model_->backend();
  const std::int64_t V = model_->vocab();
  std::vector<float> downloaded(static_cast<std::size_t>(V));
  while (!targets.empty()) {
    const auto chosen = targets.first(std::min(targets.size(), static_cast<std::size_t>(logit_rows_)));
    const auto n = static_cast<std::int64_t>(chosen.size());
    std::vector<std::int32_t> positions;
    for (const Target& target : chosen) positions.push_back(static_cast<std::int32_t>(target.position - first));
    Tensor rows(rows_.get(), DType::f32, {n, model_->hidden()}), logits(logits_.get(), DType::f32, {n, V});
    backend.gather_rows(rows, hidden, positions.data());
    model_->logits(logits, rows);
    for (std::int64_t i = 0; i < n; ++i) {
      backend.download(Tensor(downloaded.data(), DType::f32, {1, V}), logits.slice(i, 1));
      scores.push_back(score_of(downloaded, chosen[static_cast<std::size_t>(i)].id));
    }
    targets = targets.subspan(chosen.size());
  }
}

namespace {

/// Numbers handed out one by one to several threads.
class SharedWork {
 public:
  SharedWork(std::int64_t count, const ScorerPool::Work& work) : work_(work), count_(count) {}

  /// On each of the threads, until there is nothing left.
  void take_part(Scorer& scorer) {
    for (std::int64_t i; (i = next_++) < count_;) {
      try {
        tokens_ += work_(scorer, i, stop_.get_token());
      } catch (...) {
        keep_failure(i);
      }
    }
    const std::lock_guard lock(mutex_);
    ++finished_;
    changed_.notify_one();
  }

  void wait(int threads, const std::function<bool(std::int64_t)>& tell) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return finished_ == threads; })) {
      if (tell && !tell(tokens_)) stop();
    }
    if (tell && !tell(tokens_)) stop();
  }

  /// When all threads are done.
  void check() const {
    if (stop_.stop_requested()) throw Cancelled();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void stop() {
    stop_.request_stop();
    next_ = count_;
  }
  /// Every number below `i` has been handed out before it, so the lowest failure is found whatever the order.
  void keep_failure(std::int64_t i) {
    const std::lock_guard lock(mutex_);
    next_ = count_;
    if (i > failed_) return;
    failed_ = i;
    failure_ = std::current_exception();
  }

  const ScorerPool::Work& work_;
  std::int64_t count_;
  std::atomic<std::int64_t> next_{0}, tokens_{0};
  std::stop_source stop_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  int finished_ = 0;
  std::int64_t failed_ = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr failure_;
};

}  // namespace

std::size_t bytes_of_states(const Model& model, std::int64_t tokens) {
  std::int64_t numbers = 0;
  for (std::int64_t i = 0; i < model.layers(); ++i) {
    const MixerLayout& layout = model.layout(i);
    for (const MixerLayout::Memory& memory : layout.memory) numbers += memory.shape.size();
    for (const Shape& cache : layout.conv_caches) numbers += cache.size();
    numbers += tokens * (layout.kv_heads * (layout.key_dim + layout.value_dim) + layout.index_dim);
  }
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

ReadingRoom::Place ReadingRoom::take(std::size_t bytes, std::int64_t tokens) {
  constexpr double megabyte = 1e6;
  if (bytes_ > 0 && bytes > bytes_)
    throw Error(fmt::format("states and caches of a text of {} tokens take {:.1f} MB, and --memory allows {:.1f}", tokens,
                            static_cast<double>(bytes) / megabyte, static_cast<double>(bytes_) / megabyte));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return bytes_ == 0 || taken_ + bytes <= bytes_; });
  taken_ += bytes;
  return Place(*this, bytes);
}

ReadingRoom::Place::~Place() {
  const std::lock_guard lock(room_.mutex_);
  room_.taken_ -= bytes_;
  room_.changed_.notify_all();
}

ScorerPool::ScorerPool(std::shared_ptr<const Checkpoint> checkpoint, const DeviceChoice& device, std::size_t reading_budget)
    : room_(reading_budget) {
  if (std::shared_ptr<Backend> cuda = open_cuda_device(device)) {
    scorers_.push_back(std::make_unique<Scorer>(Model::load(checkpoint, std::move(cuda))));
  } else {
    const int threads = device.threads == 0 ? thread_count() : device.threads;
    const int models = checkpoint->parameters() > kLargeModel ? 1 : threads;
    for (int i = 0; i < models; ++i) {
      std::shared_ptr<Backend> cpu = make_cpu_backend(models == 1 ? threads : 1, device.precision);
      scorers_.push_back(std::make_unique<Scorer>(i == 0 ? Model::load(checkpoint, std::move(cpu)) : model().beside(std::move(cpu))));
    }
  }
  weights_are_finite_ = !find_not_finite(model(), LookedThrough::all_but_experts);
}

void ScorerPool::check_weights(const std::function<ScoredSequence()>& make) {
  if (!weights_are_finite_) scorers_.front()->refuse_not_finite(make());
}

void ScorerPool::each(std::int64_t count, const Work& work, const std::function<bool(std::int64_t)>& tell) {
  SharedWork shared(count, work);
  {
    std::vector<std::jthread> threads;
    for (const auto& scorer : scorers_) threads.emplace_back([&] { shared.take_part(*scorer); });
    shared.wait(static_cast<int>(threads.size()), tell);
  }
  shared.check();
}

std::vector<std::vector<TargetScore>> ScorerPool::score(std::int64_t count, const std::function<ScoredSequence(std::int64_t)>& make,
                                                        const std::function<bool(std::int64_t)>& tell) {
  if (count > 0) check_weights([&] { return make(0); });
  std::vector<std::vector<TargetScore>> scores(static_cast<std::size_t>(count));
  const auto work = [&](Scorer& scorer, std::int64_t i, const std::stop_token& stop) {
    const ScoredSequence sequence = make(i);
    const ReadingRoom::Place place = room_for(std::ssize(sequence.ids));
    scores[static_cast<std::size_t>(i)] = scorer.score(sequence, stop);
    return sequence.targets.empty() ? 0 : sequence.targets.back().position + 1;
  };
  each(count, work, tell);
  return scores;
}

}  // namespace statescope
