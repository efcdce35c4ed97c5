// What can be asked of a layer by name, in every family, against the definitions in double precision.
#include "engine/answers/observables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <type_traits>

#include "engine/answers/answers.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::observables_of_runs_test {
namespace {

constexpr std::int64_t kTokens = 33;

/// The quantities of some tokens of a layer, by name.
class Asked {
 public:
  Asked(Evidence& evidence, std::int64_t layer, std::int64_t from, std::int64_t to)
      : all_(answer(ObservablesQuestion{layer, from, to, {}, 3}, evidence)), from_(from), to_(to) {
    for (const Observables::Quantity& quantity : all_.quantities) by_name_[quantity.name] = &quantity;
  }
  const Observables& all() const { return all_; }
  bool has(const std::string& name) const { return by_name_.contains(name); }
  const Observables::Quantity& operator[](const std::string& name) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) throw std::logic_error("no quantity " + name);
    return *found->second;
  }
  /// A token's numbers.
  std::span<const float> at(const std::string& name, std::int64_t token) const {
    const std::vector<float>& values = (*this)[name].values;
    const std::size_t each = values.size() / static_cast<std::size_t>(to_ - from_);
    return std::span(values).subspan(static_cast<std::size_t>(token - from_) * each, each);
  }
  double number(const std::string& name, std::int64_t token, std::size_t i = 0) const { return at(name, token)[i]; }

 private:
  Observables all_;
  std::int64_t from_, to_;
  std::map<std::string, const Observables::Quantity*> by_name_;
};

bool same(double found, double expected, double tolerance = 1e-5) {
  if (std::isnan(expected) || std::isinf(expected)) return std::isnan(expected) ? std::isnan(found) : found == expected;
  return std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

double norm_of(const double* x, std::int64_t n) { return std::sqrt(std::inner_product(x, x + n, x, 0.0)); }

/// check(evidence, asked about all tokens, layer) of every layer of every family.
template <class Check>
void in_every_layer(const Check& check) {
  for (const SmallModel& small : small_models()) {
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t l = 0; l < run.model->layers(); ++l) {
      INFO(small.name << ", layer " << l);
      check(run.evidence, Asked(run.evidence, l, 0, kTokens), l);
    }
  }
}

/// S q, o = q S in double precision.
std::vector<double> read(const float* q, const float* S, std::int64_t K, std::int64_t V) {
  std::vector<double> o(static_cast<std::size_t>(V));
  for (std::int64_t r = 0; r < K; ++r) {
    for (std::int64_t c = 0; c < V; ++c) o[static_cast<std::size_t>(c)] += double{q[r]} * S[r * V + c];
  }
  return o;
}

/// A mixer's channel, one row a token.
std::span<const float> row_of(const ChannelRows& rows, std::int64_t token) {
  const std::size_t each = rows.values.size() / static_cast<std::size_t>(kTokens);
  return std::span(rows.values).subspan(static_cast<std::size_t>(token) * each, each);
}

}  // namespace

TEST_CASE("observables by name: each has an equation with its source, a unit and says how exact it is; each is found in some family") {
  std::set<std::string> known, found;
  for (const ObservableGroup& group : observable_groups()) {
    for (const ObservableRow& row : group.rows) {
      INFO(row.name);
      CHECK(known.insert(std::string(row.name)).second);
      CHECK((!row.unit.empty() && !row.equation.empty() && !row.accuracy.text().empty()));
    }
  }
  std::set<std::string> mixers;
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    mixers.insert(evidence.layer(l).mixer);
    for (const Observables::Quantity& quantity : asked.all().quantities) {
      INFO(quantity.name);
      const std::int64_t each = std::accumulate(quantity.shape.begin(), quantity.shape.end(), std::int64_t{1}, std::multiplies{});
      CHECK(std::ssize(quantity.values) == kTokens * each);
      CHECK(std::ssize(quantity.shape) == std::ranges::count(quantity.axes, ',') + (quantity.axes.empty() ? 0 : 1));
      if (std::ranges::any_of(quantity.values, [](float value) { return !std::isnan(value); })) found.insert(quantity.name);
    }
  });
  CHECK(found == known);
  for (const MixerRow& row : mixer_table()) CHECK(mixers.contains(std::string(row.name)));
}

