// A model on one device or several: what each of them computes, and how the residual stream goes from one to the next.
#include <algorithm>
#include <list>

#include "engine/model/model.h"

namespace statescope {

Model::Model(std::shared_ptr<const Loaded> loaded, std::shared_ptr<Backend> backend)
    : loaded_(std::move(loaded)), backend_(std::move(backend)), plan_(loaded_->plan), stack_(loaded_->stack) {
  const std::vector<std::size_t>& of_layer = loaded_->placement.of_layer;
  if (Devices* const devices = backend_->devices(); devices && std::ranges::all_of(of_layer, [](auto d) { return d == Devices::home; })) {
    const std::shared_ptr<Backend> alone = devices->all()[Devices::home].backend;
    backend_ = alone;
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

/// x [T, D], at home, through the blocks from `first` on, from device to device, and home again: `work` does those of one device.
void Model::go(std::int64_t first, const ForwardOptions& options, Tensor x, const InStretch& work) {
  std::list<Workspace::Mark> marks;
  for (const std::unique_ptr<Place>& place : places_) marks.emplace_back(place->workspace);
  Tensor now = x;
  for (Stretch stretch : stretches_) {
    if (stretch.end <= first && stretch.first != layers()) continue;
    stretch.first = std::max(first, stretch.first);
    Place& at = *places_[stretch.place];
    const Tensor entering = stretch.place == Devices::home ? x : at.workspace.tensor(x.shape);
    if (entering.data != now.data) backend_->copy(entering, now);
    now = entering;
    ForwardOptions here = options;
    std::vector<Tensor> entered(options.entered.begin(), options.entered.end());
    for (std::int64_t layer = stretch.first; layer < stretch.end; ++layer) {
      const Stack::Block& block = stack_.blocks[static_cast<std::size_t>(layer)];
      if (!block.reads_companion) continue;
      if (block.companion_layer < 0) here.companion = brought(at, here.companion);
      if (block.companion_layer < 0 || entered.empty()) continue;
      Tensor& other = entered[static_cast<std::size_t>(block.companion_layer)];
      if (block.companion_layer < stretch.first) other = brought(at, other);
    }
    here.entered = entered;
    work(stretch, here, now);
  }
}

template Tensor Model::brought(Place& place, Tensor x);
template ConstTensor Model::brought(Place& place, ConstTensor x);

}  // namespace statescope
