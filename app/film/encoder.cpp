#include "app/film/encoder.h"

#include <fmt/format.h>

#include <QStandardPaths>
#include <QStringList>

#include "engine/error.h"

namespace statescope {
namespace {

/// What ffmpeg does with the pictures. The same pictures give the same bytes.
QStringList encoding(const std::string& ending) {
  if (ending == ".mp4") return {"-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart", "-f", "mp4"};
  if (ending == ".gif") return {"-filter_complex", "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1", "-f", "gif"};
  throw Error("the name of a film must end in .mp4 or .gif");
}

/// A name alone could be an option, or an address in the network.
QString file_url(const std::filesystem::path& path) { return "file:" + QString::fromStdString(std::filesystem::absolute(path).string()); }

}  // namespace

Encoder::Encoder(const std::filesystem::path& path, const std::string& ending, int width, int height, int frames_per_second) {
  const QStringList encoding_of_it = encoding(ending);
  const QString program = QStandardPaths::findExecutable("ffmpeg");
  if (program.isEmpty()) throw Error("a film needs ffmpeg: install the package of that name");
  const QString size = QString("%1x%2").arg(width).arg(height), rate = QString::number(frames_per_second);
  process_.setStandardOutputFile(QProcess::nullDevice());
  process_.start(program, QStringList{"-nostdin", "-hide_banner", "-loglevel",   "error",     "-y",         "-f",       "rawvideo",
                                      "-pix_fmt", "bgr0",         "-video_size", size,        "-framerate", rate,       "-i",
                                      "pipe:0",   "-an",          "-fflags",     "+bitexact", "-flags:v",   "+bitexact"} +
                              encoding_of_it + QStringList{file_url(path)});
  if (!process_.waitForStarted(-1)) throw Error(fmt::format("ffmpeg cannot be started: {}", process_.errorString().toStdString()));
}

Encoder::~Encoder() {
  if (process_.state() == QProcess::NotRunning) return;
  process_.kill();
  process_.waitForFinished(-1);
}

void Encoder::add(const QImage& image) {
  if (process_.write(reinterpret_cast<const char*>(image.constBits()), image.sizeInBytes()) < 0) give_up();
  while (process_.bytesToWrite() > 0)
    if (!process_.waitForBytesWritten(-1)) give_up();
}

void Encoder::finish() {
  process_.closeWriteChannel();
  process_.waitForFinished(-1);
  if (process_.exitStatus() != QProcess::NormalExit || process_.exitCode() != 0) give_up();
}

void Encoder::give_up() {
  process_.waitForFinished(1000);
  const QStringList said = QString::fromUtf8(process_.readAllStandardError()).trimmed().split('\n');
  throw Error(fmt::format("ffmpeg gave up: {}", said.last().isEmpty() ? "it does not say why" : said.last().toStdString()));
}

}  // namespace statescope
