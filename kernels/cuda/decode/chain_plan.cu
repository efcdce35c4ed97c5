#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "kernels/cuda/decode/chain_plan.h"
#include "kernels/cuda/decode/chain_products.h"

namespace statescope::cuda::chain {
namespace {

/// The most outputs that a block has up to a turn's.
int most_outputs(const Tiles& tiles, Turn last) {
  int outputs = 0;
  for (int turn = announced; turn <= last; ++turn) outputs += most_of(tiles.outputs[turn]);
  return outputs;
}

/// Low-rank decays go from the products before a step into the step, if it can make all of them: one way less from block to block.
void take_decays(Step& step, OneRow& op) {
  const int halves = step.halves(), count = step.log_decay.heads * step.K;
  if (step.log_decay.width != step.K || halves * step.K > memory_step::threads) return;
  Product decays[2]{};
  const auto makes = [&](const Product& p, int half) {
    return p.made != nullptr && p.y == step.log_decay.x + half * count && p.out == count && p.in == memory_step::decay_rank &&
           p.end == End::forget_gate && p.z == nullptr && p.weight_bytes == 2 * p.in;
  };
  OneRow rest = op;
  for (int half = 0; half < halves; ++half) {
    Product* const end = rest.products + rest.product_count;
    Product* const maker = std::find_if(rest.products, end, [&](const Product& p) { return makes(p, half); });
    if (maker == end) return;
    decays[half] = *maker;
    std::copy(maker + 1, end, maker);
    --rest.product_count;
  }
  std::ranges::copy(decays, step.decays);
  op = rest;
}

std::span<const Product> products_of(const Level& level) {
  return {level.tiles.products, static_cast<std::size_t>(level.tiles.product_count)};
}

/// Whether one of the products has what p makes as its x.
bool is_made_of(std::span<const Product> products, const Product& p) {
  return std::ranges::find(products, p.y, &Product::made) != products.end();
}

}  // namespace

int most_of(int n) {
  const auto blocks = static_cast<int>(multiprocessors());
  return (n + blocks - 1) / blocks;
}

bool as_tiles(Tiles& tiles, const OneRow& op, const IsAwaited& is_awaited) {
  const Input& input = op.inputs[0];
  const int most = input.group > 0 ? most_normed_numbers : most_plain_numbers;
  const bool activates =
      input.gate == nullptr || input.act == Activation::silu || input.act == Activation::sigmoid || input.act == Activation::identity;
  const bool aligned_norm = reinterpret_cast<std::uintptr_t>(input.weight) % piece == 0 && input.group % 4 == 0;
  if (op.input_count != 1 || input.n % block_columns != 0 || input.n > most || !activates || !aligned_norm) return false;
  tiles.input = input;
  tiles.of_group = input.group > 0 ? 1 / static_cast<float>(input.group) : 1;
  const bool gated = op.products[0].end == End::gated;
  tiles.outputs_of_tile_log2 = gated ? tile_rows_log2 - 1 : tile_rows_log2;
  // The product behind gate and up begins with what is made of them first.
  tiles.tiles_together = gated ? 2 : most_tiles_together;
  tiles.blocks = input.n / block_columns;
  // Warps have whole groups of blocks where that is possible.
  constexpr int whole = warps_of_half * blocks_at_once;
  const int pieces = (tiles.blocks + most_blocks - 1) / most_blocks;
  const int least = (tiles.blocks + pieces - 1) / pieces, rounded = rounded_up(least, whole);
  tiles.blocks_of_piece = rounded <= most_blocks ? rounded : rounded_up(least, whole / 2);
  tiles.compact = op.compact;
  const std::span<const Product> products(op.products, static_cast<std::size_t>(op.product_count));
  const auto is_announced = [&](const Product& p) { return is_made_of(products, p); };
  const auto turn_of = [&](const Product& p) {
    return p.made != nullptr ? turns : is_announced(p) ? announced : is_awaited(p) ? awaited : later;
  };
  for (int turn = announced; turn <= turns; ++turn) {
    int outputs = 0;
    for (const Product& p : products) {
      if (turn_of(p) != turn) continue;
      tiles.first_output[tiles.product_count] = outputs;
      tiles.products[tiles.product_count++] = p;
      outputs += p.out;
    }
    if (turn == turns) break;
    tiles.outputs[turn] = outputs;
    tiles.products_before[turn + 1] = tiles.product_count;
  }
  // Where all tiles are finished together, each piece of x is needed once.
  const bool once = tiles.one_product() && input.group == 0 && most_outputs(tiles, later) <= tiles.tiles_together * tiles.outputs_of_tile();
  tiles.blocks_at_hand = once ? std::min(2 * tiles.blocks_of_piece, tiles.blocks) : tiles.blocks;
  tiles.part_bytes = rounded_up(tiles.blocks_at_hand * block_bytes, line_bytes);
  if (tiles.one_product()) tiles.whole_tiles = tiles.outputs[awaited] / (tiles.outputs_of_tile() * static_cast<int>(multiprocessors()));
  int numbers = 0, bytes = 0;
  bool fits = true;
  for (int n = 0; n < tiles.product_count; ++n) {
    const Product& p = tiles.products[n];
    if (p.made == nullptr && op.compact) tiles.products[n].weight_bytes = tiles.piece_bytes(std::min(tiles.blocks, tiles.blocks_of_piece));
    fits &= p.out < most_outputs_of_product && p.weight_bytes % piece == 0 &&
            (p.made == nullptr ? p.in == input.n : p.weight_bytes == 2 * p.in && !p.announced);
    if (p.made != nullptr) numbers += p.in, bytes += most_of(p.out) * p.in * 2;
  }
  const bool listed = tiles.product_count == 1 || most_outputs(tiles, later) <= listed_rows;
  return fits && listed && numbers <= most_made_numbers && bytes <= most_stage_bytes;
}

Step with_tasks_at_once(const Step& step) {
  Step wide = step;
  wide.columns = memory_step::most_columns;
  const bool fits = wide.K <= memory_step::most_rows_of_thread * wide.rows_at_once();
  return fits && step.tasks() > static_cast<int>(multiprocessors()) ? wide : step;
}

void let_step_begin_early(Level& level, Level& products, const OneRow& op) {
  Level early = level;
  OneRow rest = op;
  take_decays(early.step, rest);
  const auto is_read = [&](const Product& product) {
    bool reads = false;
    for_what_is_read(early, [&](const float* p) { reads |= p >= product.y && p < product.y + product.out; });
    return reads;
  };
  const auto spares_tiles = [](const Tiles& tiles) {
    const auto tiles_of = [](int rows) { return (rows + tile_rows - 1) / tile_rows; };
    const bool makes_rows = tiles.product_count > tiles.products_of_x();  // which come behind all others
    return tiles.product_count > 1 && !makes_rows && tiles_of(most_outputs(tiles, awaited)) < tiles_of(most_outputs(tiles, later));
  };
  Tiles tiles{};
  if (!as_tiles(tiles, rest, is_read) || !spares_tiles(tiles)) {
    tiles = {};
    if (!as_tiles(tiles, rest, [](const Product&) { return true; })) return;
  }
  level = early, products.tiles = tiles;
}

void activate_gates_early(std::vector<Level>& levels) {
  for (auto reader = levels.begin(); reader != levels.end(); ++reader) {
    Input& input = reader->tiles.input;
    if (reader->kind != Kind::products || input.gate == nullptr) continue;
    const auto makes = [&](const Product& p) { return p.y <= input.gate && input.gate + input.n <= p.y + p.out; };
    auto maker = reader;
    const Product* product = nullptr;
    while (product == nullptr && maker != levels.begin()) {
      const auto products = products_of(*--maker);
      const auto found = std::ranges::find_if(products, makes);
      if (found != products.end()) product = &*found;
    }
    if (product == nullptr || product->end == End::convolve) continue;
    const float *const begin = product->y, *const end = begin + product->out;
    int readers = 0;
    bool overwritten = false;
    for (auto level = maker + 1; level != levels.end() && !overwritten; ++level) {
      for_what_is_read(*level, [&](const float* p) { readers += begin <= p && p < end ? 1 : 0; });
      for_what_is_written(*level, [&](const float* p, int count, int) { overwritten |= p < end && begin < p + count; });
    }
    if (readers == 1) maker->mailed[product - maker->tiles.products] = std::exchange(input.act, Activation::identity);
  }
}

std::size_t address_mail(std::vector<Level>& levels, float* begin) {
  Addresses addresses;
  std::size_t numbers = 0;
  // As aligned as the numbers themselves: four are read at once.
  const auto place = [&](const float* y, std::int64_t count, bool right_behind) {
    if (!right_behind) numbers = rounded_up(numbers, std::size_t{line}) + reinterpret_cast<std::uintptr_t>(y) % line_bytes / sizeof(float);
    float* const mail = begin + numbers;
    numbers += static_cast<std::size_t>(count);
    return mail;
  };
  for (Level& level : levels) {
    if (begin != nullptr) for_what_is_read(level, [&](const float*& p) { addresses.look_up(p); });
    if (level.kind != Kind::products) {
      const Step& step = level.step;
      level.mail[0] = place(step.o, std::int64_t{step.H} * step.V, false);
    }
    // What lies side by side does so in the mail: a reader may take several products' numbers as one row.
    std::vector<int> order(static_cast<std::size_t>(level.tiles.product_count));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int n) { return level.tiles.products[n].y; });
    const float* end = nullptr;
    for (const int n : order) {
      const Product& p = level.tiles.products[n];
      // Behind the last level nobody waits for anything.
      if (&level == &levels.back() && !is_made_of(products_of(level), p)) continue;
      level.mail[n] = place(p.y, p.out, p.y == end);
      end = p.y + p.out;
    }
    for_what_is_written(level, [&](const float* p, int count, int n) { addresses.written(p, count, n < 0 ? nullptr : level.mail[n]); });
    for (int n = 0; begin != nullptr && n < level.tiles.product_count; ++n) addresses.look_up(level.tiles.products[n].made);
  }
  return rounded_up(numbers * sizeof(float), std::size_t{line_bytes});
}

void Addresses::written(const float* p, std::int64_t count, float* mail) {
  if (p == nullptr) return;
  auto i = ranges_.upper_bound(p);
  if (i != ranges_.begin() && p < std::prev(i)->second.end) --i;
  while (i != ranges_.end() && i->first < p + count) i = ranges_.erase(i);
  ranges_[p] = {p + count, mail};
}
void Addresses::look_up(const float*& p) const {
  const auto range = of(p);
  if (range != ranges_.end() && range->second.mail != nullptr) p = range->second.mail + (p - range->first);
}
bool Addresses::is_not_handed_on(const float* p) const {
  const auto range = of(p);
  return range != ranges_.end() && range->second.mail == nullptr;
}
Addresses::Ranges::const_iterator Addresses::of(const float* p) const {
  const auto next = ranges_.upper_bound(p);
  return p == nullptr || next == ranges_.begin() || p >= std::prev(next)->second.end ? ranges_.end() : std::prev(next);
}

}  // namespace statescope::cuda::chain
