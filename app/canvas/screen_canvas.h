// The screen: a view's drawing through Dear ImGui's draw list, heatmaps as textures.
#pragma once

#include <imgui.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "app/canvas/heatmap_textures.h"
#include "app/canvas/screen_fonts.h"
#include "views/hits.h"

namespace statescope {

/// One per widget, with an ImGui context of its own. Made, used and destroyed on the interface thread with the same OpenGL context current.
class ScreenCanvas final : public Canvas {
 public:
  ScreenCanvas();
  ~ScreenCanvas() override;
  ScreenCanvas(const ScreenCanvas&) = delete;
  ScreenCanvas& operator=(const ScreenCanvas&) = delete;

  /// Calls `paint` and draws what it drew into the bound framebuffer of `size` × `pixel_ratio` pixels. `paint` may be called again when the
  /// font atlas lacked a size or character.
  void frame(Size size, float pixel_ratio, Color ground, const std::function<void(Canvas&)>& paint);
  /// Of the last frame.
  const HitRegions& hits() const { return hits_; }
  const HeatmapTextures& textures() const { return textures_; }

  Size size() const override { return size_; }
  float text_width(std::string_view text, const TextStyle& style) const override;
  void fill_rect(Rect rect, Color color, float corner) override;
  void stroke_rect(Rect rect, Color color, float width, float corner) override;
  void line(Point from, Point to, Color color, float width) override;
  void path(std::span<const Point> points, Color color, float width, bool filled) override;
  void ribbon(Point from, Point to, Color color, float width) override;
  void text(Point at, std::string_view text, const TextStyle& style) override;
  void heatmap(Rect rect, const Heatmap& cells) override;
  void push_clip(Rect rect) override;
  void pop_clip() override;
  void hit(Rect rect, const HitGrid& region) override;
  void zooms(Rect plot, bool across, bool down) override { hits_.add_plot(plot, across, down); }

 private:
  struct Context {
    Context();
    ~Context();
    ImGuiContext* context;
  };
  /// A face and the logical size of its em at which its pixels fall on those of the screen.
  struct Face {
    ImFont* font;
    float size;
  };
  /// A heatmap's tile, drawn when the draw list comes to it.
  struct Tile {
    ScreenCanvas* canvas;
    unsigned texture;
    Rect rect;
    ColorScale scale;
  };

  void begin(const std::function<void(Canvas&)>& paint);
  Face face(std::string_view text, const TextStyle& style) const;
  void add_tile(Rect rect, const Heatmap& cells, std::int64_t row, std::int64_t column);
  static void draw_tile(const ImDrawList* list, const ImDrawCmd* command);

  Context context_;  // first: the fonts' atlas belongs to it
  mutable ScreenFonts fonts_;
  HeatmapTextures textures_;
  Size size_;
  float pixel_ratio_ = 1;
  ImDrawList* list_ = nullptr;  // of the frame being drawn
  std::vector<Rect> clips_;
  std::deque<Tile> tiles_;
  HitRegions hits_;
};

}  // namespace statescope
