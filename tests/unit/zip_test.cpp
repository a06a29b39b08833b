// Zip archives: what is written reads back; what is broken is refused with a message that says how.
#include <span>
#include <thread>
#include <vector>

#include "formats/zip_read.h"
#include "formats/zip_write.h"
#include "tests/catch.h"
#include "tests/unit/format_test_util.h"

using namespace ttc;
using namespace format_test;

namespace {

ZipArchive open(const std::string& path) { return ZipArchive(MappedFile::open(path)); }

// The message of the error that opening `bytes` as an archive gives.
std::string refusal(const TempDir& dir, const std::string& bytes) {
  const std::string path = dir.file("broken.zip");
  write_bytes(path, bytes);
  const auto error = error_of([&] { open(path); });
  if (!error) return "";
  CHECK(error->code() == Exit::bad_file);
  CHECK(error->file() == path);
  return error->what();
}

const Entries sample = {{"a", "first"}, {"data/weights/weight_0", std::string(1000, 'w')}, {"empty", ""}};

std::string sample_bytes(const TempDir& dir) {
  write_archive(dir.file("sample.zip"), sample);
  return read_bytes(dir.file("sample.zip"));
}

std::size_t directory_record(const std::string& bytes, const std::string& name) {
  for (auto at = bytes.find("PK\1\2"); at != std::string::npos; at = bytes.find("PK\1\2", at + 1))
    if (bytes.compare(at + 46, name.size(), name) == 0) return at;
  return std::string::npos;
}

}  // namespace

TEST_CASE("zip: entries read back, aligned, without their root", "[zip]") {
  const TempDir dir;
  write_archive(dir.file("a.zip"), sample);
  const ZipArchive archive = open(dir.file("a.zip"));
  CHECK(archive.root() == "m");
  REQUIRE(archive.entries().size() == sample.size());
  for (const auto& [name, content] : sample) {
    const ZipEntry* entry = archive.find(name);
    REQUIRE(entry != nullptr);
    CHECK(entry->stored);
    CHECK(entry->offset % ZipWriter::alignment == 0);
    CHECK(archive.read(*entry) == content);
    CHECK(archive.view(*entry).size() == content.size());
  }
  CHECK(archive.find("m/a") == nullptr);
}

TEST_CASE("zip: the same entries give the same bytes", "[zip]") {
  const TempDir dir;
  write_archive(dir.file("a.zip"), sample);
  write_archive(dir.file("b.zip"), sample);
  CHECK(read_bytes(dir.file("a.zip")) == read_bytes(dir.file("b.zip")));
}

TEST_CASE("zip: entries filled in any order, by several threads, give the same bytes", "[zip]") {
  const TempDir dir;
  write_archive(dir.file("a.zip"), sample);
  {
    AtomicFile file(dir.file("b.zip"));
    ZipWriter zip(file);
    std::vector<ZipWriter::Entry*> entries;
    for (const auto& [name, content] : sample) entries.push_back(&zip.reserve("m/" + name, content.size()));
    std::vector<std::thread> threads;
    for (std::size_t i = sample.size(); i-- > 0;)
      threads.emplace_back([&, i] { zip.fill(*entries[i], std::as_bytes(std::span(sample[i].second))); });
    for (std::thread& thread : threads) thread.join();
    zip.finish();
    file.commit();
  }
  CHECK(read_bytes(dir.file("a.zip")) == read_bytes(dir.file("b.zip")));
}

TEST_CASE("zip: an entry that comes in pieces is the one that comes at once", "[zip]") {
  const TempDir dir;
  write_archive(dir.file("a.zip"), {{"one", "first, second, "}, {"two", ""}});
  {
    AtomicFile file(dir.file("b.zip"));
    ZipWriter zip(file);
    zip.add("m/one", std::vector<std::string>{"first, ", "", "second, "});
    zip.add("m/two", std::vector<std::string>{});
    zip.finish();
    file.commit();
  }
  CHECK(read_bytes(dir.file("a.zip")) == read_bytes(dir.file("b.zip")));
}

TEST_CASE("zip: more entries than 16 bits count", "[zip]") {
  const TempDir dir;
  constexpr int count = 66'000;
  {
    AtomicFile file(dir.file("many.zip"));
    ZipWriter zip(file);
    for (int i = 0; i < count; ++i) zip.add("m/" + std::to_string(i), std::string_view("x"));
    zip.finish();
    file.commit();
  }
  const ZipArchive archive = open(dir.file("many.zip"));
  CHECK(archive.entries().size() == count);
  REQUIRE(archive.find("65999") != nullptr);
  CHECK(archive.read(*archive.find("65999")) == "x");
}

TEST_CASE("zip: entries beyond 4 GiB are found", "[zip]") {
  const TempDir dir;
  constexpr std::uint64_t beyond = 4'400'000'000;
  {
    AtomicFile file(dir.file("far.zip"));
    file.seek(beyond);  // a hole takes no room
    ZipWriter zip(file);
    zip.add("m/a", std::string_view("first"));
    zip.add("m/b", std::string_view("second"));
    zip.finish();
    file.commit();
  }
  const ZipArchive archive = open(dir.file("far.zip"));
  REQUIRE(archive.find("b") != nullptr);
  CHECK(archive.find("b")->offset > beyond);
  CHECK(archive.find("b")->offset % ZipWriter::alignment == 0);
  CHECK(archive.read(*archive.find("b")) == "second");
}

