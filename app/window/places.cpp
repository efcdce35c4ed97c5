#include "app/window/places.h"

namespace statescope {
namespace {

constexpr std::int64_t one_move_ms = 600;  // between two steps of the same move
constexpr std::size_t most_places = 500;

bool same_place(const Cursor& a, const Cursor& b) {
  return a.token == b.token && a.layer == b.layer && a.head == b.head && a.slot == b.slot && a.reference == b.reference;
}

}  // namespace

void Places::arrive(const Cursor& place, std::int64_t now_ms, bool played) {
  const bool same = !places_.empty() && same_place(places_[at_], place);
  const bool goes_on = moving_ && (played ? played_ : !played_ && now_ms - last_ms_ < one_move_ms);
  if (same || goes_on) {
    places_[at_] = place;
  } else {
    if (!places_.empty()) places_.resize(at_ + 1);
    if (places_.size() == most_places) places_.erase(places_.begin());
    moving_ = !places_.empty();
    places_.push_back(place);
    at_ = places_.size() - 1;
  }
  if (same) return;
  played_ = played;
  last_ms_ = now_ms;
}

std::optional<Cursor> Places::back() {
  moving_ = false;
  if (at_ == 0) return {};
  return places_[--at_];
}

std::optional<Cursor> Places::forth() {
  moving_ = false;
  if (at_ + 1 >= places_.size()) return {};
  return places_[++at_];
}

void Places::clear() { *this = {}; }

}  // namespace statescope
