#include "app/web/reel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QByteArray>
#include <algorithm>
#include <cmath>
#include <set>

#include "engine/error.h"
#include "views/colormaps.h"
#include "views/parts.h"

namespace statescope {
namespace {

constexpr std::int64_t most_remarks = 64;  // places of a region, each with its own

std::string hex(Color c) {
  const std::string opaque = fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b);
  return c.a == 255 ? opaque : fmt::format("{}{:02x}", opaque, c.a);
}

template <class Numbers>
std::string list(const Numbers& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

std::string list_of_texts(const std::vector<std::string>& texts) {
  std::string all = "[";
  for (const std::string& text : texts) all += (all.size() > 1 ? "," : "") + json_text(text);
  return all + "]";
}

long parts(float length) { return std::lround(length * WebCanvas::fineness_of_units); }

std::string region_text(const WebCanvas::Region& region) {
  const auto& [rect, visible, grid] = region;
  return fmt::format("[{},{},{},{},{},{},{},{},{},{},{},{},{},{}]", parts(rect.x), parts(rect.y), parts(rect.w), parts(rect.h),
                     parts(visible.x), parts(visible.y), parts(visible.w), parts(visible.h), grid.first.sheet,
                     fmt::join(grid.first.at, ","), grid.rows, grid.columns, grid.down, grid.across);
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

void put(std::string& bytes, std::size_t length) {
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>((length >> (8 * i)) & 0xFF);
}

}  // namespace

std::size_t TextTable::add(std::string text) {
  const auto [place, is_new] = known_.try_emplace(text, all_.size());
  if (is_new) all_.push_back(std::move(text));
  return place->second;
}

/// What the columns of a sheet hold, for heatmaps that show the same.
struct Reel::SheetNumbers {
  struct Held {
    std::size_t array;  // in numbers_
    std::vector<float> values;
  };
  std::vector<Held> columns = {};
};

void Reel::add(const View& view) {
  const Shown shown{.hints = false};
  WebCanvas light(size_, widths_), dark(size_, widths_);
  view.draw(light, {0, 0, size_.w, size_.h}, {light_theme(), 1, shown});
  view.draw(dark, {0, 0, size_.w, size_.h}, {dark_theme(), 1, shown});
  const auto alike = [](const WebCanvas::Command& a, const WebCanvas::Command& b) { return a.op == b.op && a.arguments == b.arguments; };
  if (!std::ranges::equal(light.commands(), dark.commands(), alike)) throw Error("a view is drawn otherwise in dark colours than in light");

  const std::vector<Sheet> all = view.sheets();
  shows_numbers_ = shows_numbers_ || !all.empty();
  std::set<std::int64_t> reached;
  for (const WebCanvas::Region& region : light.regions()) reached.insert(region.grid.first.sheet);
  std::vector<SheetNumbers> numbers(all.size());
  Frame frame;
  const auto word = [](std::size_t number) { return static_cast<std::uint32_t>(number); };
  for (const std::int64_t place : reached) {
    if (place < 0 || place >= std::ssize(all)) continue;
    const auto i = static_cast<std::size_t>(place);
    frame.sheets.emplace_back(word(i), word(sheets_.add(sheet(all[i], numbers[i]))));
  }
  for (std::size_t i = 0; i < light.commands().size(); ++i) frame.commands.push_back(word(command(light, dark, i, numbers)));
  for (const WebCanvas::Region& region : light.regions())
    frame.regions.emplace_back(word(regions_.add(region_text(region))), word(remarks(all, region)));
  frame.said = word(text(view.describe()));
  frames_.push_back(std::move(frame));
}

std::size_t Reel::command(const WebCanvas& light, const WebCanvas& dark, std::size_t place, const std::vector<SheetNumbers>& sheets) {
  const WebCanvas::Command &one = light.commands()[place], &other = dark.commands()[place];
  const bool colored = one.op != WebCanvas::Op::heatmap && one.op != WebCanvas::Op::clip && one.op != WebCanvas::Op::end_clip;
  std::string words = fmt::format("[{}", static_cast<int>(one.op));
  if (colored) words += fmt::format(",{}", palette_.add(fmt::format("[\"{}\",\"{}\"]", hex(one.color), hex(other.color))));
  if (!one.arguments.empty()) words += "," + one.arguments;
  if (one.op == WebCanvas::Op::heatmap) words += "," + cells(light, dark, place, sheets);
  return commands_.add(words + "]");
}

/// Rows, columns, the maps of both themes, whether cells without a number are left out (1), then the cells: as a part of the numbers under
/// the pointer with their scale (1), where they are these, else quantised (0).
std::string Reel::cells(const WebCanvas& light, const WebCanvas& dark, std::size_t place, const std::vector<SheetNumbers>& sheets) {
  const auto cells_of = [place](const WebCanvas& canvas) -> const WebCanvas::Cells& {
    return canvas.cells()[static_cast<std::size_t>(canvas.commands()[place].cells)];
  };
  const WebCanvas::Cells& cells = cells_of(light);
  const ColorScale& scale = cells.scale;
  const std::string head = fmt::format("{},{},{},{},{}", cells.rows, cells.columns, static_cast<int>(scale.map),
                                       static_cast<int>(cells_of(dark).scale.map), scale.blank ? 1 : 0);
  const std::span<const float> values = cells.values;
  const bool finite = std::isfinite(scale.low) && std::isfinite(scale.high);
  for (const SheetNumbers& sheet : sheets) {
    for (const auto& [array, held] : sheet.columns) {
      for (std::size_t begin = 0; begin + values.size() <= held.size(); begin += values.size()) {
        if (finite && same_bits(values, std::span(held).subspan(begin, values.size())))
          return fmt::format("{},1,{},{},{},{},{}", head, array, begin, scale.low, scale.high, scale.logarithmic ? 1 : 0);
      }
    }
  }
  std::string bytes;
  for (const float value : values)
    bytes += std::isnan(value) ? '\xFF' : static_cast<char>(std::lround(color_index(scale, value) * 254.0 / 255.0));
  const auto [known, is_new] = known_cells_.try_emplace(bytes, cells_.size());
  if (is_new) cells_ += bytes;
  return fmt::format("{},0,{}", head, known->second);
}

/// Each place's words, and, where choosing some lead to a token, of each which: −1 for none.
std::size_t Reel::axis(const Axis& axis) {
  std::vector<std::size_t> words;
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < axis.count; ++i) {
    words.push_back(text(axis.words(i)));
    tokens.push_back(axis.move ? axis.move(i).token.value_or(-1) : -1);
  }
  const bool leads = std::ranges::any_of(tokens, [](std::int64_t token) { return token >= 0; });
  return axes_.add(fmt::format("[{},{}]", list(words), leads ? list(tokens) : "null"));
}

/// [axes, the cursor's places, columns, place, how exact], a column [title, equation, along, numbers or −1, texts or −1, words for none].
std::string Reel::sheet(const Sheet& sheet, SheetNumbers& numbers) {
  std::vector<std::size_t> axes;
  std::vector<std::int64_t> here;
  for (const Axis& one : sheet.axes) {
    axes.push_back(axis(one));
    here.push_back(one.here < one.count ? one.here : -1);
  }
  std::string columns;
  for (const Column& column : sheet.columns) {
    std::int64_t room = 1, array = -1, texts = -1;
    for (const int along : column.along) room *= sheet.axes[static_cast<std::size_t>(along)].count;
    if (column.text) {
      std::vector<std::size_t> words;
      for (std::int64_t i = 0; i < room; ++i) words.push_back(text(column.text(i)));
      texts = static_cast<std::int64_t>(lists_.add(list(words)));
    } else {
      std::vector<float> values(static_cast<std::size_t>(room));
      for (std::int64_t i = 0; i < room; ++i) values[static_cast<std::size_t>(i)] = column.number(i);
      array = static_cast<std::int64_t>(numbers_.add(values));
      numbers.columns.push_back({static_cast<std::size_t>(array), std::move(values)});
    }
    columns += fmt::format("{}[{},{},{},{},{},{}]", columns.empty() ? "" : ",", text(column.title()), text(column.equation),
                           list(column.along), array, texts, text(column.none));
  }
  return fmt::format("[{},{},[{}],{},{}]", list(axes), list(here), columns, text(sheet.place), text(accuracy_words(sheet.accuracy)));
}

/// What else there is to say of each place of a small region: 0 for nothing, else a list and 1.
std::size_t Reel::remarks(const std::vector<Sheet>& sheets, const WebCanvas::Region& region) {
  const HitGrid& grid = region.grid;
  const std::int64_t sheet = grid.first.sheet;
  if (grid.rows * grid.columns > most_remarks || sheet < 0 || sheet >= std::ssize(sheets)) return 0;
  const auto& [axes, remark] = std::tie(sheets[static_cast<std::size_t>(sheet)].axes, sheets[static_cast<std::size_t>(sheet)].remark);
  if (!remark) return 0;
  const auto is_there = [&axes](const Hit& hit) {
    for (std::size_t i = 0; i < hit.at.size(); ++i)
      if (hit.at[i] >= (i < axes.size() ? axes[i].count : 0)) return false;
    return true;
  };
  std::vector<std::size_t> words;
  bool any = false;
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      Hit hit = grid.first;
      if (grid.rows > 1) hit.at[grid.down] += row;
      if (grid.columns > 1) hit.at[grid.across] += column;
      std::string said = is_there(hit) ? remark(hit) : "";
      any = any || !said.empty();
      words.push_back(text(std::move(said)));
    }
  }
  return any ? lists_.add(list(words)) + 1 : 0;
}

