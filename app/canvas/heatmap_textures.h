// Heatmaps on the graphics card: values as float textures, colours looked up per pixel.
#pragma once

#include <QOpenGLExtraFunctions>
#include <QOpenGLShaderProgram>
#include <QOpenGLVertexArrayObject>
#include <cstdint>
#include <map>
#include <tuple>

#include "views/canvas.h"

namespace statescope {

/// Made, used and destroyed with the same OpenGL context current.
class HeatmapTextures {
 public:
  HeatmapTextures();
  ~HeatmapTextures();
  HeatmapTextures(const HeatmapTextures&) = delete;
  HeatmapTextures& operator=(const HeatmapTextures&) = delete;

  /// A texture of `rows` × `columns` values whose rows lie `stride` apart; uploaded only if no texture of the last frame holds the same
  /// values.
  unsigned texture(const float* values, std::int64_t rows, std::int64_t columns, std::int64_t stride);
  /// Draws `texture` over `rect`, in units of which the viewport has `view`.
  void draw(unsigned texture, Rect rect, Size view, const ColorScale& scale);
  /// Forgets the textures that the frame now ending did not ask for.
  void end_frame();
  int uploads() const { return uploads_; }

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
  int uploads_ = 0;
};

}  // namespace statescope
