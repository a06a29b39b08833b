// The table of file formats, and files that hold bytes which are no text: what ttc says of them is UTF-8 all the same.
#include "formats/model_file.h"
#include "formats/safetensors.h"
#include "tests/catch.h"
#include "tests/unit/format_test_util.h"

using namespace ttc;
using namespace format_test;

namespace {

// The message that reading gives, which must be printable.
std::string message_of(const std::function<void()>& read) {
  const auto error = error_of(read);
  REQUIRE(error.has_value());
  CHECK(error->code() == Exit::bad_file);
  const std::string message = error->message();
  CHECK_NOTHROW(Json(message).dump());
  return message;
}

bool detect_toy(const InputFile& file) { return file.text().starts_with("toy model"); }
std::unique_ptr<ir::Model> read_toy(const InputFile& file) {
  return ir::parse(file.text().substr(file.text().find('\n')), file.path());
}

}  // namespace

// All that a format takes: functions and a record.
TTC_REGISTER_FORMAT(
    {.name = "toy", .extensions = {".toy", ".tm"}, .detect = detect_toy, .read = read_toy, .write = nullptr})

TEST_CASE("a format is found by ending, in either case, and by content", "[format]") {
  CHECK(format_of_name("m.pt2")->name == "pt2");
  CHECK(format_of_name("a/b.PT2")->name == "pt2");
  CHECK(format_of_name("M.Toy")->name == "toy");
  CHECK(format_of_name("m.tm")->name == "toy");
  CHECK(format_of_name(".pt2") == nullptr);
  CHECK(format_of_name("m.pt2.zip") == nullptr);
  CHECK(model_extensions() == ".pt2, .tm or .toy");

  const TempDir dir;
  write_bytes(dir.file("anything"), "toy model\ngraph g(%x: f32[2] user) {\n  return %x\n}\n");
  CHECK(load_model(dir.file("anything"))->graph->inputs().size() == 1);
  write_archive(dir.file("renamed.toy"), TinyModel().entries());
  CHECK(load_model(dir.file("renamed.toy"))->info.format == "pt2");
}

TEST_CASE("a model is written only under an ending that says how", "[format]") {
  const TempDir dir;
  write_archive(dir.file("m.pt2"), TinyModel().entries());
  const auto model = load_model(dir.file("m.pt2"));
  save_model(*model, dir.file("again.PT2"));
  CHECK(load_model(dir.file("again.PT2"))->info.format == "pt2");
  for (const char* name : {"m.onnx", "m", "pt2", "m.toy", "m.ir"}) {
    const auto error = error_of([&] { save_model(*model, dir.file(name)); });
    REQUIRE(error.has_value());
    CHECK(error->code() == Exit::usage);
    CHECK(error->hint() == "end it in .pt2");
  }
  CHECK(dir.entries() == 2);
}

TEST_CASE("messages about bytes that are no text are UTF-8", "[format][hostile]") {
  const TempDir dir;
  const std::string path = dir.file("\xff\xfe.pt2");
  CHECK_THAT(message_of([&] { load_model(path); }), ContainsSubstring("\\xff\\xfe.pt2: cannot open"));

  Entries entries = TinyModel().entries();
  for (auto& [name, content] : entries)
    if (name == "models/model.json") content.insert(content.find("aten.linear"), "\xc3");
  write_archive(path, entries);
  CHECK_THAT(message_of([&] { load_model(path); }), ContainsSubstring("malformed JSON"));

  entries = TinyModel().entries();
  entries.front().first = "data/weights/\x80\x1b[31m";
  write_archive(path, entries);
  message_of([&] { load_model(path); });
  write_archive(path, {{"\xf0\x28/../x", "y"}}, "");
  CHECK_THAT(message_of([&] { load_model(path); }), ContainsSubstring("\\xf0(/../x"));

  std::string header = "{\"\xe4\xb8\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}";
  const std::uint64_t length = header.size();
  header.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
  write_bytes(path, header + std::string(4, '\0'));
  CHECK_THAT(message_of([&] { read_safetensors(path); }), ContainsSubstring("malformed JSON"));

  write_bytes(dir.file("raw.ir"), "graph \x9f(%x: f32[2] user) {");
  message_of([&] { load_model(dir.file("raw.ir")); });
}
