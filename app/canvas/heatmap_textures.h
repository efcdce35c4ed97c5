// Heatmaps on the graphics card: values as float textures, colours looked up per pixel.
#pragma once

#include <QOpenGLExtraFunctions>
#include <QOpenGLShaderProgram>
#include <QOpenGLVertexArrayObject>
#include <cstdint>
#include <map>
#include <tuple>

#include "app/canvas/device_pixels.h"
#include "views/canvas.h"

namespace statescope {

/// Rows [row, row + rows) and columns [column, column + columns) of a heatmap.
struct HeatmapTile {
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;
};

/// Made, used and destroyed with the same OpenGL context current.
class HeatmapTextures {
 public:
  HeatmapTextures();
  ~HeatmapTextures();
  HeatmapTextures(const HeatmapTextures&) = delete;
  HeatmapTextures& operator=(const HeatmapTextures&) = delete;

  /// A texture of a tile's values; made only if no texture of the last frame holds the same values. They come from the device that has
  /// them, where it draws this context, else from the host.
  unsigned texture(const Heatmap& cells, const HeatmapTile& tile);
  /// Draws `texture` over `rect`, in units of which the viewport has `view`.
  void draw(unsigned texture, Rect rect, Size view, const ColorScale& scale);
  /// Forgets the textures that the frame now ending did not ask for.
  void end_frame();
  int uploads() const { return uploads_; }
  /// Textures that were made without the host's numbers.
  int shared() const { return shared_; }

 private:
  struct Entry {
    unsigned texture = 0;
    bool used = true;
  };
  using Key = std::tuple<std::int64_t, std::int64_t, std::size_t>;  // rows, columns, hash of the values

  QOpenGLExtraFunctions gl_;
  QOpenGLShaderProgram program_;
  QOpenGLVertexArrayObject no_attributes_;
  unsigned colors_ = 0;  // [ColorMap, 256]
  std::map<Key, Entry> textures_;
  DevicePixels pixels_;
  int uploads_ = 0, shared_ = 0;
};

}  // namespace statescope
