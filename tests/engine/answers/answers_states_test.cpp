// Answers about states, needles, predictions and the model itself, against the run's own numbers, in every family.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "engine/analysis/needle_fate.h"
#include "engine/answers/answers.h"
#include "engine/answers/levels.h"
#include "engine/answers/needle_places.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"
#include "tests/engine/analysis/states.h"
#include "tests/source.h"

namespace statescope::test::answers_states_test {
namespace {

constexpr std::int64_t kTokens = 29;

std::int64_t layers_of(const SmallEvidence& asked) { return asked.model->layers(); }

double size_of(const float* row, std::int64_t n) {
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += double{row[i]} * row[i];
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("history: what tokens contributed adds up to the cell and to the row's norm that the state has, in every family") {
  int cells = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence asked(small.config, kTokens);
    for (std::int64_t l = 0; l < layers_of(asked); ++l) {
      if (!asked.evidence.trace(l)) continue;
      for (const std::int64_t token : {std::int64_t{0}, kTokens - 1}) {
        const LayerState state = asked.evidence.state(l, token);
        for (std::int64_t slot = 0; slot < state.slots; ++slot) {
          const std::int64_t head = state.heads - 1, row = state.rows - 1, column = state.columns - 1;
          const float* values = state.matrix(slot, head) + row * state.columns;
          const double norm = size_of(values, state.columns);
          const History cell =
              answer(HistoryQuestion{.layer = l, .slot = slot, .head = head, .row = row, .column = column, .token = token}, asked.evidence);
          CHECK(cell.shown == values[column]);
          CHECK(std::abs(cell.sum - cell.shown) <= 1e-4 * norm + 1e-9);
          CHECK((cell.token.size() == cell.coefficient.size() && cell.token.size() == cell.written.size()));
          CHECK(std::ranges::is_sorted(cell.token));
          ++cells;
          const History of_row =
              answer(HistoryQuestion{.layer = l, .slot = slot, .head = head, .row = row, .token = token}, asked.evidence);
          CHECK(of_row.shown == Approx(norm));
          CHECK(std::abs(of_row.sum - norm) <= 1e-4 * norm + 1e-9);
        }
      }
    }
  }
  CHECK(cells > 300);
}

TEST_CASE("history: what tokens contributed to a whole partition adds up to its norm, and is what they contributed to its rows") {
  int slots = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence asked(small.config, kTokens);
    for (std::int64_t l = 0; l < layers_of(asked); ++l) {
      if (!asked.evidence.trace(l)) continue;
      const LayerState state = asked.evidence.state(l, kTokens - 1);
      const std::int64_t head = state.heads - 1;
      for (std::int64_t slot = 0; slot < state.slots; ++slot, ++slots) {
        const double norm = size_of(state.matrix(slot, head), state.rows * state.columns);
        const History all =
            answer(HistoryQuestion{.layer = l, .slot = slot, .head = head, .row = -1, .token = kTokens - 1}, asked.evidence);
        CHECK(all.shown == Approx(norm));
        CHECK(std::abs(all.sum - norm) <= 1e-4 * norm + 1e-9);
        std::vector<double> contribution(all.token.size()), squares(all.token.size());
        for (std::int64_t row = 0; row < state.rows; ++row) {
          const History one =
              answer(HistoryQuestion{.layer = l, .slot = slot, .head = head, .row = row, .token = kTokens - 1}, asked.evidence);
          REQUIRE(one.token == all.token);
          for (std::size_t j = 0; j < contribution.size(); ++j) {
            contribution[j] += norm > 0 ? one.contribution[j] * one.shown / norm : 0;
            squares[j] += double{one.coefficient[j]} * one.coefficient[j];
          }
        }
        for (std::size_t j = 0; j < contribution.size(); ++j) {
          CHECK(std::abs(all.contribution[j] - contribution[j]) <= 1e-5 * norm);
          CHECK(all.coefficient[j] == Approx(std::sqrt(squares[j])).epsilon(1e-4).margin(1e-12));
        }
      }
    }
  }
  CHECK(slots > 100);
}

TEST_CASE("history: of what a token reads the tokens' parts add up to its norm, in every slot of every family") {
  int reads = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence asked(small.config, kTokens);
    for (std::int64_t l = 0; l < layers_of(asked); ++l) {
      const MemoryTrace* trace = asked.evidence.trace(l);
      if (!trace) continue;
      for (std::int64_t slot = 0; slot < std::ssize(trace->slots); ++slot) {
        const std::int64_t head = trace->H - 1, token = kTokens - 1;
        const History history =
            answer(HistoryQuestion{.layer = l, .slot = slot, .head = head, .token = token, .read = true}, asked.evidence);
        const SlotVisits& visits = trace->slots[static_cast<std::size_t>(slot)];
        const std::int64_t j = visits.reading(token);
        CHECK((j < 0) == history.token.empty());
        if (j < 0) continue;
        const double norm = size_of(visits.o.data() + (j * trace->H + head) * trace->V, trace->V);
        CHECK(history.shown == Approx(norm));
        CHECK(std::abs(history.sum - norm) <= 1e-4 * norm + 1e-9);
        CHECK(std::accumulate(history.contribution.begin(), history.contribution.end(), 0.0) ==
              Approx(history.sum).epsilon(1e-4).margin(1e-6));
        ++reads;
      }
    }
  }
  CHECK(reads > 80);
}

