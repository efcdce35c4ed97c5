// How well a model predicts tokens that are known: right or wrong, and how probable it held them.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "engine/device.h"
#include "engine/model/model.h"

namespace statescope {

/// After reading the tokens up to and including `position`, the next one should be `id`.
struct Target {
  std::int64_t position = 0;
  std::int32_t id = 0;
};

struct ScoredSequence {
  std::vector<std::int32_t> ids;   // with every answer in its place
  std::int64_t prompt_length = 0;  // of these, what a generating model would have been given
  std::vector<Target> targets;     // by rising position
};

struct TargetScore {
  bool right = false;  // the most probable token, the lowest id of equals, is the wanted one
  double nll = 0;      // −ln p(id)
};

/// Reads sequences with one model. The true answer is in the text while it is predicted (teacher forcing), whatever the model said before:
/// all its tokens are right exactly if greedy generation gives the answer, for up to its first mistake both read the same.
class Scorer {
 public:
  explicit Scorer(std::shared_ptr<Model> model);

  /// One forward pass up to the last target. Throws Error: ids outside the vocabulary, Cancelled if a stop is requested; NotFiniteError
  /// where what is predicted is no number.
  std::vector<TargetScore> score(const ScoredSequence& sequence, const std::stop_token& stop = {});
  const Model& model() const { return *model_; }
  const std::shared_ptr<Model>& model_ptr() const { return model_; }
  /// Throws NotFiniteError if reading the sequence meets, or the model has, a number that is not finite.
  void refuse_not_finite(const ScoredSequence& sequence);

 private:
  void score_rows(std::span<const Target> targets, std::int64_t first, ConstTensor hidden, std::vector<TargetScore>& scores);

  std::shared_ptr<Model> model_;
  std::int64_t logit_rows_;  // of one product with the head
  Buffer hidden_, rows_, logits_;
};

/// What is kept of a text of so many tokens while a model reads it.
std::size_t bytes_of_states(const Model& model, std::int64_t tokens);

/// What the states and caches of the texts that are being read may take together, in bytes: a text that finds too little waits for others.
class ReadingRoom {
 public:
  explicit ReadingRoom(std::size_t bytes) : bytes_(bytes) {}

  /// What one text takes, until its end.
  class Place {
   public:
    Place(ReadingRoom& room, std::size_t bytes) : room_(room), bytes_(bytes) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place();

   private:
    ReadingRoom& room_;
    std::size_t bytes_;
  };
  /// `tokens`: the text's. Throws Error where it needs more than there is.
  Place take(std::size_t bytes, std::int64_t tokens);

 private:
  std::size_t bytes_, taken_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Several scorers at work on one checkpoint, each on a thread of its own with a model of one thread; a model too large for that has all
/// threads to itself, and on a CUDA device there is one. They hold the weights once.
class ScorerPool {
 public:
  /// `reading_budget`: bytes for states and caches of the texts that are being read; 0: as many as they take. Throws Error, DeviceError.
  ScorerPool(std::shared_ptr<const Checkpoint> checkpoint, const DeviceChoice& device, std::size_t reading_budget = 0);

  const Model& model() const { return scorers_.front()->model(); }
  /// For a text of so many tokens; held while it is read.
  ReadingRoom::Place room_for(std::int64_t tokens) { return room_.take(bytes_of_states(model(), tokens), tokens); }
  /// Throws NotFiniteError if the model has a number that is not finite: which, and what comes of it when it reads what `make` makes.
  void check_weights(const std::function<ScoredSequence()>& make);

  /// Does something with number `index` by one of the scorers and returns how many tokens were read; where a stop is requested it may
  /// throw.
  using Work = std::function<std::int64_t(Scorer& scorer, std::int64_t index, const std::stop_token& stop)>;
  /// Does it for 0 … count − 1, on the scorers' threads. `tell` hears, on this thread and now and then, how many tokens were read;
  /// returning false cancels. Throws what `work` threw, for the lowest number that failed, and Error Cancelled.
  void each(std::int64_t count, const Work& work, const std::function<bool(std::int64_t tokens)>& tell = {});

  /// The scores of make(0) … make(count − 1), in that order and the same whatever the number of threads. `make` is called on those threads;
  /// `tell` as of each(). Throws what each() throws of `make` or a scorer; NotFiniteError also where a weight is not finite.
  std::vector<std::vector<TargetScore>> score(std::int64_t count, const std::function<ScoredSequence(std::int64_t)>& make,
                                              const std::function<bool(std::int64_t tokens)>& tell = {});

 private:
  std::vector<std::unique_ptr<Scorer>> scorers_;
  ReadingRoom room_;
  bool weights_are_finite_ = true;
};

}  // namespace statescope
