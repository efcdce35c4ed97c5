// Which blocks or tokens the softmax layers that choose attend to, token by token.
#pragma once

#include <string>
#include <vector>

#include "views/matrix.h"

namespace statescope {

struct ChoicesData {
  static constexpr std::int64_t kMostPlaces = 512;
  Message message;           // instead of all else
  std::string place;         // "layer 2, head 1"
  std::string title;         // the answer in a sentence
  TokenAxis tokens;          // [n] who chooses
  std::int64_t size = 1;     // tokens of a block; 1: single tokens are chosen
  std::int64_t each = 1;     // tokens of a place: of the map's row
  std::vector<bool> needle;  // [places] there is one of its tokens
  std::vector<float> score;  // [places, n] the largest of what is chosen there; NaN: nothing; empty: the layer tells none
  Pyramid cells;             // [places, n] 1: chosen

  // By the cursor's token, the largest score first, where the layer tells them.
  struct Chosen {
    std::int64_t from = 0, to = 0;  // tokens
    float score = 0;
    bool own = false;  // the cursor's token is among them
  };
  std::vector<Chosen> chosen;

  std::int64_t places() const { return cells.rows(); }
};

ChoicesData build_choices(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings);
void draw(const ChoicesData& data, Canvas& canvas, Rect area, const Frame& frame);

/// "token 12 “␣anna”", "tokens 16 to 31"
std::string words_of(const ChoicesData& data, std::int64_t from, std::int64_t to);

std::unique_ptr<View> make_choices();

}  // namespace statescope
