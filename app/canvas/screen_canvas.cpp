#include "app/canvas/screen_canvas.h"

#include <backends/imgui_impl_opengl3.h>

#include <algorithm>
#include <cmath>

#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::int64_t tile_side = 1024;          // cells
constexpr float line_per_em = 2384.0f / 2048.0f;  // from ascent to descent, in all DejaVu faces
constexpr int most_passes = 3;                    // of one frame: sizes, then characters that only appear at the right sizes

ImU32 packed(Color color) { return IM_COL32(color.r, color.g, color.b, color.a); }
ImVec2 vec(Point p) { return {p.x, p.y}; }
ImVec2 low(Rect rect) { return {rect.x, rect.y}; }
ImVec2 high(Rect rect) { return {rect.right(), rect.bottom()}; }

}  // namespace

ScreenCanvas::Context::Context() : context(ImGui::CreateContext()) {
  ImGui::SetCurrentContext(context);
  ImGui::GetIO().IniFilename = nullptr;
  ImGui::GetIO().LogFilename = nullptr;
  if (ImGui_ImplOpenGL3_Init("#version 330 core")) return;
  ImGui::DestroyContext(context);
  throw Error("OpenGL 3.3 could not be loaded; start with --no-opengl");
}

ScreenCanvas::Context::~Context() {
  ImGui::SetCurrentContext(context);
  ImGui_ImplOpenGL3_Shutdown();
  ImGui::DestroyContext(context);
}

ScreenCanvas::ScreenCanvas() = default;
ScreenCanvas::~ScreenCanvas() = default;

void ScreenCanvas::begin(const std::function<void(Canvas&)>& paint) {
  if (!fonts_.is_complete()) fonts_.rebuild();
  ImGui_ImplOpenGL3_NewFrame();
  ImGui::NewFrame();
  list_ = ImGui::GetBackgroundDrawList();
  list_->_FringeScale = 1 / pixel_ratio_;
  clips_ = {{0, 0, size_.w, size_.h}};
  tiles_.clear();
  hits_.clear();
  paint(*this);
  ImGui::EndFrame();
  list_ = nullptr;
}

void ScreenCanvas::frame(Size size, float pixel_ratio, Color ground, const std::function<void(Canvas&)>& paint) {
  ImGui::SetCurrentContext(context_.context);
  size_ = size;
  pixel_ratio_ = pixel_ratio;
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {size.w, size.h};
  io.DisplayFramebufferScale = {pixel_ratio, pixel_ratio};
  begin(paint);
  for (int pass = 1; pass < most_passes && !fonts_.is_complete(); ++pass) begin(paint);
  QOpenGLFunctions* gl = QOpenGLContext::currentContext()->functions();
  gl->glClearColor(static_cast<float>(ground.r) / 255, static_cast<float>(ground.g) / 255, static_cast<float>(ground.b) / 255, 1);
  gl->glClear(GL_COLOR_BUFFER_BIT);
  ImGui::Render();
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  textures_.end_frame();
}

ScreenCanvas::Face ScreenCanvas::face(std::string_view text, const TextStyle& style) const {
  fonts_.want(text);
  const int pixels = std::max(1, static_cast<int>(std::lround(style.size * pixel_ratio_)));
  ImFont* font = fonts_.face(style.font, style.bold, pixels);
  return {font, font->FontSize / pixel_ratio_};
}

float ScreenCanvas::text_width(std::string_view text, const TextStyle& style) const {
  if (text.empty()) return 0;  // ImGui would look for the end of a text without beginning
  const Face found = face(text, style);
  return found.font->CalcTextSizeA(found.size, INFINITY, 0, text.data(), text.data() + text.size()).x;
}

void ScreenCanvas::fill_rect(Rect rect, Color color, float corner) { list_->AddRectFilled(low(rect), high(rect), packed(color), corner); }

void ScreenCanvas::stroke_rect(Rect rect, Color color, float width, float corner) {
  list_->AddRect(low(rect), high(rect), packed(color), corner, 0, width);
}

