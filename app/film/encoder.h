// Pictures to a film, by the system's ffmpeg in a process of its own.
#pragma once

#include <QImage>
#include <QProcess>
#include <filesystem>
#include <string>

namespace statescope {

class Encoder {
 public:
  /// Begins a film at `path`, whose format is `ending`: ".mp4" (H.264 where this ffmpeg has it) or ".gif". All pictures have that size.
  /// Throws Error where the ending is another one or there is no ffmpeg.
  Encoder(const std::filesystem::path& path, const std::string& ending, int width, int height, int frames_per_second);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  /// The next picture, Format_RGB32. Throws Error with ffmpeg's own words where it has given up.
  void add(const QImage& image);
  /// Throws Error likewise; without it the film is not whole.
  void finish();

 private:
  [[noreturn]] void give_up();

  QProcess process_;
};

}  // namespace statescope