TEST_CASE("observables by name: a token has the same numbers alone and among others; what was not asked for is left out") {
  for (const json& config : {sse_config("gdn", {{"num_writer", 2}, {"num_reader", 3}}), small_config("mom", {{"head_dim", 16}}),
                             small_config("gla", sla()), small_config("gsa", {{"num_slots", 12}})}) {
    SmallEvidence run(config, kTokens);
    const Asked all(run.evidence, 1, 0, kTokens);
    for (const std::int64_t token : {std::int64_t{0}, std::int64_t{19}, kTokens - 1}) {
      const Asked one(run.evidence, 1, token, token + 1);
      REQUIRE(one.all().quantities.size() == all.all().quantities.size());
      for (const Observables::Quantity& quantity : one.all().quantities) {
        INFO(quantity.name << " at " << token);
        CHECK(std::ranges::equal(quantity.values, all.at(quantity.name, token), [](float a, float b) { return same(a, b, 1e-6); }));
      }
    }
    const Observables two = answer(ObservablesQuestion{1, 3, 5, {"state_norm", "residual_norm"}}, run.evidence);
    REQUIRE(two.quantities.size() == 2);
    CHECK((two.quantities[0].name == "state_norm" && two.quantities[1].name == "residual_norm"));
  }
  SmallEvidence gla(small_config("gla"), kTokens);
  CHECK_THROWS_AS(answer(ObservablesQuestion{9, 0, 1, {}}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(ObservablesQuestion{0, 5, 5, {}}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(ObservablesQuestion{0, 0, kTokens + 1, {}}, gla.evidence), Error);
  CHECK_THROWS_WITH(answer(ObservablesQuestion{0, 0, 1, {}, kTokens}, gla.evidence), "there is no token 33; tokens are 0 to 32");
  CHECK_THROWS_WITH(answer(ObservablesQuestion{0, 0, 1, {"loudness"}}, gla.evidence),
                    Catch::Matchers::StartsWith("there is no quantity \"loudness\"; there are partition_gate, "));
}

TEST_CASE("observables by name: routing and its balance, from e and the chosen partitions of every token") {
  int layers = 0;
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    const ChannelRows *gate = evidence.channel(l, "partition_gate"), *selected = evidence.channel(l, "partition_selected");
    REQUIRE((gate != nullptr) == asked.has("routing_entropy"));
    if (!gate) return;
    ++layers;
    const std::int64_t N = gate->shape.front(), W = evidence.model().layout(l).writers;
    std::vector<double> f(static_cast<std::size_t>(N)), p(f), f_now(f), p_now(f);
    double weight = 0;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const std::span<const float> e = row_of(*gate, t);
      std::vector<double> sorted(e.begin(), e.end()), written(e.size());
      std::ranges::sort(sorted, std::ranges::greater{});
      double mass = 0, entropy = 0, loss = 0, loss_now = 0;
      for (std::int64_t w = 0; w < W; ++w) {
        const auto n = static_cast<std::size_t>(row_of(*selected, t)[static_cast<std::size_t>(w)]);
        written[n] = 1;
        mass += e[n];
      }
      weight = 0.99 * weight + 1;
      for (std::size_t n = 0; n < e.size(); ++n) {
        entropy -= e[n] > 0 ? e[n] * std::log(double{e[n]}) / std::log(static_cast<double>(N)) : 0;
        f[n] += written[n];
        p[n] += e[n];
        f_now[n] = 0.99 * f_now[n] + written[n];
        p_now[n] = 0.99 * p_now[n] + e[n];
        const double so_far = static_cast<double>(t + 1), even = static_cast<double>(N) / static_cast<double>(W);
        loss += even * f[n] / so_far * p[n] / so_far;
        loss_now += even * f_now[n] / weight * p_now[n] / weight;
        CHECK(asked.number("partition_gate", t, n) == e[n]);
        CHECK(same(asked.number("selected_weights", t, n), written[n] * e[n] / mass));
        CHECK(same(asked.number("frequency", t, n), f[n] / so_far));
        CHECK(same(asked.number("probability", t, n), p[n] / so_far));
        CHECK(same(asked.number("load", t, n), f[n] / so_far * even));
        CHECK(same(asked.number("frequency_now", t, n), f_now[n] / weight));
        CHECK(same(asked.number("probability_now", t, n), p_now[n] / weight));
      }
      CHECK(same(asked.number("selected_mass", t), mass));
      CHECK(same(asked.number("routing_entropy", t), entropy));
      CHECK(same(asked.number("routing_margin", t),
                 W < N ? sorted[static_cast<std::size_t>(W - 1)] - sorted[static_cast<std::size_t>(W)] : NAN));
      CHECK(same(asked.number("balance_loss", t), loss));
      CHECK(same(asked.number("balance_loss_now", t), loss_now));
      CHECK(asked.has("mom_loss") == (evidence.layer(l).mixer == "mom"));
    }
  });
  CHECK(layers > 20);
}