void ScreenCanvas::line(Point from, Point to, Color color, float width) { list_->AddLine(vec(from), vec(to), packed(color), width); }

void ScreenCanvas::path(std::span<const Point> points, Color color, float width, bool filled) {
  std::vector<ImVec2> way(points.size());
  std::ranges::transform(points, way.begin(), vec);
  if (filled)
    list_->AddConvexPolyFilled(way.data(), static_cast<int>(way.size()), packed(color));
  else
    list_->AddPolyline(way.data(), static_cast<int>(way.size()), packed(color), 0, width);
}

void ScreenCanvas::ribbon(Point from, Point to, Color color, float width) {
  const float middle = (from.x + to.x) / 2;
  list_->AddBezierCubic(vec(from), {middle, from.y}, {middle, to.y}, vec(to), packed(color), width);
}

void ScreenCanvas::text(Point at, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  const Face found = face(text, style);
  if (style.align != Align::left) at.x -= text_width(text, style) * (style.align == Align::center ? 0.5f : 1.0f);
  const auto snapped = [this](float v) { return std::round(v * pixel_ratio_) / pixel_ratio_; };
  list_->AddText(found.font, found.size, {snapped(at.x), snapped(at.y - found.size * line_per_em / 2)}, packed(style.color), text.data(),
                 text.data() + text.size());
}

void ScreenCanvas::heatmap(Rect rect, const Heatmap& cells) {
  if (cells.rows <= 0 || cells.columns <= 0) return;
  for (std::int64_t row = 0; row < cells.rows; row += tile_side)
    for (std::int64_t column = 0; column < cells.columns; column += tile_side) add_tile(rect, cells, row, column);
  list_->AddCallback(ImDrawCallback_ResetRenderState, nullptr);
}

/// Those out of sight cost nothing.
void ScreenCanvas::add_tile(Rect rect, const Heatmap& cells, std::int64_t row, std::int64_t column) {
  const std::int64_t rows = std::min(cells.rows - row, tile_side), columns = std::min(cells.columns - column, tile_side);
  const float cell_w = rect.w / static_cast<float>(cells.columns), cell_h = rect.h / static_cast<float>(cells.rows);
  const Rect part{rect.x + static_cast<float>(column) * cell_w, rect.y + static_cast<float>(row) * cell_h,
                  static_cast<float>(columns) * cell_w, static_cast<float>(rows) * cell_h};
  const Rect seen = intersection(part, clips_.back());
  if (seen.w <= 0 || seen.h <= 0) return;
  const unsigned texture = textures_.texture(cells, {row, column, rows, columns});
  tiles_.push_back({this, texture, part, cells.scale});
  list_->AddCallback(draw_tile, &tiles_.back());
}

void ScreenCanvas::draw_tile(const ImDrawList*, const ImDrawCmd* command) {
  const Tile& tile = *static_cast<const Tile*>(command->UserCallbackData);
  ScreenCanvas& canvas = *tile.canvas;
  const float ratio = canvas.pixel_ratio_;
  const ImVec4 clip = command->ClipRect;
  const auto pixel = [ratio](float v) { return static_cast<int>(std::lround(v * ratio)); };
  const int height = pixel(canvas.size_.h);
  QOpenGLFunctions* gl = QOpenGLContext::currentContext()->functions();
  gl->glEnable(GL_SCISSOR_TEST);
  gl->glScissor(pixel(clip.x), height - pixel(clip.w), std::max(0, pixel(clip.z) - pixel(clip.x)),
                std::max(0, pixel(clip.w) - pixel(clip.y)));
  canvas.textures_.draw(tile.texture, tile.rect, canvas.size_, tile.scale);
}

void ScreenCanvas::push_clip(Rect rect) {
  clips_.push_back(intersection(clips_.back(), rect));
  list_->PushClipRect(low(clips_.back()), high(clips_.back()));
}

void ScreenCanvas::pop_clip() {
  clips_.pop_back();
  list_->PopClipRect();
}

void ScreenCanvas::hit(Rect rect, const HitGrid& region) { hits_.add(rect, clips_.back(), region); }

}  // namespace statescope