TEST_CASE("zip: names without a common root stay whole", "[zip]") {
  const TempDir dir;
  write_archive(dir.file("a.zip"), {{"x/a", "1"}, {"y/b", "2"}}, "");
  const ZipArchive archive = open(dir.file("a.zip"));
  CHECK(archive.root().empty());
  CHECK(archive.find("y/b") != nullptr);
}

TEST_CASE("zip: what is no zip is told from a truncated one", "[zip][hostile]") {
  const TempDir dir;
  CHECK_THAT(refusal(dir, "hello"), ContainsSubstring("not a zip archive"));
  CHECK_THAT(refusal(dir, std::string(100000, 'x')), ContainsSubstring("not a zip archive"));
  const std::string bytes = sample_bytes(dir);
  CHECK_THAT(refusal(dir, bytes.substr(0, bytes.size() / 2)), ContainsSubstring("truncated zip"));
  CHECK_THAT(refusal(dir, bytes.substr(0, bytes.size() - 1)), ContainsSubstring("truncated zip"));
  CHECK(error_of([&] { open(dir.file("nowhere")); }).value().code() == Exit::bad_file);
  CHECK_THAT(error_of([&] { open(dir.file("")); }).value().what(), ContainsSubstring("not a regular file"));
  write_bytes(dir.file("none"), "");
  CHECK_THAT(error_of([&] { open(dir.file("none")); }).value().what(), ContainsSubstring("empty"));
}

TEST_CASE("zip: names that leave the archive or come twice are refused", "[zip][hostile]") {
  const TempDir dir;
  for (const std::string name : {"../evil", "a/../../evil", "/etc/passwd", "a\\b", "C:x", "a/./b"}) {
    write_archive(dir.file("a.zip"), {{name, "x"}}, "");
    INFO(name);
    CHECK_THAT(error_of([&] { open(dir.file("a.zip")); }).value().what(), ContainsSubstring("leaves the archive"));
  }
  write_archive(dir.file("a.zip"), {{"twice", "1"}, {"twice", "2"}});
  CHECK_THAT(error_of([&] { open(dir.file("a.zip")); }).value().what(), ContainsSubstring("two entries named 'twice'"));
}

TEST_CASE("zip: sizes and offsets of the directory are checked", "[zip][hostile]") {
  const TempDir dir;
  const std::string bytes = sample_bytes(dir);
  const auto record = directory_record(bytes, "m/data/weights/weight_0");
  REQUIRE(record != std::string::npos);
  const auto patched = [&](std::size_t offset, std::string_view value) {
    std::string copy = bytes;
    copy.replace(record + offset, value.size(), value);
    return copy;
  };
  constexpr std::string_view huge = "\xff\xff\xff\x7f";
  CHECK_FALSE(refusal(dir, patched(20, huge)).empty());                             // packed size
  CHECK_FALSE(refusal(dir, patched(24, huge)).empty());                             // size
  CHECK_FALSE(refusal(dir, patched(42, huge)).empty());                             // offset of the local header
  CHECK_FALSE(refusal(dir, patched(28, std::string_view("\xff\xff", 2))).empty());  // length of the name
  CHECK_THAT(refusal(dir, patched(8, std::string_view("\1\0", 2))), ContainsSubstring("encrypted"));
  CHECK_THAT(refusal(dir, patched(10, std::string_view("\x0c\0", 2))), ContainsSubstring("broken zip"));
  // Two entries that share their data: the offset of "a" becomes that of "b", whose header is the same but for the
  // name.
  write_archive(dir.file("twins.zip"), {{"a", "same"}, {"b", "same"}});
  std::string twins = read_bytes(dir.file("twins.zip"));
  const auto first = directory_record(twins, "m/a"), second = directory_record(twins, "m/b");
  twins.replace(second + 42, 4, twins.substr(first + 42, 4));
  CHECK_THAT(refusal(dir, twins), ContainsSubstring("overlap"));
  std::string many = bytes;
  const auto end = many.rfind("PK\5\6");
  many.replace(end + 8, 4, "\xff\xff\xff\xff");
  CHECK_FALSE(refusal(dir, many).empty());
}

TEST_CASE("zip: a changed byte is caught by the checksum", "[zip][hostile]") {
  const TempDir dir;
  std::string bytes = sample_bytes(dir);
  bytes[bytes.find("first")] = 'F';
  write_bytes(dir.file("changed.zip"), bytes);
  const ZipArchive archive = open(dir.file("changed.zip"));
  const auto error = error_of([&] { archive.read(*archive.find("a")); });
  REQUIRE(error);
  CHECK(error->code() == Exit::bad_file);
  CHECK_THAT(error->what(), ContainsSubstring("checksum"));
}

TEST_CASE("atomic file: nothing appears without commit", "[zip]") {
  const TempDir dir;
  {
    AtomicFile file(dir.file("out"));
    file.write("abc", 3);
  }
  CHECK(dir.entries() == 0);
  write_file(dir.file("out"), "abc");
  CHECK(read_bytes(dir.file("out")) == "abc");
  CHECK(dir.entries() == 1);
  CHECK(error_of([&] { AtomicFile file(dir.file("no/such/dir")); }).value().code() == Exit::usage);
}