TEST_CASE("history: places that do not exist are refused in a line") {
  SmallEvidence asked(small_config("gla"), kTokens);
  CHECK_THROWS_WITH(answer(HistoryQuestion{.row = -1, .column = 2}, asked.evidence), "a column without a row has no history");
  CHECK_THROWS_WITH(answer(HistoryQuestion{.row = 999}, asked.evidence), "there is no row 999 (rows are 0 to 7)");
  CHECK_THROWS_WITH(answer(HistoryQuestion{.column = 999}, asked.evidence), "there is no column 999 (columns are 0 to 15)");
  CHECK_THROWS_WITH(answer(HistoryQuestion{.slot = 1}, asked.evidence), "there is no slot 1 (the only one is 0)");
  CHECK_THROWS_WITH(answer(StateQuestion{.token = kTokens}, asked.evidence), "there is no token 29 (tokens are 0 to 28)");
  SmallEvidence softmax(small_config("transformer"), kTokens);
  const char* const none = "layer 0 (transformer) keeps no matrix state, nor does any other of this model";
  CHECK_THROWS_WITH(answer(HistoryQuestion{}, softmax.evidence), none);
  CHECK_THROWS_WITH(answer(StateQuestion{}, softmax.evidence), none);
  SmallEvidence hybrid(small_config("gla", {{"attn", {{"layers", {1}}, {"num_heads", 4}}}}), kTokens);
  CHECK_THROWS_WITH(answer(HistoryQuestion{.layer = 1}, hybrid.evidence), "layer 1 (transformer) keeps no matrix state, layer 0 does");
  SmallEvidence space(s4_config("hippo"), kTokens);
  CHECK_THROWS_WITH(answer(HistoryQuestion{.row = -1, .column = 2}, space.evidence), "a column without a row has no history");
  CHECK_THROWS_WITH(answer(HistoryQuestion{.row = 10}, space.evidence), "there is no row 10 (rows are 0 to 9)");
  CHECK_THROWS_WITH(answer(HistoryQuestion{.slot = 1, .read = true}, space.evidence), "there is no slot 1 (the only one is 0)");
  CHECK_THROWS_WITH(answer(LayerStateQuestion{}, softmax.evidence), none);
}

TEST_CASE("update: the state before, what decay and erasure took, and what was written, is the state after, in every family") {
  int heads = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence asked(small.config, kTokens);
    for (std::int64_t l = 0; l < layers_of(asked); ++l) {
      const LayerInfo& layer = asked.evidence.layer(l);
      if (!layer.has_state() || has_levels(layer)) continue;
      for (const std::int64_t token : {std::int64_t{0}, kTokens / 2, kTokens - 1}) {
        const auto [before, after] = asked.evidence.states_around(l, token);
        for (std::int64_t head = 0; head < after.heads; ++head, ++heads) {
          const Update update = answer(UpdateQuestion{.layer = l, .head = head, .token = token}, asked.evidence);
          REQUIRE((update.slots == after.slots && update.rows == after.rows && update.columns == after.columns));
          const std::int64_t cells = update.rows * update.columns;
          double error = 0, size = 0;
          for (std::int64_t i = 0; i < update.slots * cells; ++i) {
            const std::int64_t slot = i / cells, cell = i % cells;
            const auto at = static_cast<std::size_t>(i);
            const double sum = double{before.matrix(slot, head)[cell]} + update.decayed[at] + update.erased[at] + update.written[at];
            error += std::pow(sum - after.matrix(slot, head)[cell], 2);
            size += std::pow(double{after.matrix(slot, head)[cell]}, 2);
          }
          CHECK(std::sqrt(error) <= 1e-4 * std::sqrt(size) + 1e-9);
        }
      }
    }
  }
  CHECK(heads > 300);
}

