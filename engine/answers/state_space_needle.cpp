// What became of a needle in a state space that is the same for every token (spec §12.12).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/answers/state_space.h"

namespace statescope {
namespace {

double product(std::span<const double> a, std::span<const double> b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// Σ of squares over the channels, of what is left of the needle: once a token has let it decay, once it has written, behind edits.
struct Sizes {
  double decayed = 0, written = 0, edited = 0;
  bool replaced = false;
};

/// In one layer, channel by channel.
class Needle {
 public:
  Needle(const StateSpaceRun& run, TokenRange needle, std::int64_t question) : run_(run), needle_(needle), question_(question) {
    sizes_.resize(static_cast<std::size_t>(question - needle.begin + 1));
    over_.added.resize(static_cast<std::size_t>(question - needle.end + 1));
    over_.token.resize(over_.added.size());
    std::iota(over_.token.begin(), over_.token.end(), static_cast<std::int32_t>(needle.end));
  }

  void add(std::int64_t channel) {
    const ChannelRule rule(run_.space, channel);
    const std::vector<double> left = follow(rule, channel);
    interfere(rule, channel, left);
    read(rule, channel);
  }
  Survival survival() const {
    Survival all;
    double before = 0;
    for (const Sizes& squares : sizes_) {
      const double decayed = std::sqrt(squares.decayed), written = std::sqrt(squares.written), kept = std::sqrt(squares.edited);
      all.token.push_back(static_cast<std::int32_t>(needle_.begin + std::ssize(all.token)));
      all.decayed.push_back(before - decayed + (squares.replaced ? written : written - kept));
      all.erased.push_back(0);
      all.written.push_back(written - decayed + (squares.replaced ? kept : 0));
      all.kept.push_back(before = kept);
    }
    return all;
  }
  std::optional<PlaceRead> read() const {
    if (!reads_) return {};
    PlaceRead read{all_ == 0 ? 0 : shared_ / all_, over_};
    const double left = std::sqrt(sizes_.back().edited);
    const auto along = [left](double squares) { return left > 0 ? std::sqrt(squares) / left : 0; };
    read.over.needle = along(over_.needle);
    read.over.later = along(over_.later);
    std::ranges::transform(over_.added, read.over.added.begin(), along);
    return read;
  }

 private:
  /// Returns C, what is left of the needle behind the question.
  std::vector<double> follow(const ChannelRule& rule, std::int64_t channel) {
    std::vector<double> C(rule.B.size());
    for (std::int64_t t = needle_.begin; t <= question_; ++t) {
      Sizes& squares = sizes_[static_cast<std::size_t>(t - needle_.begin)];
      rule.advance(C);
      squares.decayed += product(C, C);
      for (std::size_t i = 0; t < needle_.end && i < C.size(); ++i) C[i] += rule.B[i] * run_.entered(t, channel);
      squares.written += product(C, C);
      for (const StateEdit& edit : run_.edits) {
        if (edit.token != t) continue;
        squares.replaced = edit.replaced.has_value();
        const std::vector<double> put =
            t < needle_.end && edit.replaced ? states_of_channel(*edit.replaced, channel) : std::vector<double>(C.size());
        for (std::size_t i = 0; i < C.size(); ++i) C[i] = edit.replaced ? put[i] : C[i] * edit.factors[i % edit.factors.size()];
      }
      squares.edited += product(C, C);
    }
    return C;
  }
  /// ĈᵀX of later tokens' part X, and of what is left itself: a channel is read by itself, so the diagonal.
  void interfere(const ChannelRule& rule, std::int64_t channel, const std::vector<double>& C) {
    double later = 0;
    run_.walk_back(rule, channel, question_, true, needle_.end, [&](std::int64_t s, const std::vector<double>& X, bool is_token) {
      const double added = product(C, X) * (is_token ? run_.entered(s, channel) : 1);
      over_.added[static_cast<std::size_t>(s - needle_.end)] += added * added;
      later += added;
    });
    over_.needle += std::pow(product(C, C), 2);
    over_.later += later * later;
  }
  /// ⟨o_C, o⟩ and ⟨o, o⟩
  void read(const ChannelRule& rule, std::int64_t channel) {
    double all = 0, of_needle = 0;
    run_.walk_back(rule, channel, question_, false, 0, [&](std::int64_t s, const std::vector<double>& X, bool is_token) {
      const double part = product(rule.C, X) * (is_token ? run_.entered(s, channel) : 1);
      all += part;
      if (s >= needle_.begin && s < needle_.end) of_needle += part;
    });
    all_ += all * all;
    shared_ += of_needle * all;
    reads_ = reads_ || product(rule.C, rule.C) > 0;
  }

  const StateSpaceRun& run_;
  TokenRange needle_;
  std::int64_t question_;
  std::vector<Sizes> sizes_;  // of tokens needle.begin … question
  Interference over_;         // of squares, and of C in the place of Ĉ
  double all_ = 0, shared_ = 0;
  bool reads_ = false;
};

}  // namespace

std::vector<NeedlePlace> needle_in_state_space(std::int64_t layer, TokenRange needle, std::int64_t question, std::size_t events,
                                               Evidence& evidence, const std::function<void(double fraction)>& tell) {
  const StateSpaceRun run(layer, evidence);
  Needle followed(run, needle, question);
  for (std::int64_t c = 0; c < run.space.channels; ++c) {
    followed.add(c);
    if (tell) tell(static_cast<double>(c + 1) / static_cast<double>(run.space.channels));
  }
  Survival left = followed.survival();
  if (!(left.kept[static_cast<std::size_t>(needle.end - 1 - needle.begin)] > 0)) return {};
  NeedleFate fate = fate_of(left, followed.read(), needle, question, events);
  return {{std::move(fate), std::move(left)}};
}

}  // namespace statescope
