// What can be asked by name of states, of what is written to them and read of them, in every family, against the definitions in double
// precision.
#include "tests/engine/answers/observables_asked.h"

namespace statescope::test::observables_of_runs {

TEST_CASE("observables by name: writes are those that change the state, as wide as their weights, in every family") {
  int layers = 0;
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    const MemoryTrace* trace = evidence.trace(l);
    const bool levels = evidence.layer(l).memory == "log-linear attention";
    REQUIRE(asked.has("write_weight") == (levels || (trace && trace->steps == 1)));
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
            // What the write left of a row is erased and written together: |ω_r| ‖v − π‖, without the delta rule |ω_r| ‖v‖. WKV erases
            // other rows than it writes, levels what moves to a larger one.
            const bool apart = levels || trace->rule == MemoryRule::two_keys;
            std::vector<double> change(static_cast<std::size_t>(V));
            for (std::int64_t c = 0; c < V; ++c)
              change[static_cast<std::size_t>(c)] =
                  (apart ? 0 : 1) * double{update.erased[at * static_cast<std::size_t>(V) + static_cast<std::size_t>(c)]} +
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

}  // namespace statescope::test::observables_of_runs
