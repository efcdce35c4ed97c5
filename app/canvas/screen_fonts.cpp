#include "app/canvas/screen_fonts.h"

#include <backends/imgui_impl_opengl3.h>

#include <QByteArray>
#include <QFile>
#include <QtEndian>
#include <cstdlib>
#include <limits>

namespace statescope {
namespace {

/// ImGui counts a size from ascent to descent and from 1.90 on cuts it to whole pixels; we count the em. In the face that it gets, whose
/// descent alone is changed, both are the same.
QByteArray with_line_of_one_em(QByteArray face) {
  const auto table = [&face](const char* tag) {  // the file begins with a list of tag, checksum, offset, length
    return face.data() + qFromBigEndian<quint32>(face.constData() + face.indexOf(tag) + 8);
  };
  const auto em = qFromBigEndian<quint16>(table("head") + 18);
  char* const ascent = table("hhea") + 4;
  qToBigEndian(static_cast<qint16>(qFromBigEndian<qint16>(ascent) - em), ascent + 2);
  return face;
}

/// The file of a face, read once for all canvases.
const QByteArray& file_of(Font font, bool bold) {
  static const auto read = [](const char* name) {
    QFile file(QStringLiteral(":/fonts/%1.ttf").arg(QLatin1String(name)));
    return file.open(QIODevice::ReadOnly) ? with_line_of_one_em(file.readAll()) : QByteArray();
  };
  static const std::array<QByteArray, 4> files = {read("DejaVuSans"), read("DejaVuSans-Bold"), read("DejaVuSansMono"),
                                                  read("DejaVuSansMono-Bold")};
  return files[(font == Font::value ? 2u : 0u) + (bold ? 1u : 0u)];
}

}  // namespace

ScreenFonts::ScreenFonts() {
  for (ImWchar c = 0x20; c < 0x7f; ++c) characters_.insert(c);
  characters_.insert(0xfffd);
}

ImFont* ScreenFonts::face(Font font, bool bold, int pixels) {
  const Key key{font, bold, pixels};
  if (const auto found = faces_.find(key); found != faces_.end()) return found->second;
  keys_.insert(key);
  complete_ = false;
  ImFont* nearest = ImGui::GetFont();
  int distance = std::numeric_limits<int>::max();
  for (const auto& [have, face] : faces_) {
    if (have.font != font || std::abs(have.pixels - pixels) >= distance) continue;
    nearest = face;
    distance = std::abs(have.pixels - pixels);
  }
  return nearest;
}

void ScreenFonts::want(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < 0x80) {
      ++at;
      continue;
    }
    // A sequence of 2 … 4 bytes; what is malformed or beyond ImWchar is drawn as U+FFFD, which the atlas always has.
    const int length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (end - at < length) return;
    unsigned code = byte & (0xffu >> (length + 1));
    for (int i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(at[i]) & 0x3fu);
    if (code < 0x10000 && characters_.insert(static_cast<ImWchar>(code)).second) complete_ = false;
    at += length;
  }
}

void ScreenFonts::rebuild() {
  ranges_.clear();
  for (const ImWchar c : characters_) ranges_.insert(ranges_.end(), {c, c});
  ranges_.push_back(0);
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.Clear();
  atlas.Flags |= ImFontAtlasFlags_NoMouseCursors;
  faces_.clear();
  if (keys_.empty()) keys_.insert({Font::label, false, 13});
  for (const Key& key : keys_) {
    const QByteArray& file = file_of(key.font, key.bold);
    ImFontConfig config;
    config.FontDataOwnedByAtlas = false;
    void* data = const_cast<char*>(file.constData());  // read only; ImGui's interface is not const
    const auto pixels = static_cast<float>(key.pixels);
    faces_[key] = file.isEmpty() ? atlas.AddFontDefault()
                                 : atlas.AddFontFromMemoryTTF(data, static_cast<int>(file.size()), pixels, &config, ranges_.data());
    faces_[key]->FallbackChar = 0xfffd;
  }
  ImGui_ImplOpenGL3_DestroyFontsTexture();
  ImGui_ImplOpenGL3_CreateFontsTexture();
  complete_ = true;
}

}  // namespace statescope
