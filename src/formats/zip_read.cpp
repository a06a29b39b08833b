// minizip finds and walks the directory; each record is then read from the mapping, because minizip up to 1.1 leaves
// out the 64-bit fields of large archives. zlib inflates and checks CRCs.
#include "formats/zip_read.h"

#include <unzip.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "support/error.h"
#include "support/progress.h"

namespace ttc {
namespace {

// The mapping as the file that minizip reads.
struct MemoryStream {
  std::span<const std::byte> bytes;
  std::uint64_t position = 0;
};

voidpf open_memory(voidpf opaque, const void*, int) { return opaque; }
uLong read_memory(voidpf, voidpf stream, void* out, uLong size) {
  auto& memory = *static_cast<MemoryStream*>(stream);
  if (memory.position >= memory.bytes.size()) return 0;
  const auto take = std::min<std::uint64_t>(size, memory.bytes.size() - memory.position);
  std::memcpy(out, memory.bytes.data() + memory.position, take);
  memory.position += take;
  return static_cast<uLong>(take);
}
ZPOS64_T tell_memory(voidpf, voidpf stream) { return static_cast<MemoryStream*>(stream)->position; }
long seek_memory(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  auto& memory = *static_cast<MemoryStream*>(stream);
  const std::uint64_t base = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                             : origin == ZLIB_FILEFUNC_SEEK_CUR ? memory.position
                                                                : memory.bytes.size();
  const std::uint64_t target = base + offset;  // steps back come as large offsets that wrap around
  if (target > memory.bytes.size()) return -1;
  memory.position = target;
  return 0;
}
int close_memory(voidpf, voidpf) { return 0; }
int error_memory(voidpf, voidpf) { return 0; }

// minizip's handle on the mapping.
class Unzip {
 public:
  explicit Unzip(std::span<const std::byte> bytes) : stream_{bytes} {
    zlib_filefunc64_def functions{};
    functions.zopen64_file = open_memory;
    functions.zread_file = read_memory;
    functions.ztell64_file = tell_memory;
    functions.zseek64_file = seek_memory;
    functions.zclose_file = close_memory;
    functions.zerror_file = error_memory;
    functions.opaque = &stream_;
    handle_ = unzOpen2_64("", &functions);
  }
  Unzip(const Unzip&) = delete;
  Unzip& operator=(const Unzip&) = delete;
  ~Unzip() {
    if (handle_) unzClose(handle_);
  }
  unzFile handle() const { return handle_; }

