// Words that a reader sees, in the reader's language: English, or what the program's translator makes of it.
//
//   Views::tr("no token yet")                        a text
//   Views::tr("head {} of {}", head, heads)          a pattern of fmt; a translation may have its places in another order, {1} before {0}
//   QT_TRANSLATE_NOOP("Views", "decay")              in a table, whose rows Views::tr(row.name) translates when they are shown
//
// Qt's lupdate finds them by these names; the English stands there as a literal, and no other literal right behind it: lupdate would take
// that for a remark. A sentence is one pattern, never glued together, and one for each number that languages tell apart. Names in a
// checkpoint, tokens and symbols are data: not translated. Files of numbers are English (InEnglish).
#pragma once

#include <fmt/format.h>

#include <string>

#ifndef QT_TRANSLATE_NOOP
#define QT_TRANSLATE_NOOP(context, text) text
#endif

namespace statescope {

/// Gives the text in the reader's language, or the English one where it has no other. Called on any thread.
using Translator = std::string (*)(const char* context, const char* english);
/// Null: English. Set before there is a second thread that draws or builds.
void set_translator(Translator translator);

/// While one lives, words of its thread are English: figures for papers are the same wherever they are made.
class InEnglish {
 public:
  InEnglish();
  ~InEnglish();
  InEnglish(const InEnglish&) = delete;
  InEnglish& operator=(const InEnglish&) = delete;
};

std::string words(const char* context, const char* english);
/// The pattern with its places filled: in English also where the translation lacks one or has one that no argument fits.
std::string filled_words(const char* context, fmt::string_view english, fmt::format_args arguments);

/// The texts of a context: where in the program translators meet them.
template <class Context>
struct Words {
  static std::string tr(const char* english) { return words(Context::name, english); }
  /// The English pattern is checked where it is compiled.
  template <class... Arguments>
  requires(sizeof...(Arguments) > 0) static std::string tr(fmt::format_string<Arguments...> english, Arguments&&... arguments) {
    return filled_words(Context::name, english, fmt::make_format_args(arguments...));
  }
};
// By a macro, for lupdate, which does not expand it, then takes the names of these classes for the contexts.
#define STATESCOPE_WORDS(context)                 \
  struct context##Name {                          \
    static constexpr const char* name = #context; \
  };                                              \
  using context = Words<context##Name>
STATESCOPE_WORDS(Views);    // what views draw and say
STATESCOPE_WORDS(Engine);   // what the engine says and others show: it knows of no other language
STATESCOPE_WORDS(Figures);  // remarks on figures
#undef STATESCOPE_WORDS

}  // namespace statescope