TEST_CASE("observables by name: MoM's loss is over the tokens of all its layers") {
  SmallEvidence run(small_config("mom", {{"head_dim", 16}}), kTokens);
  const Asked first(run.evidence, 0, 0, kTokens), second(run.evidence, 1, 0, kTokens);
  for (const std::int64_t t : {std::int64_t{0}, kTokens - 1}) {
    double loss = 0;
    const std::size_t N = first.at("frequency", t).size();
    for (std::size_t n = 0; n < N; ++n)
      loss += static_cast<double>(N) * (first.number("frequency", t, n) + second.number("frequency", t, n)) / 2 *
              (first.number("probability", t, n) + second.number("probability", t, n)) / 2;
    CHECK(same(first.number("mom_loss", t), loss));
    CHECK(first.number("mom_loss", t) == second.number("mom_loss", t));
  }
}

TEST_CASE("observables by name: writes are those that change the state, as wide as their weights, in every family") {
  int layers = 0;
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    REQUIRE(asked.has("write_weight") == (evidence.trace(l) != nullptr));
    if (!asked.has("write_weight")) return;
    ++layers;
    const LayerInfo& layer = evidence.layer(l);
    const std::int64_t slots = layer.slots(), H = layer.heads, K = layer.rows, V = layer.columns;
    for (const std::int64_t t : {std::int64_t{0}, std::int64_t{1}, kTokens - 1}) {
      const auto [before, after] = evidence.states_around(l, t);
      for (std::int64_t head = 0; head < H; ++head) {
        const Update update = answer(UpdateQuestion{.layer = l, .head = head, .token = t}, evidence);
        double rows_written = 0;
        for (std::int64_t slot = 0; slot < slots; ++slot) {
          const auto place = static_cast<std::size_t>(slot * H + head);
          double sum = 0, squares = 0, counted = 0;
          for (std::int64_t r = 0; r < K; ++r) {
            const double w = std::abs(update.write_weight[static_cast<std::size_t>(slot * K + r)]);
            sum += w;
            squares += w * w;
          }
          for (std::int64_t r = 0; r < K; ++r) {
            const auto at = static_cast<std::size_t>(slot * K + r);
            const double w = update.write_weight[at];
            counted += w != 0 && std::abs(w) >= 0.001 * sum ? 1 : 0;
            // What the write left of a row is erased and written together: |ω_r| ‖v − π‖, without the delta rule |ω_r| ‖v‖.
            std::vector<double> change(static_cast<std::size_t>(V));
            for (std::int64_t c = 0; c < V; ++c)
              change[static_cast<std::size_t>(c)] = double{update.erased[at * static_cast<std::size_t>(V) + static_cast<std::size_t>(c)]} +
                                                    update.written[at * static_cast<std::size_t>(V) + static_cast<std::size_t>(c)];
            const double size = asked.number("row_write", t, place * static_cast<std::size_t>(K) + static_cast<std::size_t>(r));
            const double weight = asked.number("write_weight", t, place * static_cast<std::size_t>(K) + static_cast<std::size_t>(r));
            if (std::isnan(weight)) CHECK((w == 0 && std::isnan(size)));
            if (std::isnan(weight)) continue;
            CHECK(weight == w);
            CHECK(std::abs(size - norm_of(change.data(), V)) <= 1e-4 * (norm_of(change.data(), V) + sum * 1e-3));
          }
          rows_written += counted;
          if (sum == 0) continue;
          CHECK(same(asked.number("write_ratio", t, place), counted / static_cast<double>(K)));
          CHECK(same(asked.number("write_participation", t, place), sum * sum / (static_cast<double>(K) * squares)));
        }
        CHECK(same(asked.number("occupancy", t, static_cast<std::size_t>(head)), rows_written / static_cast<double>(slots * K)));
      }
    }
  });
  CHECK(layers > 50);
}

