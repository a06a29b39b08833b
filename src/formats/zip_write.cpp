// PKWARE's APPNOTE 4.3.7 (headers), 4.3.12 (directory), 4.3.14 to 4.3.16 (its end). Alignment comes from a filler in
// the local header's extra field: id "FB", then Zs.
#include "formats/zip_write.h"

#include <zlib.h>

#include <algorithm>

#include "support/error.h"

namespace ttc {
namespace {

constexpr std::size_t written_header_size = 30, zip64_sizes = 20, filler_header_size = 4;
constexpr std::uint64_t most_in_32 = 0xFFFFFFFF, most_in_16 = 0xFFFF;
constexpr std::uint64_t version = 20, version_zip64 = 45;
constexpr std::uint64_t utf8_names = 1U << 11;
constexpr std::uint64_t date = (1U << 21) | (1U << 16);  // 1980-01-01: no clock in the bytes

bool is_large(const ZipWriter::Entry& entry) { return entry.size >= most_in_32; }

// Little-endian fields one behind another.
class Record {
 public:
  Record& u16(std::uint64_t value) { return put(value, 2); }
  Record& u32(std::uint64_t value) { return put(value, 4); }
  Record& u64(std::uint64_t value) { return put(value, 8); }
  // What does not fit is all ones, and stands in a field of 64 bits elsewhere.
  Record& cut16(std::uint64_t value) { return u16(std::min(value, most_in_16)); }
  Record& cut32(std::uint64_t value) { return u32(std::min(value, most_in_32)); }
  Record& text(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& put(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

// What a header and the directory say alike: versions to sizes.
void put_common(Record& record, const ZipWriter::Entry& entry) {
  record.u16(is_large(entry) ? version_zip64 : version).u16(utf8_names).u16(0).u32(date).u32(entry.crc);
  record.cut32(entry.size).cut32(entry.size).u16(entry.name.size());
}

std::string local_header(const ZipWriter::Entry& entry) {
  const std::size_t extra = entry.offset - entry.header - written_header_size - entry.name.size();
  const std::size_t filler = extra - filler_header_size - (is_large(entry) ? zip64_sizes : 0);
  Record record;
  record.u32(0x04034b50);
  put_common(record, entry);
  record.u16(extra).text(entry.name).text("FB").u16(filler).text(std::string(filler, 'Z'));
  if (is_large(entry)) record.u16(1).u16(16).u64(entry.size).u64(entry.size);
  return record.bytes();
}

void put_directory_record(Record& record, const ZipWriter::Entry& entry) {
  Record wide;
  if (is_large(entry)) wide.u64(entry.size).u64(entry.size);
  if (entry.header >= most_in_32) wide.u64(entry.header);
  const std::size_t extra = wide.bytes().empty() ? 0 : 4 + wide.bytes().size();
  record.u32(0x02014b50).u16(version_zip64);
  put_common(record, entry);
  record.u16(extra).u16(0).u16(0).u16(0).u32(0).cut32(entry.header).text(entry.name);
  if (extra > 0) record.u16(1).u16(wide.bytes().size()).text(wide.bytes());
}

void put_end(Record& record, std::uint64_t count, std::uint64_t start, std::uint64_t size) {
  if (start >= most_in_32 || size >= most_in_32 || count >= most_in_16) {
    record.u32(0x06064b50).u64(44).u16(version_zip64).u16(version_zip64).u32(0).u32(0);
    record.u64(count).u64(count).u64(size).u64(start);
    record.u32(0x07064b50).u32(0).u64(start + size).u32(1);
  }
  record.u32(0x06054b50).u16(0).u16(0).cut16(count).cut16(count).cut32(size).cut32(start).u16(0);
}

}  // namespace

void ZipWriter::add(const std::string& name, std::string_view content) {
  add(name, std::as_bytes(std::span(content.data(), content.size())));
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> content) {
  fill(reserve(name, content.size()), content);
}

void ZipWriter::add(const std::string& name, std::span<const std::string> pieces) {
  std::uint64_t size = 0;
  for (const std::string& piece : pieces) size += piece.size();
  Entry& entry = reserve(name, size);
  std::uint64_t at = entry.offset;
  for (const std::string& piece : pieces) {
    file_.write_at(at, piece.data(), piece.size());
    at += piece.size();
    entry.crc =
        static_cast<std::uint32_t>(crc32_z(entry.crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size()));
  }
  write_header(entry);
}

ZipWriter::Entry& ZipWriter::reserve(const std::string& name, std::uint64_t size) {
  Entry& entry = entries_.emplace_back(Entry{.name = name, .size = size, .header = end_});
  const std::uint64_t unfilled =
      end_ + written_header_size + name.size() + filler_header_size + (is_large(entry) ? zip64_sizes : 0);
  entry.offset = (unfilled + alignment - 1) / alignment * alignment;
  end_ = entry.offset + size;
  return entry;
}

void ZipWriter::fill(Entry& entry, std::span<const std::byte> content) {
  TTC_CHECK(content.size() == entry.size, "an entry of a zip has another size than was reserved");
  entry.crc = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
  write_header(entry);
  file_.write_at(entry.offset, content.data(), content.size());
}

void ZipWriter::write_header(const Entry& entry) {
  const std::string header = local_header(entry);
  file_.write_at(entry.header, header.data(), header.size());
}

void ZipWriter::finish() {
  Record record;
  for (const Entry& entry : entries_) put_directory_record(record, entry);
  put_end(record, entries_.size(), end_, record.bytes().size());
  file_.write_at(end_, record.bytes().data(), record.bytes().size());
  file_.seek(file_.size());
}

}  // namespace ttc
