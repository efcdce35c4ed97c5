#include "engine/answers/levels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/analysis/memory_reading.h"
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

/// Their visits, one head after another in each.
class Visits {
 public:
  Visits(std::int64_t layer, std::int64_t first, std::int64_t heads, Evidence& evidence) {
    const LayerInfo& info = evidence.layer(layer);
    for (std::int64_t head = first; head < first + heads; ++head) {
      q_.emplace_back(shown(layer, "q", evidence), head, info.heads);
      k_.emplace_back(shown(layer, "k", evidence), head, info.heads);
      v_.emplace_back(shown(layer, "v", evidence), head, info.heads);
      log_decay_.emplace_back(shown(layer, "log_decay", evidence), head, info.heads);
      edits_.push_back(state_edits(layer, head, evidence));
    }
    const bool rows_differ = !edits_.front().empty();
    made_.trace = {.H = heads, .K = info.rows, .V = info.columns, .decay_width = rows_differ ? info.rows : 1, .rates = {}, .slots = {}};
    made_.trace.slots.resize(1);
    std::size_t next = 0;
    for (std::int64_t t = 0; t < evidence.tokens(); ++t) {
      add_token(t);
      if (next == edits_.front().size() || edits_.front()[next].token != t) continue;
      edits_.front()[next].replaced ? add_states(next) : add_scaling(next);
      ++next;
    }
  }
  LevelsTrace made() && { return std::move(made_); }

 private:
  SlotVisits& visits() { return made_.trace.slots.front(); }
  /// One that holds `tokens` of the heads' keys and values; zeros where there are none.
  void add(std::int64_t token, LevelTokens tokens) {
    visits().token.push_back(static_cast<std::int32_t>(token));
    made_.holds.push_back(tokens);
    const auto each = static_cast<std::size_t>(visits().count() * made_.trace.H);
    for (std::vector<float>* all : {&visits().q, &visits().k}) all->resize(each * static_cast<std::size_t>(made_.trace.K));
    visits().v.resize(each * static_cast<std::size_t>(made_.trace.V));
    visits().log_decay.resize(each * static_cast<std::size_t>(made_.trace.decay_width));
  }
  /// The last visit's numbers of a head, `width` of them.
  float* last(std::vector<float>& all, std::size_t head, std::int64_t width) const {
    return all.data() + std::ssize(all) - (made_.trace.H - static_cast<std::int64_t>(head)) * width;
  }
  void add_token(std::int64_t t) {
    const std::int64_t K = made_.trace.K, V = made_.trace.V, width = made_.trace.decay_width;
    add(t, {t, t + 1});
    for (std::size_t h = 0; h < q_.size(); ++h) {
      std::copy_n(q_[h][t], K, last(visits().q, h, K));
      std::copy_n(k_[h][t], K, last(visits().k, h, K));
      std::copy_n(v_[h][t], V, last(visits().v, h, V));
      std::fill_n(last(visits().log_decay, h, width), width, *log_decay_[h][t]);
    }
  }
  void add_edit(std::int64_t token, LevelTokens tokens) {
    visits().edits.push_back(visits().count());
    add(token, tokens);
  }
  void add_scaling(std::size_t edit) {
    add_edit(edits_.front()[edit].token, {});
    for (std::size_t h = 0; h < edits_.size(); ++h)
      std::ranges::transform(edits_[h][edit].factors, last(visits().log_decay, h, made_.trace.K),
                             [](double factor) { return static_cast<float>(std::log(factor)); });
  }
  /// All is forgotten, and every level's row r written anew with the key e_r, for the tokens that the level would hold.
  void add_states(std::size_t edit) {
    const std::int64_t K = made_.trace.K, V = made_.trace.V, token = edits_.front()[edit].token;
    bool first = true;
    for (std::int64_t level = 0; level < edits_.front()[edit].replaced->slots; ++level) {
      const LevelTokens tokens = tokens_of_level(level, token);
      for (std::int64_t row = 0; row < K && tokens.to > tokens.from; ++row) {
        add_edit(token, tokens);
        for (std::size_t h = 0; h < edits_.size(); ++h) {
          last(visits().k, h, K)[row] = 1;
          std::copy_n(edits_[h][edit].replaced->matrix(level) + row * V, V, last(visits().v, h, V));
          if (first) std::fill_n(last(visits().log_decay, h, K), K, -std::numeric_limits<float>::infinity());
        }
        first = false;
      }
    }
  }

