#include "app/remote/engine_link.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

namespace statescope {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{50}, kLongestPause{5000};
constexpr milliseconds kLeaving{1000};

}  // namespace

class EngineLink::Stream final : public remote::ClientEnd {
 public:
  explicit Stream(EngineLink& link) : link_(link) {}

  bool hear(remote::Event event) override {
    try {
      if (auto* welcome = std::get_if<remote::Welcome>(&event.told)) {
        be_welcome(*welcome, event.heard);
      } else if (link_.out_.take(event.number, event.heard) && event.number > 0) {
        link_.hearing_.event(std::move(event));
      }
      return true;
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      wrong_ = std::string("its messages cannot be read: ") + error.what();
      return false;
    }
  }

  std::optional<remote::Request> next() override {
    int number = 0;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return number_ || ending_; });
      if (!number_) return std::nullopt;
      number = *number_;
    }
    std::optional<remote::Request> request = link_.out_.next(number);
    if (request && std::holds_alternative<remote::Leave>(request->asked)) link_.out_.end(number);  // nothing comes behind it
    return request;
  }

  void gone(const remote::Ending& ending) override {
    const std::lock_guard lock(mutex_);
    if (number_) link_.out_.end(*number_);
    ending_ = wrong_ ? remote::Ending{.why = *wrong_, .final = true} : ending;
    wake_.notify_all();
  }

  void go_on() {
    const std::lock_guard lock(mutex_);
    if (!ending_) number_ = link_.out_.begin(heard_);
    wake_.notify_all();
  }
  /// None within that time.
  std::optional<remote::Ending> wait_for(milliseconds time) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, time, [&] { return ending_.has_value(); });
    return ending_;
  }
  bool was_welcome() const { return was_welcome_; }

 private:
  void be_welcome(const remote::Welcome& welcome, std::uint64_t heard) {
    bool anew = false;
    {
      const std::lock_guard lock(link_.mutex_);
      anew = !link_.session_.empty() && !welcome.resumed;
      link_.session_ = welcome.session;
      if (anew) link_.waits_ = std::static_pointer_cast<Stream>(self_.lock());
    }
    was_welcome_ = true;
    {
      const std::lock_guard lock(mutex_);
      heard_ = heard;
    }
    link_.hearing_.connected(anew);
    if (!anew) go_on();
  }

  friend class EngineLink;
  EngineLink& link_;
  std::weak_ptr<Stream> self_;
  std::atomic<bool> was_welcome_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t heard_ = 0;
  std::optional<int> number_;  // of what goes out; none: not yet
  std::optional<std::string> wrong_;
  std::optional<remote::Ending> ending_;
};

EngineLink::EngineLink(EnginePlace place, Hearing hearing)
    : place_(std::move(place)), hearing_(std::move(hearing)), thread_([this] { work(); }) {}

EngineLink::~EngineLink() {
  out_.add({.asked = remote::Leave{}});
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void EngineLink::go_on() {
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard lock(mutex_);
    stream = std::exchange(waits_, nullptr);
  }
  if (stream) stream->go_on();
}

void EngineLink::work() {
  constexpr milliseconds look{20};
  milliseconds pause = kFirstPause;
  while (true) {
    remote::ConnectSetup setup{.address = place_.address, .tls = place_.tls, .authorities = place_.authorities};
    setup.hello.version = STATESCOPE_VERSION;
    setup.hello.token = place_.token;
    setup.hello.heard = out_.taken();
    {
      const std::lock_guard lock(mutex_);
      setup.hello.session = session_;
    }
    const auto stream = std::make_shared<Stream>(*this);
    stream->self_ = stream;
    std::unique_ptr<remote::Connection> connection = remote::transport().connect(std::move(setup), stream);
    std::optional<remote::Ending> ending;
    milliseconds left = kLeaving;
    bool stopping = false;
    while (!ending && left.count() > 0) {
      ending = stream->wait_for(look);
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
      if (stopping) left = stream->was_welcome() ? left - look : milliseconds(0);
    }
    connection.reset();
    if (stopping) return;
    hearing_.lost(*ending);
    if (ending->final) return;
    pause = stream->was_welcome() ? kFirstPause : std::min(pause * 2, kLongestPause);
    std::unique_lock lock(mutex_);
    waits_.reset();
    if (wake_.wait_for(lock, pause, [&] { return stopping_; })) return;
  }
}

}  // namespace statescope