TEST_CASE("observables by name: half-life and receptive field follow from the decay of every token, in every family") {
  int layers = 0;
  in_every_layer([&](Evidence&, const Asked& asked, std::int64_t) {
    if (!asked.has("decay")) return;
    ++layers;
    const std::vector<std::int64_t>& shape = asked["decay"].shape;
    const auto channels = static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
    for (const std::int64_t t : {std::int64_t{0}, std::int64_t{5}, kTokens - 1}) {
      for (std::size_t c = 0; c < channels; c += 7) {
        double log_sum = 0;
        for (std::int64_t j = 0; j <= t; ++j) log_sum += std::log(asked.number("decay", j, c));
        CHECK(std::isnan(asked.number("decay_since", t, c)) == (t < 3));
        double since = 1;  // from token 3 on
        for (std::int64_t j = 4; j <= t; ++j) since *= asked.number("decay", j, c);
        if (t >= 3) CHECK(same(asked.number("decay_since", t, c), since));
        const double half = std::log(2.0) / std::abs(log_sum / static_cast<double>(t + 1));
        CHECK(same(asked.number("half_life", t, c), half, half > 1e5 ? 0.2 : 2e-3));  // α is kept in float32
        double widths = 0;
        for (std::int64_t u = 0; u <= t; ++u) {  // fewer than 128 tokens: all of them
          double left = 1;
          std::int64_t s = u;
          while (s > 0 && (left *= asked.number("decay", s, c)) >= 0.001) --s;
          widths += static_cast<double>(u - s);
        }
        CHECK(same(asked.number("receptive_field", t, c), widths / static_cast<double>(t + 1)));
      }
    }
  });
  CHECK(layers > 50);
}

TEST_CASE("observables by name: the summed receptive field, as SSE Def. 4 stands") {
  for (const json& config : {small_config("gla"), small_config("retnet"), sse_config("gla")}) {
    SmallEvidence run(config, kTokens);
    const Asked asked(run.evidence, 0, 0, kTokens);
    const std::vector<std::int64_t>& shape = asked["decay"].shape;
    const std::int64_t each = shape[2], rows = each == 1 ? run.evidence.layer(0).rows : 1;
    for (std::int64_t place = 0; place < shape[0] * shape[1]; ++place) {
      double widths = 0;
      for (std::int64_t u = 0; u < kTokens; ++u) {
        std::vector<double> left(static_cast<std::size_t>(each), 1);
        std::int64_t s = u;
        for (; s > 0; --s) {
          double sum = 0;
          for (std::int64_t c = 0; c < each; ++c)
            sum += left[static_cast<std::size_t>(c)] *= asked.number("decay", s, static_cast<std::size_t>(place * each + c));
          if (static_cast<double>(rows) * sum < 0.001) break;
        }
        widths += static_cast<double>(u - s);
      }
      CHECK(same(asked.number("receptive_field_summed", kTokens - 1, static_cast<std::size_t>(place)), widths / kTokens));
    }
  }
}

TEST_CASE("observables by name: norms of states, of updates and of rows, in every family") {
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    const std::vector<float> x = evidence.residual(l, 7, 8);
    const std::vector<double> wide(x.begin(), x.end());
    CHECK(same(asked.number("residual_norm", 7), norm_of(wide.data(), std::ssize(wide))));
    REQUIRE(asked.has("state_norm") == evidence.layer(l).has_state());
    if (!asked.has("state_norm")) return;
    for (const std::int64_t t : {std::int64_t{0}, kTokens - 1}) {
      const auto [before, after] = evidence.states_around(l, t);
      const std::int64_t K = after.rows, V = after.columns;
      for (std::int64_t place = 0; place < after.slots * after.heads; ++place) {
        std::vector<double> S(static_cast<std::size_t>(K * V)), change(S);
        for (std::size_t i = 0; i < S.size(); ++i) {
          S[i] = after.values[static_cast<std::size_t>(place * K * V) + i];
          change[i] = S[i] - before.values[static_cast<std::size_t>(place * K * V) + i];
        }
        CHECK(same(asked.number("state_norm", t, static_cast<std::size_t>(place)), norm_of(S.data(), K * V)));
        CHECK(same(asked.number("update_norm", t, static_cast<std::size_t>(place)), norm_of(change.data(), K * V)));
        for (std::int64_t r = 0; r < K; ++r)
          CHECK(same(asked.number("row_norm", t, static_cast<std::size_t>(place * K + r)), norm_of(S.data() + r * V, V)));
      }
    }
  });
}

