#include "engine/answers/levels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "engine/analysis/parts.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// Rows of a channel [T, heads, width] as head `head` of `all` reads them.
struct OfHead {
  const ChannelRows& rows;
  std::int64_t own, width, stride;

  OfHead(const ChannelRows* channel, std::int64_t head, std::int64_t all)
      : rows(*channel),
        own(producer_head(head, rows.shape.front(), all)),
        width(rows.shape.size() > 1 ? rows.shape[1] : 1),
        stride(rows.shape.front() * width) {}
  const float* operator[](std::int64_t t) const { return rows.values.data() + t * stride + own * width; }
};

/// Throws Error.
const ChannelRows* shown(std::int64_t layer, const char* name, Evidence& evidence) {
  const ChannelRows* rows = evidence.channel(layer, name);
  if (!rows) throw Error("this layer does not tell what its levels read");
  return rows;
}

/// Throws Error.
void refuse_edits(std::int64_t layer, Evidence& evidence) {
  for (const Stretch& stretch : evidence.course(layer)) {
    if (!stretch.edits.scaled.empty() || stretch.edits.imported)
      throw Error("an intervention has changed the states of this layer: who wrote its levels is not told then");
  }
}

}  // namespace

bool has_levels(const LayerInfo& layer) { return layer.memory == "log-linear attention"; }

MemoryTrace decays_of_levels(std::int64_t layer, Evidence& evidence) {
  const LayerInfo& info = evidence.layer(layer);
  MemoryTrace trace{.H = info.heads, .K = info.rows, .V = info.columns, .decay_width = 1, .rates = {}, .slots = {}};
  SlotVisits visits;
  visits.log_decay = shown(layer, "log_decay", evidence)->values;
  for (std::int64_t t = 0; t < evidence.tokens(); ++t) visits.token.push_back(static_cast<std::int32_t>(t));
  trace.slots.assign(info.slot_names.size(), visits);
  return trace;
}

AttentionRows attention_of_levels(std::int64_t layer, std::int64_t level, std::int64_t head, const AttentionPart& part, Evidence& evidence,
                                  const Done& done) {
  const std::int64_t H = evidence.layer(layer).heads, rows = part.rows.count;
  check_index("head", head, H);
  if (level >= 0) check_index("slot", level, std::ssize(evidence.layer(layer).slot_names));
  const OfHead C(shown(layer, "q", evidence), head, H), B(shown(layer, "k", evidence), head, H), dt(shown(layer, "dt", evidence), head, H),
      log_decay(shown(layer, "log_decay", evidence), head, H), scale(shown(layer, "level_scale", evidence), head, H);
  AttentionRows result{std::vector<double>(static_cast<std::size_t>(rows * part.width())),
                       std::vector<double>(static_cast<std::size_t>(rows))};
  for (std::int64_t row = 0; row < rows; ++row) {
    if (done) done(static_cast<double>(row) / static_cast<double>(rows));
    const std::int64_t t = part.token(row);
    double decay = 0;
    for (std::int64_t s = t; s >= 0; --s) {
      const std::int64_t at = level_of(t, s);
      double product = 0;
      for (std::int64_t r = 0; r < C.width; ++r) product += double{C[t][r]} * B[s][r];
      const double weight = level < 0 || level == at ? scale[t][at] * product * *dt[s] * std::exp(decay) : 0;
      if (s >= part.from)
        result.weight[static_cast<std::size_t>((s - part.from) * rows + row)] = weight;
      else
        result.before[static_cast<std::size_t>(row)] += std::abs(weight);
      decay += *log_decay[s];
    }
  }
  return result;
}

LevelTokens tokens_of_level(std::int64_t level, std::int64_t t) {
  if (level == 0) return {t, t + 1};
  const std::int64_t size = std::int64_t{1} << (level - 1);
  return (t & size) != 0 ? LevelTokens{t / size * size - size, t / size * size} : LevelTokens{};
}

/// The highest bit in which s and t differ is bit ℓ − 1.
std::int64_t level_of(std::int64_t t, std::int64_t s) { return std::bit_width(static_cast<std::uint64_t>(s ^ t)); }

MemoryTrace trace_of_level(std::int64_t layer, std::int64_t level, std::int64_t head, std::int64_t t, const float* state,
                           Evidence& evidence) {
  refuse_edits(layer, evidence);
  const LayerInfo& info = evidence.layer(layer);
  const std::int64_t H = info.heads, K = info.rows, V = info.columns;
  const OfHead C(shown(layer, "q", evidence), head, H), B(shown(layer, "k", evidence), head, H), v(shown(layer, "v", evidence), head, H),
      log_decay(shown(layer, "log_decay", evidence), head, H), scale(shown(layer, "level_scale", evidence), head, H);
  MemoryTrace trace{.H = 1, .K = K, .V = V, .decay_width = 1, .rates = {}, .slots = {}};
  SlotVisits& visits = trace.slots.emplace_back();
  const auto [from, to] = tokens_of_level(level, t);
  // Those behind the level's last token write nothing and decay it.
  for (std::int64_t s = from; from < to && s <= t; ++s) {
    const float writes = s < to ? 1 : 0, reads = s == t ? scale[t][level] : 0;
    visits.token.push_back(static_cast<std::int32_t>(s));
    for (std::int64_t r = 0; r < K; ++r) visits.k.push_back(writes * B[s][r]);
    for (std::int64_t r = 0; r < K; ++r) visits.q.push_back(reads * C[s][r]);
    visits.v.insert(visits.v.end(), v[s], v[s] + V);
    for (std::int64_t c = 0; c < V; ++c) {
      double o = 0;
      for (std::int64_t r = 0; s == t && r < K; ++r) o += double{reads} * C[s][r] * state[r * V + c];
      visits.o.push_back(static_cast<float>(o));
    }
    visits.log_decay.push_back(*log_decay[s]);
  }
  return trace;
}

MemoryTrace trace_of_levels(std::int64_t layer, Evidence& evidence) {
  refuse_edits(layer, evidence);
  const LayerInfo& info = evidence.layer(layer);
  const std::int64_t H = info.heads, K = info.rows, V = info.columns;
  MemoryTrace trace{.H = H, .K = K, .V = V, .decay_width = 1, .rates = {}, .slots = {}};
  SlotVisits& visits = trace.slots.emplace_back();
  for (std::int64_t t = 0; t < evidence.tokens(); ++t) {
    visits.token.push_back(static_cast<std::int32_t>(t));
    for (const auto& [name, all, width] :
         {std::tuple{"q", &visits.q, K}, {"k", &visits.k, K}, {"v", &visits.v, V}, {"log_decay", &visits.log_decay, 1}}) {
      for (std::int64_t head = 0; head < H; ++head) {
        const float* const row = OfHead(shown(layer, name, evidence), head, H)[t];
        all->insert(all->end(), row, row + width);
      }
    }
  }
  return trace;
}

MemoryTrace levels_as_read(MemoryTrace trace, std::int64_t layer, std::int64_t t, Evidence& evidence) {
  SlotVisits& visits = trace.slots.front();
  for (std::int64_t head = 0; head < trace.H; ++head) {
    const float* const scale = OfHead(shown(layer, "level_scale", evidence), head, trace.H)[t];
    for (std::int64_t s = 0; s <= t; ++s) {
      float* const v = visits.v.data() + (s * trace.H + head) * trace.V;
      std::transform(v, v + trace.V, v, [weight = scale[level_of(t, s)]](float x) { return weight * x; });
    }
  }
  return trace;
}

}  // namespace statescope
