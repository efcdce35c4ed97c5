#include "datasets/prose.h"

#include "tests/datasets/input_file.h"

namespace statescope::prose_test {
using test::InputFile;
using Places = std::vector<std::size_t>;

TEST_CASE("sentences begin after a full stop, an exclamation or a question mark, and a space") {
  CHECK(sentence_boundaries("") == Places{0});
  CHECK(sentence_boundaries("a") == Places{0, 1});
  CHECK(sentence_boundaries("A. B? C! D.E, F") == Places{0, 3, 6, 9, 15});
  CHECK(sentence_boundaries("A. ") == Places{0, 3});
  CHECK(sentence_boundaries(". a") == Places{0, 2, 3});
}

TEST_CASE("of each book, evaluation has the last tenth and training the rest") {
  const InputFile book("b.txt", "\n One. Two two two two. \t\r\nThree three three three three three three.  Four! Five.\n");
  CHECK(prose(book.folder, Split::training) == "One. Two two two two. Three three three three three three three. Four! ");
  CHECK(prose(book.folder, Split::evaluation) == "Five.");
  book.add("a.txt", "Aa aa aa aa aa aa aa aa. B.");
  book.add("README.md", "Not a book.");
  CHECK(prose(book.folder, Split::evaluation) == "B. Five.");
  CHECK(prose(book.folder, Split::training) ==
        "Aa aa aa aa aa aa aa aa.  One. Two two two two. Three three three three three three three. Four! ");
}

TEST_CASE("a text file is taken whole") {
  const InputFile text("b.txt", "\n One. Two.\t\r\nThree. ");
  CHECK(prose(text.path, Split::training) == "One. Two. Three.");
  CHECK(prose(text.path, Split::evaluation) == "One. Two. Three.");
}

TEST_CASE("books that cannot be read") {
  CHECK_THROWS_WITH(prose("/nonexistent.txt", Split::training), "/nonexistent.txt: cannot be opened: No such file or directory");
  const InputFile note("note.md", "");
  CHECK_THROWS_WITH(prose(note.folder, Split::training), note.folder.string() + ": has no .txt file");
  CHECK(test::error_of(InputFile("b.txt", "a\xff"), [](const auto& path) { prose(path, Split::training); }).ends_with("is not UTF-8 text"));
  CHECK(prose(InputFile("b.txt", " \n ").path, Split::evaluation).empty());
}

}  // namespace statescope::prose_test