TEST_CASE("the state at another token is the run's, of one head or of all") {
  SmallEvidence asked(sse_config("gla"), kTokens);
  const LayerState all = asked.evidence.state(1, 7);
  CHECK(answer(LayerStateQuestion{.layer = 1, .token = 7}, asked.evidence).values == all.values);
  for (std::int64_t head = 0; head < all.heads; ++head) {
    const HeadState one = answer(StateQuestion{.layer = 1, .head = head, .token = 7}, asked.evidence);
    CHECK((one.slots == all.slots && one.heads == all.heads && one.rows == all.rows && one.columns == all.columns));
    CHECK(one.values == one_head(all, head));
  }
  CHECK_THROWS_WITH(answer(StateQuestion{.layer = 1, .head = 9, .token = 7}, asked.evidence),
                    "there is no head 9 (heads are 0 to " + std::to_string(all.heads - 1) + ")");
}

TEST_CASE("predictions: probabilities, ranks and entropy of every token are those of its logits") {
  SmallEvidence asked(small_config("gla"), kTokens);
  const std::vector<std::int32_t> ids{3, 96};
  const Predictions found = answer(PredictionsQuestion{.from = 3, .to = 999, .ids = ids}, asked.evidence);
  REQUIRE((found.from == 3 && found.to == kTokens));
  const auto vocab = static_cast<std::size_t>(asked.evidence.model().vocab());
  for (std::int64_t t = found.from; t < found.to; ++t) {
    const auto i = static_cast<std::size_t>(t - found.from);
    const std::vector<float> logits = asked.evidence.logits(t, t + 1);
    double sum = 0, entropy = 0;
    for (const float z : logits) sum += std::exp(double{z});
    for (const float z : logits) entropy -= std::exp(double{z}) / sum * std::log(std::exp(double{z}) / sum);
    REQUIRE(logits.size() == vocab);
    CHECK(found.entropy[i] == Approx(entropy).epsilon(1e-5));
    const auto largest = std::ranges::max_element(logits) - logits.begin();
    REQUIRE(found.top[i].size() == 5);
    CHECK(found.top[i][0].id == largest);
    CHECK(found.top[i][0].text == asked.evidence.text(static_cast<std::int32_t>(largest)));
    CHECK(std::ranges::is_sorted(found.top[i], std::ranges::greater{}, &Prediction::probability));
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const float z = logits[static_cast<std::size_t>(ids[k])];
      CHECK(found.logits[i * 2 + k] == Approx(z).margin(1e-5));
      CHECK(found.probabilities[i * 2 + k] == Approx(std::exp(double{z}) / sum).epsilon(1e-5));
    }
    if (t + 1 == kTokens) {
      CHECK((std::isnan(found.next_probability[i]) && found.next_rank[i] == -1));
      continue;
    }
    const float z = logits[static_cast<std::size_t>(asked.evidence.info().tokens[static_cast<std::size_t>(t + 1)].id)];
    CHECK(found.next_probability[i] == Approx(std::exp(double{z}) / sum).epsilon(1e-5));
    CHECK(found.next_rank[i] == std::ranges::count_if(logits, [z](float other) { return other > z; }));
  }
  CHECK_THROWS_AS(answer(PredictionsQuestion{.from = 0, .to = 1, .ids = {97}}, asked.evidence), Error);
  CHECK(answer(PredictionsQuestion{.from = 99, .to = 999, .ids = {}}, asked.evidence).top.empty());
}

TEST_CASE("history: what memory tokens have written is of one writer, before all tokens") {
  SmallEvidence asked(hymba_config(), kTokens);
  const History history = answer(HistoryQuestion{.row = -1, .token = kTokens - 1}, asked.evidence);
  REQUIRE(!history.token.empty());
  CHECK(history.token.front() == kMemoryTokens);
  CHECK(std::ranges::count(history.token, kMemoryTokens) == 1);
  CHECK(history.token.size() == kTokens + 1);
  CHECK(history.contribution.size() == history.token.size());
  CHECK(history.sum == Approx(history.shown).epsilon(1e-4));
}

