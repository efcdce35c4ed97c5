// One view of a page, token after token: what is drawn, what stands under the pointer, what a screen reader says. What tokens have in
// common is kept once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/canvas/web_canvas.h"
#include "app/web/numbers.h"
#include "views/view.h"

namespace statescope {

/// Texts by number, each once.
class TextTable {
 public:
  std::size_t add(std::string text);
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, std::size_t> known_;
  std::vector<std::string> all_;
};

class Reel {
 public:
  /// Of views drawn in that size, in units.
  explicit Reel(Size size) : size_(size) {}

  /// The next token, as the view was last built. Throws Error where it is not drawn alike in light and dark.
  void add(const View& view);
  Size size() const { return size_; }
  /// At some token it showed more than a message.
  bool shows_numbers() const { return shows_numbers_; }
  /// All of it for assets/page/player.js, deflated. JSON (its length before it, four bytes), then bytes: of frames the low and the high
  /// halves, numbers, cells.
  std::string packed() const;
  /// It will not be packed smaller.
  std::size_t least_bytes() const { return numbers_.numbers() + cells_.size() / 4; }

  /// The commands of a token's drawing, a line of JSON each: for tests.
  std::vector<std::string> drawing(std::size_t token) const;

 private:
  struct SheetNumbers;
  /// Numbers in the tables.
  struct Frame {
    std::vector<std::uint32_t> commands;
    std::vector<std::pair<std::uint32_t, std::uint32_t>>
        regions;                                                  // with what is remarked of their places: 0 for nothing, else a list and 1
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sheets;  // by their places among the view's
    std::uint32_t said = 0;
  };
  std::size_t command(const WebCanvas& light, const WebCanvas& dark, std::size_t place, const std::vector<SheetNumbers>& sheets);
  std::string cells(const WebCanvas& light, const WebCanvas& dark, std::size_t place, const std::vector<SheetNumbers>& sheets);
  std::string sheet(const Sheet& sheet, SheetNumbers& numbers);
  std::size_t axis(const Axis& axis);
  std::size_t remarks(const std::vector<Sheet>& sheets, const WebCanvas::Region& region);
  std::size_t text(std::string text) { return texts_.add(std::move(text)); }

  Size size_;
  bool shows_numbers_ = false;
  TextWidths widths_;
  TextTable palette_, texts_, commands_, regions_, axes_, sheets_, lists_;  // all JSON but `texts_`
  NumberTable numbers_;
  std::map<std::string, std::size_t> known_cells_;  // where they begin
  std::string cells_;                               // quantised: 0 … 254 along the scale, 255 where there is no number
  std::vector<Frame> frames_;
};

}  // namespace statescope