std::vector<std::string> Reel::drawing(std::size_t token) const {
  std::vector<std::string> lines;
  for (const std::uint32_t number : frames_[token].commands) lines.push_back(commands_.all()[number]);
  return lines;
}

std::string Reel::packed() const {
  const auto table = [](const TextTable& texts) { return list(texts.all()); };
  std::size_t words = 0, commands = 0, regions = 0, sheets = 0;  // commands, regions, sheets: that have been named
  std::string low, high;
  const auto write = [&](std::uint32_t number) {
    low += {static_cast<char>(number & 0xFF), static_cast<char>((number >> 8) & 0xFF)};
    high += {static_cast<char>((number >> 16) & 0xFF), static_cast<char>((number >> 24) & 0xFF)};
    ++words;
  };
  // One that comes up for the first time is the next of its table: 0 says so, which takes no room.
  const auto name = [&](std::uint32_t number, std::size_t& named) {
    const bool is_new = number == named;
    if (is_new) ++named;
    write(is_new ? 0 : number + 1);
  };
  for (const Frame& frame : frames_) {
    write(static_cast<std::uint32_t>(frame.commands.size()));
    for (const std::uint32_t number : frame.commands) name(number, commands);
    write(static_cast<std::uint32_t>(frame.regions.size()));
    for (const auto& [region, remarks] : frame.regions) {
      name(region, regions);
      write(remarks);
    }
    write(static_cast<std::uint32_t>(frame.sheets.size()));
    for (const auto& [place, sheet] : frame.sheets) {
      write(place);
      name(sheet, sheets);
    }
    write(frame.said);
  }
  std::string json = fmt::format(
      R"({{"size":[{},{}],"tokens":{},"words":{},"cells":{},"palette":{},"texts":{},"commands":{},"regions":{},"axes":{},"sheets":{},)"
      R"("lists":{},"arrays":{},"parts":{}}})",
      size_.w, size_.h, frames_.size(), words, cells_.size(), table(palette_), list_of_texts(texts_.all()), table(commands_),
      table(regions_), table(axes_), table(sheets_), table(lists_), numbers_.arrays(), numbers_.lengths());
  if (json.size() % 2 != 0) json += ' ';  // what follows is read in pairs of bytes
  std::string bytes;
  put(bytes, json.size());
  bytes += json + low + high + numbers_.bytes() + cells_;
  constexpr int best = 9, length_of_qt = 4;  // which Qt puts before it
  return qCompress(reinterpret_cast<const uchar*>(bytes.data()), static_cast<qsizetype>(bytes.size()), best)
      .mid(length_of_qt)
      .toStdString();
}

}  // namespace statescope
