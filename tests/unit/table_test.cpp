// Text in so many columns: paragraphs, tables, Markdown.
#include "tools/table.h"

#include "tests/catch.h"
#include "tools/terminal.h"

using namespace ttc;

TEST_CASE("text is broken at spaces, and words only where they must be") {
  CHECK(wrapped("", 10).empty());
  CHECK(wrapped("one two", 7) == "one two");
  CHECK(wrapped("one two three", 7) == "one two\nthree");
  CHECK(wrapped("one two three", 8, 2) == "one two\n  three");
  CHECK(wrapped("abcdefgh", 3) == "abc\ndef\ngh");
  CHECK(wrapped("a bcdefgh", 3) == "a\nbcd\nefg\nh");
  CHECK(wrapped(" abcd", 3) == " ab\ncd");  // the blank in front separates no words
}

TEST_CASE("no character is cut") {
  CHECK(wrapped("\u00e4\u00e4\u00e4", 3) == "\u00e4\n\u00e4\n\u00e4");
  CHECK(wrapped("\u20ac\u20ac", 4) == "\u20ac\n\u20ac");
}

TEST_CASE("a table's columns are as wide as their widest cell") {
  Table table({"name", ">count"});
  CHECK(table.empty());
  table.row({"a", "1"});
  table.row({"longer", "12345678"});
  table.row({"short row"});
  CHECK_FALSE(table.empty());
  CHECK(table.text(1, 0) ==
        " name          count\n"
        " a                 1\n"
        " longer     12345678\n"
        " short row\n");
  CHECK(table.markdown() == "| name | count |\n|---|--:|\n| a | 1 |\n| longer | 12345678 |\n| short row |  |\n");
}

TEST_CASE("on a narrow terminal the widest columns of text are broken into lines") {
  Table table({"op", ">bytes", "reason"});
  table.row({"aten.add.Tensor", "123", "the device has no kernel for it"});
  CHECK(table.text(0, 50) ==
        "op               bytes  reason\n"
        "aten.add.Tensor    123  the device has no kernel\n"
        "                        for it\n");
  CHECK(table.text(0, 80) == table.text(0, 0));
  CHECK(table.text(0, 37) ==
        "op              bytes  reason\n"
        "aten.add.Tenso    123  the device has\n"
        "r                      no kernel for\n"
        "                       it\n");
  // Numbers stay whole, and no column gets narrower than 8: there the terminal's own breaking is the lesser evil.
  CHECK(table.text(0, 10) ==
        "op        bytes  reason\n"
        "aten.add    123  the\n"
        ".Tensor          device\n"
        "                 has no\n"
        "                 kernel\n"
        "                 for it\n");
}

TEST_CASE("a bar in a cell is no column of Markdown") {
  Table table({"a|b"});
  table.row({"x|y"});
  CHECK(table.markdown() == "| a\\|b |\n|---|\n| x\\|y |\n");
}

TEST_CASE("numbers and sizes as text") {
  CHECK(number_text(0.999876, 4) == "0.9999");
  CHECK(number_text(1.23e-5, 2) == "1.2e-05");
  CHECK(number_text(133440, 4) == "133440");
  CHECK(number_text(-5558.6, 3) == "-5559");
  CHECK(number_text(99.7, 2) == "100");
  CHECK(number_text(99.4, 2) == "99");
  CHECK(number_text(1e20, 4) == "1e+20");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.0 KiB");
  CHECK(bytes_text(1.5 * 1024 * 1024) == "1.5 MiB");
  CHECK(bytes_text(5000.0 * 1024 * 1024 * 1024 * 1024) == "5000.0 TiB");
}
