// What every message passes through: text that is valid UTF-8 whatever bytes it was made of; globs; SHA-256; JSON text.
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "support/error.h"
#include "support/glob.h"
#include "support/integers.h"
#include "support/json_text.h"
#include "support/printable.h"
#include "support/progress.h"
#include "support/sha256.h"
#include "tests/catch.h"

using namespace ttc;

namespace {

// nlohmann's own check, which throws for anything that is no UTF-8.
bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

std::string through_buffer(const std::vector<std::string>& pieces) {
  std::stringbuf out;
  {
    PrintableBuffer buffer(&out);
    std::ostream stream(&buffer);
    for (const std::string& piece : pieces) stream << piece << std::flush;
  }
  return out.str();
}

}  // namespace

TEST_CASE("printable escapes what is no UTF-8, and controls") {
  const std::map<std::string, std::string> cases = {
      {"plain, \\ too\n\t", "plain, \\ too\n\t"},
      {"Gr\u00fc\u00dfe \u4e16 \U0001F600", "Gr\u00fc\u00dfe \u4e16 \U0001F600"},
      {"\xff.pt2", "\\xff.pt2"},
      {"a\xc3", "a\\xc3"},                           // cut off
      {"\xc0\xaf", "\\xc0\\xaf"},                    // overlong
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},           // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond U+10FFFF
      {"\xe4\xb8z", "\\xe4\\xb8z"},
      {"\x1b[31mred\x7f\r", "\\x1b[31mred\\x7f\\x0d"},
      {std::string("a\0b", 3), "a\\x00b"},
  };
  for (const auto& [raw, wanted] : cases) {
    CHECK(printable(raw) == wanted);
    CHECK(printable(wanted) == wanted);
  }
}

TEST_CASE("printable gives valid UTF-8 for any bytes, and leaves valid text alone") {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string raw;
    for (std::size_t n = random() % 12; n > 0; --n)
      raw += static_cast<char>(random() % 2 ? random() : 0xC0 + random() % 64);
    const std::string text = printable(raw);
    REQUIRE(is_utf8(text));
    REQUIRE(printable(text) == text);
    if (is_utf8(raw) && raw.find_first_of("\x7f") == raw.npos &&
        std::none_of(raw.begin(), raw.end(), [](unsigned char c) { return c < 0x20; }))
      REQUIRE(text == raw);
  }
}

TEST_CASE("a stream passes sequences that come in pieces, and escapes what never ends") {
  CHECK(through_buffer({"\xe4", "\xb8", "\x96 ok"}) == "\u4e16 ok");
  CHECK(through_buffer({"a\xe4", "z"}) == "a\\xe4z");
  CHECK(through_buffer({"a\xe4\xb8"}) == "a\\xe4\\xb8");
  CHECK(through_buffer({"\x1b[1m\xff\x1b[0m"}) == "\x1b[1m\\xff\x1b[0m");  // colours stay
}

TEST_CASE("an error is printable in all its parts") {
  const Error error(Exit::bad_file, "\xff.pt2", "entry '\xc3' is damaged", "copy \xfe");
  CHECK(error.message() == "error: \\xff.pt2: entry '\\xc3' is damaged\nhint: copy \\xfe\n");
  CHECK(is_utf8(error.what()));
  CHECK(error.in_file("\xfe").file() == "\\xfe");
}

TEST_CASE("SHA-256 of FIPS 180-4's examples") {
  const auto hash = [](std::string_view text) {
    return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
  };
  CHECK(hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("globs of names") {
  CHECK(glob_match("", ""));
  CHECK_FALSE(glob_match("", "x"));
  CHECK(glob_match("*", "encoder.layer.0"));  // no path: dots and slashes are characters
  CHECK(glob_match("*", ".hidden"));
  CHECK(glob_match("a/*", "a/b/c"));
  CHECK(glob_match("enc*.?", "encoder.layer.0"));
  CHECK_FALSE(glob_match("enc*.?", "encoder.layer.10"));
  CHECK_FALSE(glob_match("encoder", "encoder.0"));
  CHECK_FALSE(glob_match("flash_attn.*", "xflash_attn.3"));
  CHECK_FALSE(glob_match("Linear", "linear"));
  CHECK(glob_match("a\\*", "a\\b"));  // a backslash is itself
  CHECK_FALSE(glob_match("a\\*", "a*"));
  CHECK_FALSE(glob_match("*a*a*a*a*a*a*a*a*a*b", std::string(60, 'a')));
}

TEST_CASE("brackets of a glob are classes") {
  CHECK(glob_match("layer.[0-3].fc", "layer.2.fc"));
  CHECK(glob_match("layer.[012]", "layer.0"));
  CHECK_FALSE(glob_match("layer.[!0-3]", "layer.2"));
  CHECK(glob_match("layer.[!0-3]", "layer.4"));
  CHECK(glob_match("w[*", "w[x"));  // one that nothing closes is itself
  CHECK(glob_match("w[0]", "w0"));
  CHECK(glob_match("w[0]", "w[0]"));  // a name matches itself
}

TEST_CASE("division of integers floors, as in Python") {
  CHECK(floor_div(-7, 2) == -4);
  CHECK(floor_div(7, -2) == -4);
  CHECK(floor_div(-8, 2) == -4);
  CHECK(floor_mod(-7, 3) == 2);
  CHECK(floor_mod(7, -3) == -2);
  constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  CHECK(floor_div(smallest, -1) == smallest);
  CHECK(floor_mod(smallest, -1) == 0);
  for (std::int64_t a = -20; a <= 20; ++a)
    for (std::int64_t b = -5; b <= 5; ++b)
      if (b != 0) {
        REQUIRE(floor_div(a, b) * b + floor_mod(a, b) == a);
        REQUIRE(floor_div(a, b) ==
                static_cast<std::int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b))));
      }
}