TEST_CASE("observables by name: what a token reads of each slot, and how alike reads of one state are, from queries and states") {
  int places = 0;
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    const MemoryTrace* trace = evidence.trace(l);
    REQUIRE(asked.has("readout_share") == (trace != nullptr));
    if (!trace) return;
    const std::int64_t t = kTokens - 1, slots = std::ssize(trace->slots), H = trace->H, K = trace->K, V = trace->V;
    const LayerState state = evidence.state(l, t);
    const auto q_of = [&](const SlotVisits& visits, std::int64_t j, std::int64_t head) { return visits.q.data() + (j * H + head) * K; };
    for (std::int64_t head = 0; head < H; ++head) {
      std::vector<double> sizes(static_cast<std::size_t>(slots));
      for (std::int64_t slot = 0; slot < slots; ++slot) {
        const SlotVisits& visits = trace->slots[static_cast<std::size_t>(slot)];
        const float* S = state.matrix(slot, head);
        std::vector<std::vector<double>> reads;
        for (std::int64_t j = 0; j < visits.count(); ++j) {
          const std::vector<double> o = read(q_of(visits, j, head), S, K, V);
          if (norm_of(o.data(), V) >= 1e-12) reads.push_back(o);
          if (visits.token[static_cast<std::size_t>(j)] == t) sizes[static_cast<std::size_t>(slot)] = norm_of(o.data(), V);
        }
        double least = INFINITY, sum = 0, pairs = 0;
        for (std::size_t a = 0; a < reads.size(); ++a) {
          for (std::size_t b = 0; b < a; ++b, ++pairs) {
            const double cosine = std::inner_product(reads[a].begin(), reads[a].end(), reads[b].begin(), 0.0) /
                                  norm_of(reads[a].data(), V) / norm_of(reads[b].data(), V);
            least = std::min(least, cosine);
            sum += cosine;
          }
        }
        const auto place = static_cast<std::size_t>(slot * H + head);
        CHECK(same(asked.number("read_cosine_min", t, place), pairs > 0 ? least : NAN));
        CHECK(same(asked.number("read_cosine", t, place), pairs > 0 ? sum / pairs : NAN));
        ++places;
      }
      if (asked.has("selected_weights") && evidence.layer(l).mixer == "mom") {
        const bool shared = evidence.layer(l).has_shared_slot;
        for (std::int64_t slot = shared ? 1 : 0; slot < slots; ++slot)
          sizes[static_cast<std::size_t>(slot)] *= asked.number("selected_weights", t, static_cast<std::size_t>(slot - (shared ? 1 : 0)));
      }
      const double all = std::accumulate(sizes.begin(), sizes.end(), 0.0);
      for (std::int64_t slot = 0; slot < slots; ++slot)
        CHECK(same(asked.number("readout_share", t, static_cast<std::size_t>(slot * H + head)),
                   all > 0 ? sizes[static_cast<std::size_t>(slot)] / all : 0, 1e-4));
    }
  });
  CHECK(places > 200);
}

TEST_CASE("observables by name: likeness and rank are those of the other answers; ages count from the last write") {
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    if (!evidence.layer(l).has_state()) return;
    const std::int64_t t = kTokens - 1, H = evidence.layer(l).heads;
    const Spectra spectra = answer(SpectraQuestion{l, t}, evidence);
    for (std::int64_t head = 0; head < H; ++head) {
      const auto h = static_cast<std::size_t>(head);
      const Similarity similar = answer(SimilarityQuestion{l, head, t}, evidence);
      CHECK(same(asked.number("row_cosine", t, h), similar.mean_abs));
      CHECK(same(asked.number("row_cosine_within", t, h), similar.within));
      CHECK(same(asked.number("row_cosine_between", t, h), similar.between));
      CHECK(same(asked.number("row_cosine_min", t, h), similar.min_cosine));
      CHECK(asked.number("zero_rows", t, h) == static_cast<double>(similar.zero_rows));
      CHECK(same(asked.number("state_entropy", t, h), spectra.entropy[h]));
      CHECK(same(asked.number("effective_rank", t, h), spectra.rank[h]));
      CHECK(same(asked.number("effective_rank_of_squares", t, h), spectra.rank_of_squares[h]));
      for (std::int64_t slot = 0; slot < evidence.layer(l).slots(); ++slot) {
        const auto found = static_cast<std::size_t>(slot * H + head),
                   other = static_cast<std::size_t>(head * evidence.layer(l).slots() + slot);
        CHECK(same(asked.number("partition_rank", t, found), spectra.partition_rank[other]));
        CHECK(same(asked.number("partition_entropy", t, found), spectra.partition_entropy[other]));
      }
      // Its definition in double precision: the least product of two rows over the largest singular value squared.
      const LayerState state = evidence.state(l, t);
      double least = INFINITY;
      std::vector<const float*> rows;
      for (std::int64_t slot = 0; slot < state.slots; ++slot) {
        for (std::int64_t r = 0; r < state.rows; ++r) rows.push_back(state.matrix(slot, head) + r * state.columns);
      }
      for (const float* a : rows) {
        for (const float* b : rows) least = std::min(least, std::inner_product(a, a + state.columns, b, 0.0));
      }
      const double sigma = spectra.sigma[h * static_cast<std::size_t>(spectra.count)];
      CHECK(same(asked.number("spectral_statistic", t, h), sigma > 0 ? least / (sigma * sigma) : NAN, 1e-4));
    }
    if (!evidence.trace(l)) return;
    for (std::int64_t head = 0; head < H; ++head) {
      const RowAges ages = answer(RowAgesQuestion{l, head, t}, evidence);
      for (std::int64_t slot = 0; slot < ages.slots; ++slot) {
        std::int32_t newest = -1;
        for (std::int64_t r = 0; r < ages.rows; ++r) {
          const std::int32_t age = ages.written[static_cast<std::size_t>(slot * ages.rows + r)];
          if (age >= 0) newest = newest < 0 ? age : std::min(newest, age);
          CHECK(same(asked.number("row_age", t, static_cast<std::size_t>((slot * H + head) * ages.rows + r)), age < 0 ? NAN : age));
        }
        const double of_slot = asked.number("slot_age", t, static_cast<std::size_t>(slot));
        if (newest >= 0) CHECK(of_slot <= newest);
      }
    }
  });
}

