// What became of a needle, told along the tokens.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/analysis/needle_fate.h"
#include "engine/answers/answers.h"
#include "engine/answers/needle_places.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::size_t kCurves = 12, kCauses = 64, kFalls = 5;
constexpr std::ptrdiff_t kPoints = 512;
constexpr double kLeastFall = 0.02;

/// ‖C‖ over what was written, after each of the tokens end − 1 … question: it changes with visits alone.
std::vector<double> kept_by_token(const Survival& survival, const NeedleFate& fate, const NeedleQuestion& question) {
  std::vector<double> kept;
  std::size_t next = 0;
  double now = 0;
  for (std::int64_t t = question.begin; t <= question.question; ++t) {
    for (; next < survival.token.size() && survival.token[next] <= t; ++next) now = survival.kept[next];
    if (t >= question.end - 1) kept.push_back(now / fate.written);
  }
  return kept;
}

NeedleStory::Curve curve_of(const Survival& survival, const NeedleFate& fate, const NeedleQuestion& question) {
  NeedleStory::Curve curve{.slot = fate.slot,
                           .head = fate.head,
                           .written = fate.written,
                           .read_share = fate.read ? fate.read_share : std::numeric_limits<double>::quiet_NaN(),
                           .token = {},
                           .kept = {}};
  const auto place_of = [&](std::int64_t token) { return std::ranges::upper_bound(survival.token, token) - survival.token.begin(); };
  const std::ptrdiff_t first = place_of(question.end - 1) - 1, end = place_of(question.question);
  const std::ptrdiff_t step = std::max<std::ptrdiff_t>(1, (end - first - 1 + kPoints - 2) / (kPoints - 1));
  for (std::ptrdiff_t j = first; j < end; j = j + 1 == end ? end : std::min(j + step, end - 1)) {  // ends with end − 1
    curve.token.push_back(survival.token[static_cast<std::size_t>(j)]);
    curve.kept.push_back(static_cast<float>(survival.kept[static_cast<std::size_t>(j)] / fate.written));
  }
  return curve;
}

/// Squares of what was written weigh the heads, as in `summary`.
NeedleStory::LayerFate layer_fate(const std::vector<NeedlePlace>& places, const NeedleQuestion& question) {
  const NeedleSummary parts = summary(fates_of(places));
  NeedleStory::LayerFate layer{.has_memory = !places.empty(),
                               .clear = parts.readable,
                               .decayed = parts.decayed,
                               .erased = parts.erased,
                               .overwritten = parts.overwritten,
                               .misrouted = parts.misrouted,
                               .kept = {},
                               .curves = {},
                               .places = std::ssize(places)};
  double weight = 0;
  std::int64_t reads = 0;
  for (const NeedlePlace& place : places) weight += place.fate.written * place.fate.written;
  std::vector<double> kept(places.empty() ? 0 : static_cast<std::size_t>(question.question - question.end + 2));
  for (const auto& [fate, left] : places) {
    const std::vector<double> of_head = kept_by_token(left, fate, question);
    for (std::size_t t = 0; t < kept.size(); ++t) kept[t] += fate.written * fate.written / weight * of_head[t];
    if (layer.curves.size() < kCurves) layer.curves.push_back(curve_of(left, fate, question));
    if (fate.read && (reads++ == 0 || fate.read_share > layer.read_share)) {
      layer.read_share = fate.read_share;
      layer.read_slot = fate.slot;
      layer.read_head = fate.head;
    }
  }
  layer.kept.assign(kept.begin(), kept.end());
  return layer;
}

/// The mean over the layers that the needle wrote to.
std::vector<float> mean_kept(const std::vector<NeedleStory::LayerFate>& layers) {
  std::vector<double> sum;
  const auto count = static_cast<double>(std::ranges::count(layers, true, &NeedleStory::LayerFate::has_memory));
  for (const NeedleStory::LayerFate& layer : layers) {
    sum.resize(std::max(sum.size(), layer.kept.size()));
    for (std::size_t t = 0; t < layer.kept.size(); ++t) sum[t] += layer.kept[t] / count;
  }
  return {sum.begin(), sum.end()};
}

/// kept[0] is of token `first`.
std::vector<NeedleStory::Fall> largest_falls(std::span<const float> kept, std::int64_t first) {
  std::vector<NeedleStory::Fall> falls;
  for (std::size_t t = 1; t < kept.size(); ++t) {
    const double by = kept[t - 1] - kept[t];
    if (by >= kLeastFall) falls.push_back({first + static_cast<std::int64_t>(t), by});
  }
  std::ranges::stable_sort(falls, std::ranges::greater{}, &NeedleStory::Fall::by);
  falls.resize(std::min(falls.size(), kFalls));
  std::ranges::sort(falls, {}, &NeedleStory::Fall::token);
  return falls;
}

}  // namespace

NeedleStory answer(const NeedleQuestion& question, Evidence& evidence) {
  if (question.begin < 0 || question.end <= question.begin || question.question < question.end)
    throw Error("nothing is asked after the needle");
  if (question.question >= evidence.tokens()) throw Error("the question has not been read yet");
  const auto layers = std::ssize(evidence.info().model.layers);
  NeedleStory story;
  std::vector<std::vector<NeedleFate>> fates(static_cast<std::size_t>(layers));
  for (std::int64_t l = 0; l < layers; ++l) {
    const auto tell = [&](double share) { evidence.tell((static_cast<double>(l) + share) / static_cast<double>(layers)); };
    tell(0);
    const std::vector<NeedlePlace> places = needle_places(l, {question.begin, question.end}, question.question, 1, evidence, tell);
    story.layers.push_back(layer_fate(places, question));
    fates[static_cast<std::size_t>(l)] = fates_of(places);
  }
  const NeedleVerdict all = verdict(fates);
  story.all = {.has_memory = std::ranges::any_of(story.layers, &NeedleStory::LayerFate::has_memory),
               .clear = all.summary.readable,
               .decayed = all.summary.decayed,
               .erased = all.summary.erased,
               .overwritten = all.summary.overwritten,
               .misrouted = all.summary.misrouted,
               .kept = mean_kept(story.layers),
               .curves = {}};
  if (all.read) story.all.read_share = all.read->share;
  for (const NeedleStory::LayerFate& layer : story.layers) story.all.places += layer.places;
  for (std::size_t i = 0; i < std::min(all.losses.size(), kCauses); ++i) {
    const NeedleLoss& loss = all.losses[i];
    story.causes.push_back({loss.layer, loss.slot, loss.head, std::string(name_of(loss.cause)), loss.lost, loss.token});
  }
  story.falls = largest_falls(story.all.kept, question.end - 1);
  return story;
}

}  // namespace statescope
