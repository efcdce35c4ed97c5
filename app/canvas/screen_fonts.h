// The bundled faces at the pixel sizes and with the characters that drawings asked for.
#pragma once

#include <imgui.h>

#include <array>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "views/canvas.h"

namespace statescope {

/// Belongs to one ImGui context, which is current in every call.
class ScreenFonts {
 public:
  ScreenFonts();

  /// The face at `pixels` per em; if the atlas lacks it, the nearest size, and `rebuild` will add it.
  ImFont* face(Font font, bool bold, int pixels);
  /// Notes the characters of `text` that the atlas lacks.
  void want(std::string_view text);
  bool is_complete() const { return complete_; }
  /// Between frames only.
  void rebuild();

 private:
  struct Key {
    Font font;
    bool bold;
    int pixels;
    auto operator<=>(const Key&) const = default;
  };
  std::set<Key> keys_;
  std::map<Key, ImFont*> faces_;
  std::set<ImWchar> characters_;
  std::vector<ImWchar> ranges_;  // the atlas reads them when it is built
  bool complete_ = false;
};

}  // namespace statescope
