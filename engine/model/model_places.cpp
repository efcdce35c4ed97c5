// A model on one device or several: what each of them computes, and how the residual stream goes from one to the next.
#include <algorithm>
#include <list>

#include "engine/model/model.h"

namespace statescope {

Model::Model(std::shared_ptr<const Loaded> loaded, std::shared_ptr<Backend> backend)
    : loaded_(std::move(loaded)), backend_(std::move(backend)), plan_(loaded_->plan), stack_(loaded_->stack) {
  const std::vector<std::size_t>& of_layer = loaded_->placement.of_layer;
  if (Devices* const devices = backend_->devices()) {
    const std::size_t last = of_layer.empty() ? Devices::home : std::ranges::max(of_layer);
    while (devices->all().size() <= last && devices->open_next()) continue;
    if (last == Devices::home) {
      const std::shared_ptr<Backend> alone = devices->all()[Devices::home].backend;
      backend_ = alone;
    }
  }
  if (Devices* const devices = backend_->devices()) {
    for (std::size_t i = 0; i < devices->all().size(); ++i) places_.push_back(std::make_unique<Place>(devices->at(i), i));
  } else {
    places_.push_back(std::make_unique<Place>(*backend_, Devices::home));
  }
  for (std::int64_t layer = 0; layer < layers(); ++layer) {
    const std::size_t place = place_of(layer).number;
    if (stretches_.empty() || stretches_.back().place != place) stretches_.push_back({place, layer, layer});
    stretches_.back().end = layer + 1;
  }
  if (stretches_.empty() || stretches_.back().place != Devices::home) stretches_.push_back({Devices::home, layers(), layers()});
}

Model::Place& Model::place_of(std::int64_t layer) const {
  const std::vector<std::size_t>& of_layer = loaded_->placement.of_layer;
  return places_.size() == 1 || layer >= layers() ? home() : *places_[of_layer[static_cast<std::size_t>(layer)]];
}

std::size_t Model::free_bytes() const {
  if (places_.size() == 1) return backend_->free_bytes();
  // Where a device holds n of the streams, a recording of r bytes takes r · n / streams there.
  std::vector<std::size_t> held(places_.size());
  for (std::int64_t stream = 0; stream < streams(); ++stream) ++held[place_of(stream).number];
  std::size_t least = 0;
  for (const std::unique_ptr<Place>& place : places_) {
    const std::size_t n = held[place->number];
    if (n == 0) continue;
    const std::size_t all = place->backend.free_bytes() / n * static_cast<std::size_t>(streams());
    least = least == 0 ? all : std::min(least, all);
  }
  return least;
}

/// x where a device computes: x itself, or a copy in its scratch memory.
template <class T>
T Model::brought(Place& place, T x) {
  if (places_.size() == 1 || !x || backend_->devices()->where(x.data) == place.number) return x;
  const Tensor there = place.workspace.tensor(x.shape, x.dtype);
  backend_->copy(there, x);
  return there;
}

/// How many tokens of a pass go from device to device together: all of them, unless several devices can be kept busy by turns.
std::int64_t Model::piece_of(std::int64_t tokens, const ForwardOptions& options, const Observer* observer) const {
  const bool side_by_side =
      places_.size() > 1 && std::ranges::all_of(places_, [](const auto& place) { return place->backend.has_own_memory(); });
  if (!side_by_side || tokens == 1 || (observer && !observer->takes_pieces())) return tokens;
  if (options.piece > 0) return std::min(options.piece, tokens);
  constexpr std::int64_t pieces = 8, least = 512, of_expert = 64;
  std::int64_t fewest = least;  // fewer leave a device less to do at once; an expert's weights are read for each piece
  for (const LayerPlan& layer : plan_.layers) {
    if (layer.experts) fewest = std::max(fewest, of_expert * layer.experts->count / layer.experts->chosen);
  }
  const std::int64_t most = std::max<std::int64_t>(2048, 2 * fewest), chunk = std::max<std::int64_t>(options.chunk_size, 1);
  const std::int64_t wanted = std::clamp(tokens / pieces, fewest, most);
  return std::min((wanted + chunk - 1) / chunk * chunk, tokens);  // cut between chunks
}

/// Where some tokens of a pass are on their way.
struct Model::Piece {
  std::int64_t begin;
  Tensor at_home, now;
};

/// A piece through the blocks of one device.
void Model::pass_on(const Stretch& stretch, const ForwardOptions& options, Piece& piece, const InStretch& work) {
  Place& at = *places_[stretch.place];
  const std::int64_t n = piece.at_home.rows();
  const Tensor entering = stretch.place == Devices::home ? piece.at_home : at.workspace.tensor(piece.at_home.shape);
  if (entering.data != piece.now.data) backend_->copy(entering, piece.now);
  piece.now = entering;
  ForwardOptions here = options;
  if (here.companion) here.companion = here.companion.slice(piece.begin, n);
  std::vector<Tensor> entered(options.entered.begin(), options.entered.end());
  for (Tensor& rows : entered) {
    if (rows) rows = rows.slice(piece.begin, n);
  }
  for (std::int64_t layer = stretch.first; layer < stretch.end; ++layer) {
    const Stack::Block& block = stack_.blocks[static_cast<std::size_t>(layer)];
    if (!block.reads_companion) continue;
    if (block.companion_layer < 0) here.companion = brought(at, here.companion);
    if (block.companion_layer < 0 || entered.empty()) continue;
    Tensor& other = entered[static_cast<std::size_t>(block.companion_layer)];
    if (block.companion_layer < stretch.first) other = brought(at, other);
  }
  here.entered = entered;
  work(stretch, piece.begin, here, piece.now);
}

/// x [T, D], at home, through the blocks from `first` on, from device to device, and home again, so many tokens at a time: `work` does
/// those of one device.
void Model::go(std::int64_t first, const ForwardOptions& options, Tensor x, std::int64_t piece, const InStretch& work) {
  std::list<Workspace::Mark> marks;
  for (const std::unique_ptr<Place>& place : places_) marks.emplace_back(place->workspace);
  std::vector<Stretch> way;
  for (Stretch stretch : stretches_) {
    if (stretch.end <= first && stretch.first != layers()) continue;
    stretch.first = std::max(first, stretch.first);
    way.push_back(stretch);
  }
  std::vector<Piece> pieces;
  for (std::int64_t begin = 0; begin < x.rows(); begin += piece) {
    const Tensor rows = x.slice(begin, std::min(piece, x.rows() - begin));
    pieces.push_back({begin, rows, rows});
  }
  // In each turn every piece that is on its way goes on by one device, the foremost first: a copy waits for all that its source was given.
  const std::int64_t stages = std::ssize(way), count = std::ssize(pieces);
  for (std::int64_t turn = 0; turn < count + stages - 1; ++turn) {
    for (std::int64_t i = std::max<std::int64_t>(0, turn - stages + 1); i <= std::min(turn, count - 1); ++i)
      pass_on(way[static_cast<std::size_t>(turn - i)], options, pieces[static_cast<std::size_t>(i)], work);
  }
}

template Tensor Model::brought(Place& place, Tensor x);
template ConstTensor Model::brought(Place& place, ConstTensor x);

}  // namespace statescope