 private:
  MemoryStream stream_;
  unzFile handle_ = nullptr;
};

std::uint64_t little_endian(std::span<const std::byte> bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

constexpr std::uint64_t local_header_size = 30, directory_record_size = 46, end_record_size = 22, max_comment = 65535;
// Compressed entries are code and text; more than this is a bomb, or weights that should be stored.
constexpr std::uint64_t max_inflated = std::uint64_t{1} << 28;

// minizip does not mind when the last bytes of the end record are cut off.
bool ends_early(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto tail = text.substr(text.size() - std::min<std::size_t>(text.size(), end_record_size + max_comment));
  const auto end = tail.rfind("PK\5\6");
  return end == tail.npos || tail.size() - end < end_record_size;
}

Error not_a_zip(const std::string& path, std::span<const std::byte> bytes) {
  const bool starts_as_zip = bytes.size() >= 4 && std::memcmp(bytes.data(), "PK\3\4", 4) == 0;
  if (starts_as_zip)
    return bad_file(path, "truncated zip: its directory, at the end of the file, is missing",
                    "copy or export the file again");
  return bad_file(path, "not a zip archive", "ttc reads what torch.export.save (.pt2) and torch.jit.save (.pt) write");
}

// The extra field 1 holds, in this order, those of the fields that do not fit into 32 bits.
void read_zip64(std::span<const std::byte> extra, std::initializer_list<std::uint64_t*> fields) {
  while (extra.size() >= 4) {
    const auto id = little_endian(extra, 0, 2), size = little_endian(extra, 2, 2);
    if (size > extra.size() - 4) return;
    auto content = extra.subspan(4, size);
    for (std::uint64_t* field : fields) {
      if (id != 1 || *field != 0xFFFFFFFF || content.size() < 8) continue;
      *field = little_endian(content, 0, 8);
      content = content.subspan(8);
    }
    extra = extra.subspan(4 + size);
  }
}

// Inflates exactly `size` bytes; false where the data gives more, fewer or none.
bool inflate_all(std::span<const std::byte> packed, std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  return status == Z_STREAM_END && stream.avail_out == 0;
}

bool is_safe_name(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\\') != name.npos || name.find('\0') != name.npos) return false;
  if (name.size() > 1 && name[1] == ':') return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const auto end = std::min(name.find('/', begin), name.size());
    const auto part = name.substr(begin, end - begin);
    if (part == ".." || part == ".") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

ZipArchive::ZipArchive(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  read_directory();
  strip_root();
  by_name_.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (!by_name_.emplace(entries_[i].name, i).second)
      throw bad_file(path(), "the archive holds two entries named '" + entries_[i].name + "'");
}

Error ZipArchive::broken(const std::string& what) const {
  return bad_file(path(), "broken zip: " + what, "copy or export the file again");
}

// One record of the central directory (PKWARE's APPNOTE 4.3.12) and where the data of its entry starts.
ZipEntry ZipArchive::read_record(std::uint64_t position) const {
  const auto bytes = file_->bytes();
  if (position > bytes.size() || bytes.size() - position < directory_record_size ||
      little_endian(bytes, position, 4) != 0x02014b50)
    throw broken("a directory record is not where it should be");
  const auto record = bytes.subspan(position);
  const auto flags = little_endian(record, 8, 2), method = little_endian(record, 10, 2);
  const auto name_size = little_endian(record, 28, 2), extra_size = little_endian(record, 30, 2);
  if (record.size() - directory_record_size < name_size + extra_size) throw broken("a directory record is cut off");
  ZipEntry entry{.name = std::string(reinterpret_cast<const char*>(record.data()) + directory_record_size, name_size),
                 .directory = position + directory_record_size + name_size - 1,
                 .size = little_endian(record, 24, 4),
                 .packed_size = little_endian(record, 20, 4),
                 .stored = method == 0,
                 .crc = static_cast<std::uint32_t>(little_endian(record, 16, 4))};
  std::uint64_t header = little_endian(record, 42, 4);
  read_zip64(record.subspan(directory_record_size + name_size, extra_size), {&entry.size, &entry.packed_size, &header});
  if (!is_safe_name(entry.name))
    throw bad_file(path(), "the archive holds an entry whose name leaves the archive: '" + entry.name + "'");
  if (flags & 1U) throw bad_file(path(), "entry '" + entry.name + "' is encrypted");
  if (!entry.stored && method != Z_DEFLATED)
    throw broken("entry '" + entry.name + "' uses an unknown compression method");
  if (entry.stored && entry.size != entry.packed_size)
    throw broken("entry '" + entry.name + "' is stored with two sizes");
  if (header > bytes.size() || bytes.size() - header < local_header_size ||
      little_endian(bytes, header, 4) != 0x04034b50)
    throw broken("entry '" + entry.name + "' has a damaged header");
  // The lengths in the local header count: its extra field may differ from the directory's.
  entry.offset =
      header + local_header_size + little_endian(bytes, header + 26, 2) + little_endian(bytes, header + 28, 2);
  if (entry.offset > bytes.size() || entry.packed_size > bytes.size() - entry.offset)
    throw broken("entry '" + entry.name + "' lies beyond the end of the file");
  // Deflate cannot shrink by more than a factor of 1032.
  if (!entry.stored && entry.size / 1040 > entry.packed_size + 1)
    throw broken("entry '" + entry.name + "' claims an impossible size");
  return entry;
}

void ZipArchive::read_directory() {
  const auto bytes = file_->bytes();
  Unzip zip(bytes);
  unz_global_info64 global{};
  if (!zip.handle() || ends_early(bytes) || unzGetGlobalInfo64(zip.handle(), &global) != UNZ_OK)
    throw not_a_zip(path(), bytes);
  if (global.number_entry > bytes.size() / directory_record_size)
    throw bad_file(path(), "the zip directory claims " + std::to_string(global.number_entry) +
                               " entries, more than the file can hold");
  int status = global.number_entry == 0 ? UNZ_END_OF_LIST_OF_FILE : unzGoToFirstFile(zip.handle());
  for (; status == UNZ_OK; status = unzGoToNextFile(zip.handle())) {
    unz64_file_pos position{};
    if (unzGetFilePos64(zip.handle(), &position) != UNZ_OK) throw broken("a directory record cannot be read");
    ZipEntry entry = read_record(position.pos_in_zip_directory);
    if (!entry.name.ends_with('/') || entry.size > 0) entries_.push_back(std::move(entry));  // others are directories
  }
  if (status != UNZ_END_OF_LIST_OF_FILE) throw broken("its directory is damaged");
  check_extents();
}

// Entries that overlap, or expand without measure, let a small file claim any amount of memory.
void ZipArchive::check_extents() const {
  std::vector<const ZipEntry*> sorted;
  std::uint64_t inflated = 0;
  for (const auto& entry : entries_) {
    sorted.push_back(&entry);
    if (!entry.stored && (entry.size > max_inflated || (inflated += entry.size) > max_inflated))
      throw bad_file(path(), "the archive's compressed entries expand to more than 256 MiB",
                     "store weights without compression");
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->offset + sorted[i - 1]->packed_size > sorted[i]->offset - local_header_size)
      throw bad_file(path(), "broken zip: entries '" + sorted[i - 1]->name + "' and '" + sorted[i]->name + "' overlap");
}

void ZipArchive::strip_root() {
  if (entries_.empty()) return;
  const auto slash = entries_.front().name.find('/');
  if (slash == std::string::npos) return;
  const std::string prefix = entries_.front().name.substr(0, slash + 1);
  for (const auto& entry : entries_)
    if (!entry.name.starts_with(prefix)) return;
  root_ = prefix.substr(0, slash);
  for (auto& entry : entries_) entry.name.erase(0, prefix.size());
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

Error ZipArchive::damaged(const ZipEntry& entry, const char* why) const {
  return bad_file(path(), "entry '" + entry.name + "' is damaged: " + why, "copy or export the file again");
}

std::string ZipArchive::read(const ZipEntry& entry) const {
  const auto packed = file_->bytes().subspan(entry.offset, entry.packed_size);
  std::string content(entry.size, '\0');
  if (entry.stored)
    std::copy_n(reinterpret_cast<const char*>(packed.data()), packed.size(), content.data());
  else if (packed.size() > max_inflated || !inflate_all(packed, content))
    throw damaged(entry, "its compressed data is broken");
  if (crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()) != entry.crc)
    throw damaged(entry, "its checksum (CRC) does not match");
  return content;
}

void ZipArchive::check_contents() const {
  Phase phase("checking the records of " + file_->path(), file_->bytes().size(), Phase::Unit::bytes);
  for (const ZipEntry& entry : entries_) {
    phase.at(entry.name);
    if (!entry.stored) {
      static_cast<void>(read(entry));
      continue;
    }
    constexpr std::size_t piece = std::size_t{16} << 20;
    uLong crc = 0;
    for (auto bytes = view(entry); !bytes.empty(); bytes = bytes.subspan(std::min(piece, bytes.size()))) {
      const std::size_t size = std::min(piece, bytes.size());
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), size);
      phase.advance(size);
    }
    if (crc != entry.crc) throw damaged(entry, "its checksum (CRC) does not match");
  }
}

std::span<const std::byte> ZipArchive::view(const ZipEntry& entry) const {
  TTC_CHECK(entry.stored, "only stored entries can be viewed in place");
  return file_->bytes().subspan(entry.offset, entry.size);
}

}  // namespace ttc
