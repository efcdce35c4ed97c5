// The tokenizer of a tokenizer.json: added tokens, normalizer, pre-tokenizer, model, post-processor; decoders for the way back.
#pragma once

#include <memory>
#include <vector>

#include "engine/tokenizer/pipeline/added_tokens.h"
#include "engine/tokenizer/pipeline/decoders.h"
#include "engine/tokenizer/pipeline/normalizers.h"
#include "engine/tokenizer/pipeline/post_processor.h"
#include "engine/tokenizer/pipeline/pre_tokenizers.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabularies/model.h"
#include "engine/tokenizer/vocabularies/word_cache.h"

namespace statescope {

struct PipelineParts {
  TokenizerInfo info;  // size and specials are filled in
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<PieceModel> model;
  bool takes_bytes = false;  // the model's words are bytes, as a byte-level pre-tokenizer leaves them
  AddedTokens added;
  std::vector<std::unique_ptr<Normalizer>> normalizers;
  std::vector<std::unique_ptr<PreTokenizer>> pre_tokenizers;
  PostProcessor post_processor;
  std::vector<std::unique_ptr<Decoder>> decoders;  // none: pieces are joined by spaces
};

class Pipeline final : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts);

  Encoding encode(std::string_view text, const EncodeOptions& options) const override;
  std::string text_of(std::int32_t id) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_specials) const override;
  std::optional<std::string> bytes_of(std::int32_t id, bool skip_specials) const override;

 private:
  struct Encoder;

  AlignedText normal(AlignedText text) const;
  CutText cut(AlignedText text) const;
  /// Nothing for an id that has none, or that is left out.
  std::optional<std::string_view> piece_of(std::int32_t id, bool skip_specials) const;

  PipelineParts parts_;
  mutable WordCaches caches_;
};

}  // namespace statescope