TEST_CASE("observables by name: which rows keys choose, of softmax and of row-sparse keys") {
  const auto check = [](const json& config, std::int64_t topk) {
    SmallEvidence run(config, kTokens);
    const Asked asked(run.evidence, 0, 0, kTokens);
    const MemoryTrace& trace = *run.evidence.trace(0);
    const std::int64_t H = trace.H, K = trace.K;
    for (std::int64_t slot = 0; slot < std::ssize(trace.slots); ++slot) {
      const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
      for (std::int64_t head = 0; head < H; ++head) {
        std::vector<double> chosen(static_cast<std::size_t>(K));
        double writes = 0;
        for (std::int64_t j = 0; j < visits.count(); ++j) {
          const float* k = visits.k.data() + (j * H + head) * K;
          std::vector<float> sorted(k, k + K);
          std::ranges::sort(sorted, std::ranges::greater{});
          if (sorted.front() == 0) continue;
          ++writes;
          for (std::int64_t r = 0; r < K; ++r)
            chosen[static_cast<std::size_t>(r)] += k[r] > 0 && k[r] >= sorted[static_cast<std::size_t>(topk - 1)];
        }
        for (std::int64_t r = 0; r < K && writes > 0; ++r)
          CHECK(same(asked.number("row_frequency", kTokens - 1, static_cast<std::size_t>((slot * H + head) * K + r)),
                     chosen[static_cast<std::size_t>(r)] / writes));
      }
    }
  };
  check(small_config("gla", {{"expand_k", 1.0}, {"row_sparse", {{"topk", 4}}}}), 4);
  check(sse_config("gla", {{"num_reader", 3}}), 1);
  SmallEvidence gla(small_config("gla"), 5);
  CHECK_FALSE(Asked(gla.evidence, 0, 0, 5).has("row_frequency"));
}