TEST_CASE("model map: every tensor has its place, parameters add up, states are as large as the model's") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence asked(small.config, kTokens);
    const ModelMap map = answer(ModelMapQuestion{}, asked.evidence);
    REQUIRE(std::ssize(map.layers) == layers_of(asked));
    std::int64_t parameters = map.rest.parameters, bytes = map.rest.weight_bytes;
    for (std::size_t l = 0; l < map.layers.size(); ++l) {
      const ModelMap::LayerRow& layer = map.layers[l];
      CHECK_FALSE(layer.tensors.empty());
      for (const ModelMap::TensorRow& tensor : layer.tensors)
        CHECK(tensor.name.find("layers." + std::to_string(l) + ".") != tensor.name.npos);
      parameters += layer.parameters;
      bytes += layer.weight_bytes;
      std::int64_t numbers = 0;
      const MixerLayout& layout = asked.evidence.model().layout(static_cast<std::int64_t>(l));
      for (const MixerLayout::Memory& memory : layout.memory) numbers += memory.shape.size();
      for (const Shape& cache : layout.conv_caches) numbers += cache.size();
      CHECK(layer.state_bytes == 4 * numbers);
      CHECK((layer.state_bytes_per_token > 0) == (layout.kv_heads > 0));
      const Mixer* mixer = asked.evidence.model().mixer(static_cast<std::int64_t>(l));
      CHECK(layer.program.empty() == (mixer == nullptr));
    }
    CHECK(parameters == asked.evidence.info().model.parameters);
    CHECK(bytes == asked.evidence.info().model.weight_bytes);
    CHECK(std::ranges::none_of(map.rest.tensors, [](const auto& tensor) { return tensor.name.find("layers.") != tensor.name.npos; }));
  }
}

TEST_CASE("needle story: its curves end where the fates end, its parts are those of the verdict, in every family") {
  const NeedleQuestion question{.begin = 5, .end = 8, .question = kTokens - 2};
  int layers = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence asked(small.config, kTokens);
    const NeedleStory story = answer(question, asked.evidence);
    REQUIRE(std::ssize(story.layers) == layers_of(asked));
    double lost = 0;
    for (const NeedleStory::Cause& cause : story.causes) lost += cause.lost;
    for (std::int64_t l = 0; l < layers_of(asked); ++l) {
      const NeedleStory::LayerFate& layer = story.layers[static_cast<std::size_t>(l)];
      CHECK(layer.has_memory == asked.evidence.layer(l).has_state());
      if (!layer.has_memory) continue;
      const std::vector<NeedleFate> fates =
          fates_of(needle_places(l, {question.begin, question.end}, question.question, 3, asked.evidence));
      ++layers;
      CHECK(layer.clear + layer.decayed + layer.erased + layer.overwritten + layer.misrouted == Approx(1));
      REQUIRE(std::ssize(layer.kept) == question.question - question.end + 2);
      CHECK(layer.kept.front() == Approx(1));
      CHECK(layer.kept.back() == Approx(1 - layer.decayed - layer.erased).margin(1e-6));
      CHECK(layer.places == std::ssize(fates));
      REQUIRE(layer.curves.size() == std::min<std::size_t>(12, fates.size()));
      for (std::size_t i = 0; i < layer.curves.size(); ++i) {
        const NeedleStory::Curve& curve = layer.curves[i];
        CHECK((curve.slot == fates[i].slot && curve.head == fates[i].head && curve.written == fates[i].written));
        CHECK((curve.token.front() < question.end && curve.token.back() <= question.question));
        CHECK(std::ranges::adjacent_find(curve.token, std::ranges::greater_equal{}) == curve.token.end());
        CHECK(curve.kept.front() == 1);
        CHECK(curve.kept.back() == Approx(fates[i].kept));
        CHECK(std::isnan(curve.read_share) == !fates[i].read);
      }
      double share = -std::numeric_limits<double>::infinity();
      for (const NeedleFate& fate : fates) share = fate.read ? std::max(share, fate.read_share) : share;
      CHECK(layer.read_share == (std::isinf(share) ? 0 : share));
      CHECK((std::isinf(share) || story.all.read_share >= share));
    }
    if (!story.all.has_memory) continue;
    CHECK(story.all.kept.back() == Approx(1 - story.all.decayed - story.all.erased).margin(1e-6));
    if (story.causes.size() < 64) CHECK(lost == Approx(1 - story.all.clear).margin(1e-6));
    CHECK(story.falls.size() <= 5);
    for (const NeedleStory::Fall& fall : story.falls) {
      const auto t = static_cast<std::size_t>(fall.token - question.end + 1);
      CHECK(fall.by == Approx(story.all.kept[t - 1] - story.all.kept[t]));
      CHECK(fall.by >= 0.02);
    }
  }
  CHECK(layers > 40);
}

