#include "app/web/lesson_reader.h"

#include <QCoreApplication>
#include <QEventLoop>
#include <QTimer>

#include "app/lesson/player.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr int look_ms = 10;

MakeSource source_on(const DeviceChoice& device) {
  return [device] { return make_session_source([device] { return open_cuda_device(device); }, device); };
}

/// A player with all that it moves, none of it shown.
class Reader {
 public:
  Reader(const DeviceChoice& device, const ReadingProgress& progress)
      : progress_(progress),
        source_(source_on(device)()),
        navigator_(*source_),
        stage_(navigator_, {}, false),
        comparison_(navigator_, source_on(device)),
        player_(navigator_, stage_, comparison_,
                [this](const std::filesystem::path& checkpoint, PromptInput prompt) { navigator_.open(checkpoint, std::move(prompt)); }) {
    navigator_.set_autoplay(false);
    navigator_.set_reduce_motion(true);  // steps stand at once
    const auto hear = [this](const QString& message) { problem_ = message.toStdString(); };
    QObject::connect(&navigator_, &Navigator::failed, &player_, hear);
    QObject::connect(&navigator_, &Navigator::device_failed, &player_, hear);
    QObject::connect(&player_, &LessonPlayer::failed, &player_, hear);
  }

  std::vector<ReadStep> read(const Lesson& lesson) {
    std::vector<ReadStep> steps;
    player_.start(lesson);
    for (std::size_t i = 0; i < lesson.steps.size(); ++i) {
      if (i > 0) player_.next();
      wait(i, lesson.steps.size());
      steps.push_back(read_step());
      if (!player_.step().question) continue;
      player_.next();  // without a prediction
      wait(i, lesson.steps.size());
      reveal(steps.back());
    }
    player_.leave();
    return steps;
  }

 private:
  bool stands() const {
    return player_.is_ready() && navigator_.is_current() && comparison_.is_settled() && !comparison_.is_opening() &&
           player_.is_at_picture();
  }

  void wait(std::size_t step, std::size_t steps) {
    QEventLoop loop;
    QTimer timer;
    bool goes_on = true;
    QObject::connect(&timer, &QTimer::timeout, &loop, [&] {
      goes_on = progress_(step, steps);
      if (!goes_on || !problem_.empty() || !peer_problem().empty() || stands()) loop.quit();
    });
    timer.start(look_ms);
    loop.exec();
    if (!goes_on) throw Cancelled();
    if (problem_.empty()) problem_ = peer_problem();
    if (!problem_.empty()) throw Error(problem_);
    if (player_.index() != step) throw Error("a step of the lesson does not come");
  }

  std::string peer_problem() const {
    for (const auto& peer : comparison_.peers())
      if (!peer->problem().isEmpty()) return peer->problem().toStdString();
    return {};
  }

  ReadPicture picture() const {
    const LessonPicture& picture = player_.picture();
    ReadPicture read{
        .picture = picture, .run = navigator_.run(), .own = {navigator_.checkpoint(), navigator_.cursor()}, .beside = {}, .play = {}};
    if (picture.play) read.play = token_of(*picture.play, *navigator_.run());
    if (!comparison_.peers().empty()) {
      const PeerRun& peer = *comparison_.peers().front();
      read.beside = {peer.checkpoint(), peer.navigator().cursor()};
    }
    return read;
  }

  ReadStep read_step() const {
    const LessonStep& step = player_.step();
    ReadStep read{.title = step.title,
                  .prose = player_.filled(step.prose),
                  .reveal = {},
                  .right = {},
                  .answer = {},
                  .broken = {},
                  .picture = picture(),
                  .revealed = {}};
    read.revealed = read.picture;
    if (!step.question) read.broken = player_.broken_claims();
    return read;
  }

  void reveal(ReadStep& read) const {
    const LessonStep& step = player_.step();
    read.reveal = player_.filled(step.reveal);
    read.right = player_.right_choice();
    read.answer = player_.answer();
    read.broken = player_.broken_claims();
    read.revealed = picture();
  }

  const ReadingProgress& progress_;
  std::string problem_;
  std::unique_ptr<RunSource> source_;
  Navigator navigator_;
  Stage stage_;
  Comparison comparison_;
  LessonPlayer player_;
};

}  // namespace

std::vector<ReadStep> read_lesson(const Lesson& lesson, const DeviceChoice& device, const ReadingProgress& progress) {
  return Reader(device, progress).read(lesson);
}

}  // namespace statescope
