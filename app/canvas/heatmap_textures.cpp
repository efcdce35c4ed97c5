#include "app/canvas/heatmap_textures.h"

#include <QOpenGLContext>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "views/colormaps.h"

namespace statescope {
namespace {

constexpr std::array maps = {ColorMap::viridis, ColorMap::cividis, ColorMap::diverging, ColorMap::diverging_dark};

constexpr const char* vertex_shader = R"(#version 330 core
uniform vec4 rect;  // left, top, right, bottom in clip space
out vec2 at;        // 0 … 1 from the first cell to the last
void main() {
  at = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(mix(rect.xy, rect.zw, at), 0.0, 1.0);
}
)";

constexpr const char* fragment_shader = R"(#version 330 core
uniform sampler2D values;
uniform sampler2D colors;
uniform vec2 scale;    // low, high; of a logarithmic one their logarithms
uniform bool logarithmic, blank;
uniform int map;
in vec2 at;
out vec4 color;
void main() {
  ivec2 cells = textureSize(values, 0);
  float value = texelFetch(values, clamp(ivec2(at * vec2(cells)), ivec2(0), cells - 1), 0).r;
  // The bits, because compilers may take isnan away.
  if ((floatBitsToUint(value) & 0x7fffffffu) > 0x7f800000u) {
    if (blank) discard;
    bool stripe = mod(gl_FragCoord.x + gl_FragCoord.y, 8.0) < 2.0;
    color = vec4(vec3(stripe ? 90.0 : 160.0) / 255.0, 1.0);
    return;
  }
  if (logarithmic) value = value > 0.0 ? max(log(value), scale.x) : scale.x;
  float t = scale.y > scale.x ? clamp((value - scale.x) / (scale.y - scale.x), 0.0, 1.0) : 0.5;
  color = texelFetch(colors, ivec2(int(t * 255.0 + 0.5), map), 0);
}
)";

std::size_t hash_of(const float* values, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  std::size_t hash = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::string_view bytes(reinterpret_cast<const char*>(values + r * stride), static_cast<std::size_t>(columns) * sizeof(float));
    hash = hash * 1099511628211u + std::hash<std::string_view>{}(bytes);
  }
  return hash;
}

}  // namespace

HeatmapTextures::HeatmapTextures() {
  gl_.initializeOpenGLFunctions();
  program_.addShaderFromSourceCode(QOpenGLShader::Vertex, vertex_shader);
  program_.addShaderFromSourceCode(QOpenGLShader::Fragment, fragment_shader);
  program_.link();
  no_attributes_.create();
  std::vector<std::uint8_t> pixels;
  for (const ColorMap map : maps)
    for (const Color c : color_table(map)) pixels.insert(pixels.end(), {c.r, c.g, c.b, c.a});
  gl_.glGenTextures(1, &colors_);
  gl_.glBindTexture(GL_TEXTURE_2D, colors_);
  gl_.glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  gl_.glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  gl_.glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
  gl_.glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 256, static_cast<int>(maps.size()), 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels.data());
}

HeatmapTextures::~HeatmapTextures() {
  for (const auto& [key, entry] : textures_) gl_.glDeleteTextures(1, &entry.texture);
  gl_.glDeleteTextures(1, &colors_);
}

unsigned HeatmapTextures::texture(const Heatmap& cells, const HeatmapTile& tile) {
  const std::int64_t offset = tile.row * cells.columns + tile.column;
  const float* values = cells.values.data() + offset;
  Entry& entry = textures_[Key{tile.rows, tile.columns, hash_of(values, tile.rows, tile.columns, cells.columns)}];
  entry.used = true;
  if (entry.texture != 0) return entry.texture;
  gl_.glGenTextures(1, &entry.texture);
  gl_.glBindTexture(GL_TEXTURE_2D, entry.texture);
  gl_.glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  gl_.glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  gl_.glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  gl_.glPixelStorei(GL_UNPACK_ROW_LENGTH, static_cast<int>(cells.columns));
  const bool from_device = pixels_.bind(cells.on_device);
  (from_device ? shared_ : uploads_) += 1;
  const auto place = static_cast<std::uintptr_t>(cells.first + offset) * sizeof(float);  // in the buffer that is bound
  gl_.glTexImage2D(GL_TEXTURE_2D, 0, GL_R32F, static_cast<int>(tile.columns), static_cast<int>(tile.rows), 0, GL_RED, GL_FLOAT,
                   from_device ? reinterpret_cast<const void*>(place) : values);
  if (from_device) pixels_.unbind();
  gl_.glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
  return entry.texture;
}

void HeatmapTextures::draw(unsigned texture, Rect rect, Size view, const ColorScale& scale) {
  const auto x = [&](float at) { return 2 * at / view.w - 1; };
  const auto y = [&](float at) { return 1 - 2 * at / view.h; };
  program_.bind();
  program_.setUniformValue("rect", x(rect.x), y(rect.y), x(rect.right()), y(rect.bottom()));
  const auto place = [&](float value) { return scale.logarithmic ? std::log(value) : value; };
  program_.setUniformValue("scale", place(scale.low), place(scale.high));
  program_.setUniformValue("logarithmic", scale.logarithmic);
  program_.setUniformValue("blank", scale.blank);
  program_.setUniformValue("map", static_cast<int>(scale.map));
  program_.setUniformValue("values", 0);
  program_.setUniformValue("colors", 1);
  gl_.glActiveTexture(GL_TEXTURE1);
  gl_.glBindTexture(GL_TEXTURE_2D, colors_);
  gl_.glBindSampler(1, 0);
  gl_.glActiveTexture(GL_TEXTURE0);
  gl_.glBindTexture(GL_TEXTURE_2D, texture);
  gl_.glBindSampler(0, 0);
  no_attributes_.bind();
  gl_.glDisable(GL_BLEND);
  gl_.glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
  no_attributes_.release();
}

void HeatmapTextures::end_frame() {
  pixels_.end_frame();
  for (auto at = textures_.begin(); at != textures_.end();) {
    if (std::exchange(at->second.used, false)) {
      ++at;
      continue;
    }
    gl_.glDeleteTextures(1, &at->second.texture);
    at = textures_.erase(at);
  }
}

}  // namespace statescope
