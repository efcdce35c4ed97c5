// What the palette offers: all that the window can do and everywhere it can go.
#pragma once

#include "app/controls/palette.h"

namespace statescope {

class MainWindow;

/// Commands, views, layers, heads, partitions and recent files, as they are now.
std::vector<PaletteEntry> palette_entries(MainWindow& window);

/// Tokens with that number, and those where that text begins, the next ones after the cursor first; "go to" before it is allowed.
std::vector<PaletteEntry> tokens_found(MainWindow& window, const QString& typed);

}  // namespace statescope
