// Figures opened again by the window.
#pragma once

#include <filesystem>

namespace statescope {

/// By its ending: .pdf, .svg or .png.
bool is_figure(const std::filesystem::path& path);

}  // namespace statescope