TEST_CASE("needle story: what cannot be asked is refused in a line, and work that nobody waits for ends") {
  SmallEvidence asked(small_config("gla"), kTokens);
  CHECK_THROWS_WITH(answer(NeedleQuestion{.begin = 5, .end = 8, .question = 7}, asked.evidence), "nothing is asked after the needle");
  CHECK_THROWS_WITH(answer(NeedleQuestion{.begin = 5, .end = 8, .question = 500}, asked.evidence), "the question has not been read yet");
  asked.evidence.set_progress([](double) { return false; });
  CHECK_THROWS_WITH(answer(NeedleQuestion{.begin = 5, .end = 8, .question = 20}, asked.evidence), "cancelled");
}

TEST_CASE("on a shipped model the right answer is known, and the needle's story is whole") {
  const auto checkpoint = open_checkpoint(from_source("assets/checkpoints/niah/niah-sse-gla-n4k1.h5"));
  const std::shared_ptr<Model> model = Model::load(checkpoint, make_cpu_backend(2));
  PromptInput prompt;
  prompt.text = "the lamp was large . the code of ivan 1 8 1 5 . the mill was old . what is the code of ivan ";
  prompt.spans = {{SpanKind::needle, 21, 45}};
  prompt.expected = "1 8 1 5";
  const auto reading = std::make_shared<Reading>(model, make_tokenizer(*checkpoint, model->vocab()), prompt);
  FairMutex mutex;
  Evidence evidence(reading, mutex);
  REQUIRE(evidence.info().expected.size() == 4);
  CHECK(evidence.info().expected[1].text.find('8') != std::string::npos);
  const TokenSpan needle = evidence.info().spans.at(0);
  const NeedleStory story = answer(NeedleQuestion{needle.begin, needle.end, evidence.info().prompt_length - 1}, evidence);
  CHECK(story.all.has_memory);
  CHECK(story.all.clear + story.all.decayed + story.all.erased + story.all.overwritten + story.all.misrouted == Approx(1));
  const LayerInfo& layer = evidence.layer(0);
  const std::int64_t last = evidence.tokens() - 1;
  const History history = answer(HistoryQuestion{.slot = 0, .head = 0, .row = layer.rows / 2, .column = 3, .token = last}, evidence);
  CHECK(history.sum == Approx(history.shown).epsilon(1e-4));
  CHECK(std::ssize(history.token) == evidence.tokens());
}

TEST_CASE("answers: a level of states is written by the tokens that it holds, and by them alone") {
  constexpr std::int64_t tokens = 29, levels = 6;
  SmallEvidence run(log_linear_config({{"n_groups", 2}}), tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::int64_t told = 0;
    for (std::int64_t level = 0; level < levels; ++level) {
      INFO("level " << level << " of token " << t);
      const LevelTokens held = tokens_of_level(level, t);
      const HistoryQuestion cell{.layer = 1, .slot = level, .head = 3, .row = 2, .column = 7, .token = t};
      HistoryQuestion whole = cell, read = cell;
      whole.row = whole.column = -1;
      read.read = true;
      const HeadState state = run.evidence.head_state(1, 3, t);
      for (const HistoryQuestion& question : {cell, whole, read}) {
        const History history = answer(question, run.evidence);
        REQUIRE(std::ssize(history.token) == held.to - held.from);
        for (std::size_t i = 0; i < history.token.size(); ++i) CHECK(history.token[i] == held.from + static_cast<std::int64_t>(i));
        CHECK(history.sum == Approx(history.shown).margin(1e-5));
      }
      CHECK(answer(cell, run.evidence).shown == state.matrix(level)[2 * state.columns + 7]);
      told += held.to - held.from;
    }
    CHECK(told == t + 1);
  }
  CHECK_THROWS_WITH(answer(HistoryQuestion{.layer = 1, .slot = 99, .token = 3}, run.evidence), Catch::Matchers::ContainsSubstring("slot"));
}

}  // namespace statescope::test::answers_states_test
