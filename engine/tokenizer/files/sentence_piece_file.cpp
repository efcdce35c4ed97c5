#include "engine/tokenizer/files/sentence_piece_file.h"

#include <fmt/format.h>

#include <bit>

#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// The fields of a protobuf message, one after the other (protobuf.dev, "Encoding").
class Message {
 public:
  explicit Message(std::string_view message) : rest_(message) {}

  int field = 0;
  std::uint64_t number = 0;  // of a varint, or the bits of a fixed one
  std::string_view bytes;    // of a text or a message

  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    field = static_cast<int>(key >> 3 & 0x1FFFFFFF);
    number = 0;
    bytes = {};
    switch (key & 7) {
      case 0:
        number = varint();
        break;
      case 1:
        number = fixed(8);
        break;
      case 2:
        bytes = take(varint());
        break;
      case 5:
        number = fixed(4);
        break;
      default:
        throw Error("is damaged: a field of no known kind");
    }
    return true;
  }
  float as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(number)); }
  std::int64_t as_int() const { return static_cast<std::int32_t>(number); }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    throw Error("is damaged: a number without an end");
  }
  std::uint64_t fixed(int count) {
    const std::string_view raw = take(static_cast<std::uint64_t>(count));
    std::uint64_t value = 0;
    for (int i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[static_cast<std::size_t>(i)]);
    return value;
  }
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw Error("is cut off or damaged");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

SentencePieceFile::Piece read_piece(std::string_view bytes) {
  SentencePieceFile::Piece piece;
  for (Message message(bytes); message.next();) {
    if (message.field == 1) piece.text = message.bytes;
    if (message.field == 2) piece.score = message.as_float();
    if (message.field != 3) continue;
    if (message.number < 1 || message.number > 6) throw Error("is damaged: a piece of no known type");
    piece.type = static_cast<SentencePieceFile::Type>(message.number);
  }
  return piece;
}

void read_trainer(SentencePieceFile& file, std::string_view bytes) {
  std::int64_t model = 1;
  for (Message message(bytes); message.next();) {
    switch (message.field) {
      case 3:
        model = message.as_int();
        break;
      case 24:
        file.space_is_suffix = message.number != 0;
        break;
      case 35:
        file.byte_fallback = message.number != 0;
        break;
      case 40:
        file.unknown = message.as_int();
        break;
      case 41:
        file.begin = message.as_int();
        break;
      case 42:
        file.end = message.as_int();
        break;
      case 44:
        file.unknown_surface = message.bytes;
        break;
      default:
        break;
    }
  }
  if (model != 1 && model != 2) throw Error(fmt::format("trainer_spec: model_type {} is not supported (1: Unigram, 2: BPE)", model));
  file.is_bpe = model == 2;
}

void read_normalizer(SentencePieceFile& file, std::string_view bytes) {
  for (Message message(bytes); message.next();) {
    switch (message.field) {
      case 2:
        file.charsmap = message.bytes;
        break;
      case 3:
        file.add_dummy_prefix = message.number != 0;
        break;
      case 4:
        file.remove_extra_spaces = message.number != 0;
        break;
      case 5:
        file.escape_spaces = message.number != 0;
        break;
      default:
        break;
    }
  }
}

}  // namespace

SentencePieceFile parse_sentence_piece_file(std::string_view bytes) {
  SentencePieceFile file;
  for (Message message(bytes); message.next();) {
    if (message.field == 1) file.pieces.push_back(read_piece(message.bytes));
    if (message.field == 2) read_trainer(file, message.bytes);
    if (message.field == 3) read_normalizer(file, message.bytes);
  }
  if (file.pieces.empty()) throw Error("has no pieces");
  return file;
}

}  // namespace statescope
