#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "kernels/cuda/decode/consumer.h"
#include "kernels/cuda/decode/plan.h"

namespace statescope::cuda::decode {
namespace {

/// The most outputs that any block has up to and including this priority.
int most_outputs(const TiledGemv& tiled, Priority last) {
  int outputs = 0;
  for (int priority = intermediate; priority <= last; ++priority) outputs += most_per_block(tiled.outputs[priority]);
  return outputs;
}

/// Moves low-rank decays from the GEMV before a step into the step, if it can compute all of them: one trip from block to block less.
void take_decays(Step& step, Gemv& op) {
  const int halves = step.halves(), count = step.log_decay.heads * step.K;
  if (step.l2 || step.beta.x != nullptr || step.log_decay.width != step.K || halves * step.K > memory_step::threads) return;
  Product decays[2]{};
  const auto makes = [&](const Product& p, int half) {
    return p.intermediate != nullptr && p.y == step.log_decay.x + half * count && p.out == count && p.in == memory_step::decay_rank &&
           p.epilogue == EpilogueKind::forget_gate && p.z == nullptr && p.weight_bytes == 2 * p.in;
  };
  Gemv rest = op;
  for (int half = 0; half < halves; ++half) {
    Product* const end = rest.products + rest.product_count;
    Product* const writer = std::find_if(rest.products, end, [&](const Product& p) { return makes(p, half); });
    if (writer == end) return;
    decays[half] = *writer;
    std::copy(writer + 1, end, writer);
    --rest.product_count;
  }
  std::ranges::copy(decays, step.decays);
  op = rest;
}

std::span<const Product> products_of(const Operation& operation) {
  return {operation.gemv.products, static_cast<std::size_t>(operation.gemv.product_count)};
}

/// Whether p is the input of one of the products.
bool feeds_another(std::span<const Product> products, const Product& p) {
  return std::ranges::find(products, p.y, &Product::intermediate) != products.end();
}

}  // namespace

int most_per_block(int n) {
  const auto blocks = static_cast<int>(multiprocessors());
  return (n + blocks - 1) / blocks;
}

bool tile(TiledGemv& tiled, const Gemv& op, const IsCritical& is_critical) {
  const Input& input = op.inputs[0];
  const int most = input.group > 0 ? most_normed_values : most_plain_values;
  const bool activates =
      input.gate == nullptr || input.act == Activation::silu || input.act == Activation::sigmoid || input.act == Activation::identity;
  const bool aligned_norm = reinterpret_cast<std::uintptr_t>(input.weight) % vector_bytes == 0 && input.group % 4 == 0;
  if (op.input_count != 1 || input.n % k_block_columns != 0 || input.n > most || !activates || !aligned_norm) return false;
  tiled.input = input;
  tiled.inverse_group = input.group > 0 ? 1 / static_cast<float>(input.group) : 1;
  const bool gated = op.products[0].epilogue == EpilogueKind::gated;
  tiled.outputs_per_tile_log2 = gated ? tile_rows_log2 - 1 : tile_rows_log2;
  // The next product (down) starts with the first outputs of gate and up: small batches let it start early.
  tiled.tiles_per_batch = gated ? 2 : most_tiles_per_batch;
  tiled.k_blocks = input.n / k_block_columns;
  // Every warp gets whole groups of k-blocks where that is possible.
  constexpr int whole = warps_per_half * k_blocks_in_flight;
  const int slices = (tiled.k_blocks + most_k_blocks - 1) / most_k_blocks;
  const int least = (tiled.k_blocks + slices - 1) / slices, rounded = rounded_up(least, whole);
  tiled.k_blocks_per_slice = rounded <= most_k_blocks ? rounded : rounded_up(least, whole / 2);
  tiled.compact = op.compact;
  const std::span<const Product> products(op.products, static_cast<std::size_t>(op.product_count));
  const auto is_intermediate = [&](const Product& p) { return feeds_another(products, p); };
  const auto priority_of = [&](const Product& p) {
    return p.intermediate != nullptr ? priorities : is_intermediate(p) ? intermediate : is_critical(p) ? critical : deferred;
  };
  for (int priority = intermediate; priority <= priorities; ++priority) {
    int outputs = 0;
    for (const Product& p : products) {
      if (priority_of(p) != priority) continue;
      tiled.first_output[tiled.product_count] = outputs;
      tiled.products[tiled.product_count++] = p;
      outputs += p.out;
    }
    if (priority == priorities) break;
    tiled.outputs[priority] = outputs;
    tiled.products_before[priority + 1] = tiled.product_count;
  }
  // Where all tiles are one batch, each slice of x is needed once.
  const bool once =
      tiled.one_product() && input.group == 0 && most_outputs(tiled, deferred) <= tiled.tiles_per_batch * tiled.outputs_per_tile();
  tiled.resident_k_blocks = once ? std::min(2 * tiled.k_blocks_per_slice, tiled.k_blocks) : tiled.k_blocks;
  tiled.term_bytes = rounded_up(tiled.resident_k_blocks * k_block_bytes, l2_line_bytes);
  if (tiled.one_product()) tiled.whole_tiles = tiled.outputs[critical] / (tiled.outputs_per_tile() * static_cast<int>(multiprocessors()));
  int values = 0, bytes = 0;
  bool fits = true;
  for (int n = 0; n < tiled.product_count; ++n) {
    const Product& p = tiled.products[n];
    if (p.intermediate == nullptr && op.compact)
      tiled.products[n].weight_bytes = tiled.slice_bytes(std::min(tiled.k_blocks, tiled.k_blocks_per_slice));
    fits &= p.out < most_outputs_per_product && p.weight_bytes % vector_bytes == 0 &&
            (p.intermediate == nullptr ? p.in == input.n : p.weight_bytes == 2 * p.in && !p.is_intermediate);
    if (p.intermediate != nullptr) values += p.in, bytes += most_per_block(p.out) * p.in * 2;
  }
  const bool listed = tiled.product_count == 1 || most_outputs(tiled, deferred) <= most_listed_outputs;
  return fits && listed && values <= most_intermediate_values && bytes <= most_stage_bytes;
}

Step with_concurrent_tasks(const Step& step) {
  Step wide = step;
  wide.columns = memory_step::most_columns;
  const bool fits = wide.K <= memory_step::most_rows_per_thread * wide.rows_at_once();
  return fits && step.tasks() > static_cast<int>(multiprocessors()) ? wide : step;
}

void let_step_start_early(Operation& operation, Operation& products, const Gemv& op) {
  Operation early = operation;
  Gemv rest = op;
  take_decays(early.step, rest);
  const auto is_read = [&](const Product& product) {
    bool reads = false;
    for_each_read(early, [&](const float* p) { reads |= p >= product.y && p < product.y + product.out; });
    return reads;
  };
  const auto spares_tiles = [](const TiledGemv& tiled) {
    const auto tiles_of = [](int rows) { return (rows + tile_rows - 1) / tile_rows; };
    const bool has_dependent_products = tiled.product_count > tiled.independent_products();  // which come after all others
    return tiled.product_count > 1 && !has_dependent_products &&
           tiles_of(most_outputs(tiled, critical)) < tiles_of(most_outputs(tiled, deferred));
  };
  TiledGemv tiled{};
  if (!tile(tiled, rest, is_read) || !spares_tiles(tiled)) {
    tiled = {};
    if (!tile(tiled, rest, [](const Product&) { return true; })) return;
  }
  operation = early, products.gemv = tiled;
}

void activate_gates_early(std::vector<Operation>& operations) {
  for (auto reader = operations.begin(); reader != operations.end(); ++reader) {
    Input& input = reader->gemv.input;
    if (reader->kind != OperationKind::gemv || input.gate == nullptr) continue;
    const auto makes = [&](const Product& p) { return p.y <= input.gate && input.gate + input.n <= p.y + p.out; };
    auto writer = reader;
    const Product* product = nullptr;
    while (product == nullptr && writer != operations.begin()) {
      const auto products = products_of(*--writer);
      const auto found = std::ranges::find_if(products, makes);
      if (found != products.end()) product = &*found;
    }
    if (product == nullptr || product->epilogue == EpilogueKind::convolve) continue;
    const float *const begin = product->y, *const end = begin + product->out;
    int readers = 0;
    bool overwritten = false;
    for (auto operation = writer + 1; operation != operations.end() && !overwritten; ++operation) {
      for_each_read(*operation, [&](const float* p) { readers += begin <= p && p < end ? 1 : 0; });
      for_each_write(*operation, [&](const float* p, int count, int) { overwritten |= p < end && begin < p + count; });
    }
    if (readers == 1) writer->mailbox_activation[product - writer->gemv.products] = std::exchange(input.act, Activation::identity);
  }
}

std::size_t assign_mailbox(std::vector<Operation>& operations, float* begin) {
  MailboxMap addresses;
  std::size_t values = 0;
  // As aligned as the outputs themselves: readers load four at once.
  const auto reserve = [&](const float* y, std::int64_t count, bool right_behind) {
    if (!right_behind)
      values = rounded_up(values, std::size_t{l2_line_values}) + reinterpret_cast<std::uintptr_t>(y) % l2_line_bytes / sizeof(float);
    float* const mailbox = begin + values;
    values += static_cast<std::size_t>(count);
    return mailbox;
  };
  for (Operation& operation : operations) {
    if (begin != nullptr) for_each_read(operation, [&](const float*& p) { addresses.redirect(p); });
    if (operation.kind != OperationKind::gemv) {
      const Step& step = operation.step;
      operation.mailbox[0] = reserve(step.o, std::int64_t{step.H} * step.V, false);
    }
    // Outputs that are adjacent stay adjacent: a reader may take those of several products as one row.
    std::vector<int> order(static_cast<std::size_t>(operation.gemv.product_count));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int n) { return operation.gemv.products[n].y; });
    const float* end = nullptr;
    for (const int n : order) {
      const Product& p = operation.gemv.products[n];
      // Nobody reads what the last operation publishes.
      if (&operation == &operations.back() && !feeds_another(products_of(operation), p)) continue;
      operation.mailbox[n] = reserve(p.y, p.out, p.y == end);
      end = p.y + p.out;
    }
    for_each_write(operation, [&](const float* p, int count, int n) { addresses.add(p, count, n < 0 ? nullptr : operation.mailbox[n]); });
    for (int n = 0; begin != nullptr && n < operation.gemv.product_count; ++n) addresses.redirect(operation.gemv.products[n].intermediate);
  }
  return rounded_up(values * sizeof(float), std::size_t{l2_line_bytes});
}

void MailboxMap::add(const float* p, std::int64_t count, float* mailbox) {
  if (p == nullptr) return;
  auto i = ranges_.upper_bound(p);
  if (i != ranges_.begin() && p < std::prev(i)->second.end) --i;
  while (i != ranges_.end() && i->first < p + count) i = ranges_.erase(i);
  ranges_[p] = {p + count, mailbox};
}
void MailboxMap::redirect(const float*& p) const {
  const auto range = of(p);
  if (range != ranges_.end() && range->second.mailbox != nullptr) p = range->second.mailbox + (p - range->first);
}
bool MailboxMap::is_unpublished(const float* p) const {
  const auto range = of(p);
  return range != ranges_.end() && range->second.mailbox == nullptr;
}
MailboxMap::Ranges::const_iterator MailboxMap::of(const float* p) const {
  const auto next = ranges_.upper_bound(p);
  return p == nullptr || next == ranges_.begin() || p >= std::prev(next)->second.end ? ranges_.end() : std::prev(next);
}

}  // namespace statescope::cuda::decode
