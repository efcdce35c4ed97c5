// What one side has to say to the other, whatever becomes of the streams between them: it is numbered as it is sent, kept until the other
// side tells that it has come, and sent again on the next stream where it has not.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace statescope {

template <class Message>
class Outgoing {
 public:
  /// Makes what is best made when it can be sent, and calls add_late: asked where nothing else waits, told how many of those have not come.
  using Late = std::function<void(std::size_t on_the_way)>;

  explicit Outgoing(Late late = {}) : late_(std::move(late)) {}

  void add(Message message) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(message)});
    wake_.notify_all();
  }
  /// One, and what it needs before it.
  void add_late(std::vector<Message> messages) {
    const std::lock_guard lock(mutex_);
    for (Message& message : messages) waiting_.push_back({std::move(message)});
    waiting_.back().late = true;
    ++late_count_;
    looks_ = true;
    wake_.notify_all();
  }
  /// Takes the place of what it is newer than and is not sent yet.
  template <class IsOlder>
  void add_instead(Message message, IsOlder is_older) {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const Entry& entry) { return is_older(entry.message); });
    waiting_.push_back({std::move(message)});
    wake_.notify_all();
  }
  /// There is something late.
  void wake() {
    const std::lock_guard lock(mutex_);
    looks_ = true;
    wake_.notify_all();
  }

  /// Of a message that came: whether it has not come before, on another stream. Tells the other side soon.
  bool take(std::uint64_t number, std::uint64_t heard) {
    const std::lock_guard lock(mutex_);
    drop_heard(heard);
    if (number == 0) return true;
    owes_ = true;
    wake_.notify_all();
    return number > std::exchange(taken_, std::max(taken_, number));
  }
  std::uint64_t taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

  /// A stream begins, another one that has not ended does: the other side has heard this much. Returns what `next` and `end` take.
  int begin(std::uint64_t heard) {
    const std::lock_guard lock(mutex_);
    drop_heard(heard);
    sent_ = 0;
    looks_ = true;
    wake_.notify_all();
    return ++stream_;
  }
  /// Whether that stream had not ended.
  bool end(int stream) {
    const std::lock_guard lock(mutex_);
    if (stream != stream_) return false;
    ++stream_;
    wake_.notify_all();
    return true;
  }
  /// None: the stream has ended.
  std::optional<Message> next(int stream) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stream != stream_ || sent_ < kept_.size() || !waiting_.empty() || looks_ || owes_; });
      if (stream != stream_) return std::nullopt;
      if (sent_ == kept_.size() && waiting_.empty() && looks_) {
        looks_ = false;
        if (late_) {
          const std::size_t on_the_way = late_count_;
          lock.unlock();
          late_(on_the_way);
          lock.lock();
          continue;
        }
      }
      if (sent_ == kept_.size() && !waiting_.empty()) {
        waiting_.front().message.number = ++last_;
        kept_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
      if (sent_ == kept_.size() && !owes_) continue;
      Message message = sent_ < kept_.size() ? kept_[sent_++].message : Message();
      message.heard = taken_;
      owes_ = false;
      return message;
    }
  }

  /// Neither sent nor known to have come.
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return kept_.size() + waiting_.size();
  }
  template <class Visit>
  void for_each_waiting(Visit visit) {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : waiting_) visit(entry.message);
  }
  /// The other side is another one, which knows of nothing.
  void begin_anew() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
    waiting_.clear();
    sent_ = late_count_ = 0;
    taken_ = last_ = 0;
    owes_ = false;
  }

 private:
  struct Entry {
    Message message;
    bool late = false;
  };
  void drop_heard(std::uint64_t heard) {
    for (; !kept_.empty() && kept_.front().message.number <= heard; kept_.pop_front()) {
      if (sent_ > 0) --sent_;
      if (!kept_.front().late) continue;
      --late_count_;
      looks_ = true;
      wake_.notify_all();
    }
  }

  const Late late_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Entry> waiting_;           // without a number yet
  std::deque<Entry> kept_;              // numbered, and not known to have come
  std::size_t sent_ = 0;                // of those, on this stream
  std::size_t late_count_ = 0;          // made late, and not known to have come
  std::uint64_t last_ = 0, taken_ = 0;  // the last number given, and that came
  int stream_ = 0;
  bool looks_ = false, owes_ = false;  // for what is late; that it has been heard
};

}  // namespace statescope