TEST_CASE("observables by name: head gates, the delta rule and the output gate are the answers' and the channels'") {
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    const HeadContest contest = answer(HeadGatesQuestion{l}, evidence);
    REQUIRE((contest.heads > 0) == asked.has("head_gate_q"));
    const std::int64_t t = 21;
    const auto at = static_cast<std::size_t>(t);
    if (contest.heads > 0) {
      CHECK(asked.number("gate_entropy_q", t) == contest.entropy_q[at]);
      CHECK(asked.number("gate_winner_k", t) == contest.winner_k[at]);
      CHECK(asked.number("gate_margin_q", t) == contest.margin_q[at]);
      CHECK(asked.number("information_flow", t) == contest.flow[at]);
      CHECK(asked.number("read_gate_effective", t) == contest.read_gate_effective[at]);
      const SharpenedGates sharp = answer(SharpenedGatesQuestion{l, t, t + 1}, evidence);
      CHECK(std::ranges::equal(asked.at("gate_entropy_k_sharpened", t), sharp.curve_k));
      CHECK(std::ranges::equal(asked.at("information_flow_sharpened", t), sharp.curve_flow));
    }
    if (const ChannelRows* gate = evidence.channel(l, "output_gate")) {
      CHECK(std::ranges::equal(asked.at("output_gate", t), row_of(*gate, t)));
    } else {
      CHECK_FALSE(asked.has("output_gate"));
    }
    const MemoryTrace* trace = evidence.trace(l);
    REQUIRE(asked.has("erased") == (trace && trace->rule == MemoryRule::delta));
    if (!asked.has("erased")) return;
    const DeltaRule rule = answer(DeltaRuleQuestion{l, 0, 1}, evidence);
    const auto visit = std::ranges::find(rule.token, t);
    if (visit == rule.token.end()) return;
    const auto j = static_cast<std::size_t>(visit - rule.token.begin());
    CHECK(asked.number("write_strength", t, 1) == rule.beta[j]);
    CHECK(asked.number("prediction", t, 1) == rule.prediction[j]);
    CHECK(asked.number("prediction_error", t, 1) == rule.error[j]);
    CHECK(same(asked.number("prediction_error_relative", t, 1), rule.error[j] / rule.value[j]));
    CHECK(asked.number("prediction_cosine", t, 1) == rule.cosine[j]);
    CHECK(asked.number("erased", t, 1) == rule.erase[j]);
    CHECK(asked.number("written", t, 1) == rule.write[j]);
    CHECK(asked.number("net_update", t, 1) == rule.update[j]);
    CHECK(asked.number("transition_eigenvalue", t, 1) == rule.eigenvalue[j]);
  });
}

// ---------------------------------------------------------------------------------------------------------------------------- in branches

namespace {

/// A branch of a small model's run, ready to be asked about.
struct BranchEvidence {
  std::shared_ptr<Model> model;
  Branches tree;
  FairMutex mutex;
  std::shared_ptr<Reading> reading;
  Evidence evidence;

  BranchEvidence(const json& config, const std::vector<std::string>& lines)
      : model(Model::load(random_checkpoint(Config(config), 5), make_cpu_backend(1))),
        tree(intervened(model, lines)),
        reading(std::make_shared<Reading>(tree[tree.current()].run, make_tokenizer(model->checkpoint(), model->vocab()),
                                          PromptInput{.ids = some_ids(kTokens)},
                                          BranchInfo{.number = 1, .parent = 0, .from = 12, .interventions = lines})),
        evidence(reading, mutex) {}

  static Branches intervened(const std::shared_ptr<Model>& model, const std::vector<std::string>& lines) {
    const auto read = [&](std::int64_t tokens) {
      auto run = std::make_shared<Run>(model);
      run->read(some_ids(tokens), tokens);
      return run;
    };
    Branches tree(read(kTokens));
    tree.add(read(kTokens - 4));
    std::vector<Intervention> interventions;
    for (const std::string& line : lines) interventions.push_back(parse_intervention(line));
    tree.intervene(std::move(interventions));
    return tree;
  }
};

}  // namespace