  LevelsTrace made_;
  std::vector<OfHead> q_, k_, v_, log_decay_;
  std::vector<std::vector<StateEdit>> edits_;  // of each head
};

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
  const std::vector<StateEdit> edits = state_edits(layer, head, evidence);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (done) done(static_cast<double>(row) / static_cast<double>(rows));
    const std::int64_t t = part.token(row);
    std::vector<double> q(C[t], C[t] + C.width);
    double decay = 0;
    auto edit = std::ranges::upper_bound(edits, t - 1, {}, &StateEdit::token);
    for (std::int64_t s = t; s >= 0; --s) {
      if (edit != edits.begin() && std::prev(edit)->token == s) {
        --edit;
        if (edit->replaced) break;
        std::ranges::transform(q, edit->factors, q.begin(), std::multiplies<>());
      }
      const std::int64_t at = level_of(t, s);
      double product = 0;
      for (std::int64_t r = 0; r < C.width; ++r) product += q[static_cast<std::size_t>(r)] * B[s][r];
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

LevelsTrace trace_of_levels(std::int64_t layer, std::int64_t first, std::int64_t heads, Evidence& evidence) {
  return Visits(layer, first, heads, evidence).made();
}

namespace {

/// λ C S of a level's state, where no intervention followed the token that reads it; else from what was written.
std::vector<float> read_of(const MemoryTrace& trace, std::int64_t t, const float* state) {
  const SlotVisits& visits = trace.slots.front();
  const std::int64_t at = visits.reading(t);
  std::vector<double> o(static_cast<std::size_t>(trace.V));
  const bool is_edited = visits.until(t) > at + 1;
  const Contributions written = is_edited ? implicit_attention(trace, 0, 0, t) : Contributions{};
  for (std::int64_t c = 0; c < trace.V; ++c) {
    double& sum = o[static_cast<std::size_t>(c)];
    for (std::int64_t r = 0; !is_edited && r < trace.K; ++r)
      sum += double{visits.q[static_cast<std::size_t>(at * trace.K + r)]} * state[r * trace.V + c];
    for (std::size_t j = 0; j < written.coefficient.size(); ++j)
      sum += written.coefficient[j] * visits.v[j * static_cast<std::size_t>(trace.V) + static_cast<std::size_t>(c)];
  }
  return {o.begin(), o.end()};
}

}  // namespace

LevelsTrace trace_of_level(std::int64_t layer, std::int64_t level, std::int64_t head, std::int64_t t, const float* state,
                           Evidence& evidence) {
  LevelsTrace all = trace_of_levels(layer, head, 1, evidence);
  SlotVisits& visits = all.trace.slots.front();
  const std::int64_t K = all.trace.K, V = all.trace.V;
  for (std::int64_t j = 0; j < visits.count(); ++j)
    if (!all.is_in(j, level, t)) std::fill_n(visits.k.begin() + j * K, K, 0.0F);
  const float scale = OfHead(shown(layer, "level_scale", evidence), head, evidence.layer(layer).heads)[t][level];
  const std::int64_t at = visits.reading(t);
  for (std::int64_t r = 0; r < K; ++r) visits.q[static_cast<std::size_t>(at * K + r)] *= scale;
  visits.o.resize(visits.v.size());
  std::ranges::copy(read_of(all.trace, t, state), visits.o.begin() + at * V);
  return all;
}

bool LevelsTrace::is_in(std::int64_t visit, std::int64_t level, std::int64_t t) const {
  const LevelTokens own = holds[static_cast<std::size_t>(visit)], all = tokens_of_level(level, t);
  return own.from < own.to && own.from >= all.from && own.to <= all.to;
}

LevelsTrace levels_as_read(LevelsTrace levels, std::int64_t layer, std::int64_t first, std::int64_t t, Evidence& evidence) {
  MemoryTrace& trace = levels.trace;
  for (std::int64_t head = 0; head < trace.H; ++head) {
    const float* const scale = OfHead(shown(layer, "level_scale", evidence), first + head, evidence.layer(layer).heads)[t];
    for (std::int64_t j = 0; j < trace.slots.front().until(t); ++j) {
      float* const v = trace.slots.front().v.data() + (j * trace.H + head) * trace.V;
      const float weight = scale[level_of(t, levels.holds[static_cast<std::size_t>(j)].from)];
      std::transform(v, v + trace.V, v, [weight](float x) { return weight * x; });
    }
  }
  return levels;
}

MemoryTrace writes_of_levels(std::int64_t layer, Evidence& evidence) {
  const LayerInfo& info = evidence.layer(layer);
  MemoryTrace trace = trace_of_levels(layer, 0, info.heads, evidence).trace;
  trace.slots.resize(info.slot_names.size());
  return trace;
}

MemoryTrace levels_after(std::int64_t layer, std::int64_t head, std::int64_t t, Evidence& evidence) {
  const LevelsTrace all = trace_of_levels(layer, head, 1, evidence);
  const SlotVisits& visits = all.trace.slots.front();
  const std::int64_t K = all.trace.K;
  MemoryTrace trace{.H = 1, .K = K, .V = all.trace.V, .rates = {}, .slots = {}};
  trace.slots.resize(evidence.layer(layer).slot_names.size());
  for (std::int64_t level = 0; level < std::ssize(trace.slots); ++level) {
    SlotVisits& held = trace.slots[static_cast<std::size_t>(level)];
    for (std::int64_t j = 0; j < visits.until(t); ++j) {
      if (!all.is_in(j, level, t)) continue;
      held.token.push_back(visits.token[static_cast<std::size_t>(j)]);
      held.k.insert(held.k.end(), visits.k.begin() + j * K, visits.k.begin() + (j + 1) * K);
    }
  }
  return trace;
}

namespace {

/// S [levels, K, V] after the token's own update: its rows scaled, or others in their place.
void add_edit(Update& update, const StateEdit& edit, const std::vector<double>& S) {
  for (std::size_t i = 0; i < S.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(update.columns) % edit.factors.size();
    update.decayed[i] += static_cast<float>(edit.replaced ? -S[i] : (edit.factors[row] - 1) * S[i]);
    if (edit.replaced) update.written[i] += edit.replaced->values[i];
  }
}

}  // namespace

Update update_of_levels(const UpdateQuestion& question, Evidence& evidence) {
  const LayerInfo& info = evidence.layer(question.layer);
  const std::int64_t t = question.token, K = info.rows, V = info.columns, levels = info.slots();
  check_index("head", question.head, info.heads);
  check_index("token", t, evidence.tokens());
  const OfHead k(shown(question.layer, "k", evidence), question.head, info.heads),
      v(shown(question.layer, "v", evidence), question.head, info.heads),
      log_decay(shown(question.layer, "log_decay", evidence), question.head, info.heads);
  const double alpha = std::exp(double{*log_decay[t]});
  Update update{levels, K, V, {}, {}, {}, std::vector<float>(static_cast<std::size_t>(levels * K))};
  for (std::vector<float>* part : {&update.decayed, &update.erased, &update.written})
    part->resize(static_cast<std::size_t>(levels * K * V));
  HeadState before;
  if (t > 0) before = evidence.head_state(question.layer, question.head, t - 1);
  for (std::int64_t level = 0; level < levels && t > 0; ++level) {
    const LevelTokens held = tokens_of_level(level, t - 1);
    if (held.from == held.to) continue;
    const std::int64_t into = level_of(t, held.from);
    for (std::int64_t i = 0; i < K * V; ++i) {
      const double S = before.matrix(level)[i];
      update.decayed[static_cast<std::size_t>(level * K * V + i)] += static_cast<float>((alpha - 1) * S);
      if (into == level) continue;
      update.erased[static_cast<std::size_t>(level * K * V + i)] -= static_cast<float>(alpha * S);
      update.written[static_cast<std::size_t>(into * K * V + i)] += static_cast<float>(alpha * S);
    }
  }
  for (std::int64_t i = 0; i < K * V; ++i) update.written[static_cast<std::size_t>(i)] += k[t][i / V] * v[t][i % V];
  std::copy_n(k[t], K, update.write_weight.begin());
  for (const StateEdit& edit : state_edits(question.layer, question.head, evidence)) {
    if (edit.token != t) continue;
    std::vector<double> S(update.decayed.size());
    for (std::size_t i = 0; i < S.size(); ++i)
      S[i] = (t > 0 ? double{before.values[i]} : 0) + update.decayed[i] + update.erased[i] + update.written[i];
    add_edit(update, edit, S);
  }
  return update;
}

}  // namespace statescope