TEST_CASE("JSON that is written in pieces is what a tree of it gives") {
  const Json a = {1, "x\"\n", nullptr}, b = {{"z", 1.5}, {"a", Json::array()}};
  JsonArrayText list, none, spaced("\n ");
  for (const Json& item : {a, b}) list.add(item), spaced.add(item);
  const JsonPieces pieces = json_object({{"list", {std::move(list).take()}},
                                         {"none", {std::move(none).take()}},
                                         {"a \"name\"", {json_table({{"b", b.dump()}, {"a", a.dump()}})}}});
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  const Json tree = {{"list", {a, b}}, {"none", Json::array()}, {"a \"name\"", {{"a", a}, {"b", b}}}};
  CHECK(text == tree.dump());
  const std::string wide = std::move(spaced).take();
  CHECK(wide == "[\n " + a.dump() + ",\n " + b.dump() + "]");
  CHECK(compact_json(wide) == Json{a, b}.dump());
  CHECK(compact_json(tree.dump(3)) == tree.dump());
  CHECK(json_table({}) == "{}");
}

TEST_CASE("JSON as text is what the library writes") {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const Json& value :
       {Json(),
        Json(true),
        Json(false),
        Json(0),
        Json(-1),
        Json(std::numeric_limits<std::int64_t>::min()),
        Json(std::numeric_limits<std::uint64_t>::max()),
        Json(0.1),
        Json(1e300),
        Json(-0.0),
        Json(infinite),
        Json(""),
        Json("plain ~"),
        Json("a\"b"),
        Json("a\\b"),
        Json("a\nb\x01\x7f"),
        Json("Gr\u00fc\u00dfe"),
        Json::array(),
        Json::object(),
        Json{{"b", {1, 2, {{"\t", nullptr}}}}, {"a\"", {{"", "x"}}}, {"\u00e9", Json::array({false})}}}) {
    std::string text = "behind ";
    append_json(text, value);
    CHECK(text == "behind " + value.dump());
    CHECK(json_text(value) == value.dump());
  }
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  CHECK(json_text(all) == Json(all).dump());
  CHECK_THROWS_AS(json_text("\xff"), Json::exception);
}

TEST_CASE("strings of every length are escaped and found wherever their escapes are") {
  std::mt19937 rng(5);
  const std::string_view characters = "abcdefgh ~\x7f\"\\\n\x01\x1f";
  for (std::size_t length = 0; length < 600; ++length) {
    std::string value(length, 'a');
    for (char& c : value)
      if (rng() % (1 + length % 9) == 0) c = characters[rng() % characters.size()];
    const std::string text = Json(value).dump();
    REQUIRE(json_text(value) == text);
    REQUIRE(json_text(value + "\u00e9") == Json(value + "\u00e9").dump());
    const std::string object = "{ \"a\" : " + text + " , \"b\":[ " + text + "\n] }";
    REQUIRE(compact_json(object) == parse_json(object).dump());
    const auto members = json_members(object);
    REQUIRE(members.size() == 2);
    REQUIRE(members[0].second == text);
    REQUIRE_THROWS_AS(json_members("{\"a\":" + text.substr(0, text.size() - 1)), Error);
  }
}

TEST_CASE("an object's members are found without a tree of them") {
  const std::string text = " {\"a\" : [1, {\"b\": \"}],\\\"\"}] , \"c\\n\":-2.5,\"d\":{ } }";
  const auto members = json_members(text);
  REQUIRE(members.size() == 3);
  const Json tree = parse_json(text);
  for (const auto& [name, value] : members) CHECK(parse_json(value) == tree.at(name));
  CHECK(members[0].second == "[1, {\"b\": \"}],\\\"\"}]");
  CHECK(json_members("{}").empty());
  for (const char* broken : {"", "[]", "{", "{\"a\"", "{\"a\":", "{\"a\":[1}", "{\"a\":\"x}", "{a:1}", "{\"a\" 1}"})
    CHECK_THROWS_AS(json_members(broken), Error);
}

TEST_CASE("the phase that is shown knows when all is done, or is the innermost") {
  CHECK(!current_phase());
  Phase command("ttc search");
  CHECK(current_phase()->name == "ttc search");
  CHECK(!current_phase(1000));
  Phase all("measuring", 8);
  CHECK(current_phase()->name == "measuring");
  {
    Phase one("writing", 1000, Phase::Unit::bytes);
    CHECK(current_phase()->name == "writing");  // nothing of the eight is done, so how long they take is not known
    all.advance(2);
    CHECK(current_phase()->name == "measuring");
    CHECK(current_phase()->what == "writing");
    CHECK(current_phase()->done == 2);
    one.advance(10);
    all.at("mix 3");
    CHECK(current_phase()->what == "mix 3");
    all.advance(7);
    CHECK(current_phase()->name == "writing");  // more than was expected: so nobody knows
    CHECK(current_phase()->done == 10);
  }
  CHECK(current_phase()->name == "measuring");
}