TEST_CASE("branches: norms along the run, updates, writes, decay and the delta rule hold where states were changed") {
  const std::vector<std::string> changes{"zero head 1 at 12", "scale state by -2 at 15", "import run 1 at 20"};
  for (const json& config : {small_config("gla"), sse_config("gla"), sse_config("gdn"), small_config("delta_net"), small_config("retnet"),
                             small_config("mom", {{"head_dim", 16}})}) {
    INFO(config.dump());
    BranchEvidence branch(config, changes);
    SmallEvidence own(config, kTokens);
    Evidence& evidence = branch.evidence;
    const std::int64_t l = 0, slots = evidence.layer(l).slots();
    const LayerSeries series = answer(LayerSeriesQuestion{l, 5, kTokens}, evidence);
    for (const std::int64_t t : {11, 12, 13, 15, 16, 20, 21, 32}) {
      INFO("after token " << t);
      const auto [before, after] = evidence.states_around(l, t);
      const std::int64_t each = after.heads * after.rows * after.columns;
      for (std::int64_t slot = 0; slot < slots; ++slot) {
        const auto at = static_cast<std::size_t>(slot * (kTokens - 5) + t - 5);
        std::vector<double> S(static_cast<std::size_t>(each)), change(S);
        for (std::int64_t i = 0; i < each; ++i) {
          S[static_cast<std::size_t>(i)] = after.matrix(slot, 0)[i];
          change[static_cast<std::size_t>(i)] = double{after.matrix(slot, 0)[i]} - before.matrix(slot, 0)[i];
        }
        const double norm = norm_of(S.data(), each);
        CHECK(series.state_norm[at] == Approx(norm).epsilon(1e-4).margin(1e-6));
        CHECK(series.update_norm[at] == Approx(norm_of(change.data(), each)).epsilon(1e-3).margin(1e-4 * norm + 1e-6));
      }
      for (std::int64_t head = 0; head < after.heads; ++head) {
        const Update update = answer(UpdateQuestion{.layer = l, .head = head, .token = t}, evidence);
        const std::int64_t cells = after.rows * after.columns;
        double error = 0, size = 0;
        for (std::int64_t i = 0; i < slots * cells; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double sum =
              double{before.matrix(i / cells, head)[i % cells]} + update.decayed[at] + update.erased[at] + update.written[at];
          error += std::pow(sum - after.matrix(i / cells, head)[i % cells], 2);
          size += std::pow(sum, 2) + std::pow(double{before.matrix(i / cells, head)[i % cells]}, 2);
        }
        CHECK(std::sqrt(error) <= 1e-4 * std::sqrt(size) + 1e-9);
      }
    }
    // Up to the first change all is as before it. An intervention is no write, and no decay of the gates.
    const std::int64_t head = 0;
    const WriteSpreads spread = answer(WriteSpreadQuestion{l, head, 0, 13}, evidence),
                       own_spread = answer(WriteSpreadQuestion{l, head, 0, 13}, own.evidence);
    CHECK(std::ranges::equal(spread.effective, own_spread.effective, [](float a, float b) { return same(a, b); }));
    const Decay decay = answer(DecayQuestion{l, 0, head, 0, kTokens}, evidence);
    if (decay.axis != Decay::Axis::none) CHECK(std::ranges::is_sorted(decay.token, std::ranges::less_equal{}));
    for (const float half : decay.half_life) CHECK(half > 0);
    for (const float width : decay.width) CHECK(!std::isnan(width));
    const DeltaRule rule = answer(DeltaRuleQuestion{l, 0, head}, evidence);
    CHECK(std::ranges::adjacent_find(rule.token) == rule.token.end());
    const History all = answer(HistoryQuestion{.layer = l, .slot = 0, .head = 1, .row = -1, .token = 25}, evidence);
    CHECK(all.sum == Approx(all.shown).epsilon(1e-4));
    const Asked asked(evidence, l, 10, 25);
    CHECK(asked.number("state_norm", 12, 1) == 0);  // head 1 of the first slot
    CHECK(asked.number("slot_age", 12) == 0);
  }
}

TEST_CASE("branches: a balance over different numbers of partitions is refused in a line; all else is told") {
  BranchEvidence branch(sse_config("gla"), {"topk 3 from 12"});
  const std::vector<std::string> balance{"balance_loss"}, routing{"selected_mass", "routing_margin"};
  CHECK_THROWS_WITH(answer(ObservablesQuestion{0, 0, kTokens, balance}, branch.evidence),
                    Catch::Matchers::StartsWith("an intervention has changed how many partitions"));
  CHECK(answer(ObservablesQuestion{0, 0, 12, balance}, branch.evidence).quantities.size() == 1);
  const Observables found = answer(ObservablesQuestion{0, 0, kTokens, routing}, branch.evidence);
  const auto written = branch.evidence.routing(0);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    double mass = 0;
    for (std::int64_t n = 0; n < written->partitions; ++n) mass += written->selected_at(t, n) ? written->gate_at(t, n) : 0;
    CHECK(same(found.quantities[0].values[static_cast<std::size_t>(t)], mass));
  }
}

// ------------------------------------------------------------------------------------------------------------------------------ every
// answer

namespace {

template <class Answer>
concept SaysHowExact = requires {
  { Answer::accuracy } -> std::convertible_to<Accuracy>;
};

template <class Variant>
struct AllSay;
template <class... Q>
struct AllSay<std::variant<Q...>> {
  /// A state's accuracy is the snapshot's and depends on its token; each of the named quantities has its own.
  static constexpr bool value = ((SaysHowExact<typename Q::Answer> || std::is_same_v<typename Q::Answer, LayerState> ||
                                  std::is_same_v<typename Q::Answer, HeadState> || std::is_same_v<typename Q::Answer, Observables>)&&...);
};

}  // namespace

TEST_CASE("answers: each says how exact it is") { CHECK(AllSay<Question>::value); }

}  // namespace statescope::test::observables_of_runs_test
