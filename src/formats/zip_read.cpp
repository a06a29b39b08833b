// minizip over the mapping: it understands the directory (zip64 too), inflates and checks CRCs.
#include "formats/zip_read.h"

#include <unzip.h>

#include <algorithm>
#include <cstring>

#include "support/error.h"

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
  if (base + offset < base || base + offset > memory.bytes.size()) return -1;
  memory.position = base + offset;
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

constexpr std::uint64_t local_header_size = 30, directory_record_size = 46, end_record_size = 22, max_comment = 65535;
// Compressed entries are code and text; more than this is a bomb, or weights that should be stored.
constexpr std::uint64_t max_inflated = std::uint64_t{1} << 30;


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
    return bad_file(path, "truncated zip: its directory, at the end of the file, is missing", "copy or export the file again");
  return bad_file(path, "not a zip archive", "ttc reads what torch.export.save (.pt2) and torch.jit.save (.pt) write");
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

void ZipArchive::read_directory() {
  const auto bytes = file_->bytes();
  Unzip zip(bytes);
  unz_global_info64 global{};
  if (!zip.handle() || ends_early(bytes) || unzGetGlobalInfo64(zip.handle(), &global) != UNZ_OK) throw not_a_zip(path(), bytes);
  if (global.number_entry > bytes.size() / directory_record_size)
    throw bad_file(path(), "the zip directory claims " + std::to_string(global.number_entry) + " entries, more than the file can hold");
  const auto broken = [&](const std::string& what) { return bad_file(path(), "broken zip: " + what, "copy or export the file again"); };

  std::string name(65536, '\0');
  int status = global.number_entry == 0 ? UNZ_END_OF_LIST_OF_FILE : unzGoToFirstFile(zip.handle());
  for (; status == UNZ_OK; status = unzGoToNextFile(zip.handle())) {
    unz_file_info64 info{};
    unz64_file_pos position{};
    if (unzGetCurrentFileInfo64(zip.handle(), &info, name.data(), name.size(), nullptr, 0, nullptr, 0) != UNZ_OK ||
        unzGetFilePos64(zip.handle(), &position) != UNZ_OK)
      throw broken("a directory record cannot be read");
    ZipEntry entry{.name = name.substr(0, info.size_filename), .size = info.uncompressed_size, .packed_size = info.compressed_size,
                   .stored = info.compression_method == 0, .crc = static_cast<std::uint32_t>(info.crc),
                   .directory_position = position.pos_in_zip_directory, .number = position.num_of_file};
    if (entry.name.ends_with('/') && entry.size == 0) continue;  // a directory
    if (!is_safe_name(entry.name)) throw bad_file(path(), "the archive holds an entry whose name leaves the archive: '" + entry.name + "'");
    if (info.flag & 1U) throw bad_file(path(), "entry '" + entry.name + "' is encrypted");
    if (!entry.stored && info.compression_method != Z_DEFLATED) throw broken("entry '" + entry.name + "' uses an unknown compression method");
    if (entry.stored && entry.size != entry.packed_size) throw broken("entry '" + entry.name + "' is stored with two sizes");
    // Opening checks the local header against the directory and gives where the data starts.
    if (unzOpenCurrentFile2(zip.handle(), nullptr, nullptr, 1) != UNZ_OK) throw broken("entry '" + entry.name + "' has a damaged header");
    entry.offset = unzGetCurrentFileZStreamPos64(zip.handle());
    unzCloseCurrentFile(zip.handle());
    if (entry.offset > bytes.size() || entry.packed_size > bytes.size() - entry.offset || entry.offset < local_header_size)
      throw broken("entry '" + entry.name + "' lies beyond the end of the file");
    // Deflate cannot shrink by more than a factor of 1032.
    if (!entry.stored && entry.size / 1040 > entry.packed_size + 1) throw broken("entry '" + entry.name + "' claims an impossible size");
    entries_.push_back(std::move(entry));
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
      throw bad_file(path(), "the archive's compressed entries expand to more than 1 GiB", "store weights without compression");
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

std::string ZipArchive::read(const ZipEntry& entry) const {
  const auto damaged = [&](const char* why) {
    return bad_file(path(), "entry '" + entry.name + "' is damaged: " + why, "copy or export the file again");
  };
  Unzip zip(file_->bytes());
  unz64_file_pos position{.pos_in_zip_directory = entry.directory_position, .num_of_file = entry.number};
  if (!zip.handle() || unzGoToFilePos64(zip.handle(), &position) != UNZ_OK || unzOpenCurrentFile(zip.handle()) != UNZ_OK)
    throw damaged("it cannot be opened");
  std::string content;
  content.resize(entry.size);
  std::size_t done = 0;
  while (done < content.size()) {
    const auto ask = static_cast<unsigned>(std::min<std::size_t>(content.size() - done, 1U << 30));
    const int got = unzReadCurrentFile(zip.handle(), content.data() + done, ask);
    if (got <= 0) throw damaged("its data ends early");
    done += static_cast<std::size_t>(got);
  }
  char more = 0;
  if (unzReadCurrentFile(zip.handle(), &more, 1) != 0) throw damaged("it is longer than its directory record says");
  if (unzCloseCurrentFile(zip.handle()) != UNZ_OK) throw damaged("its checksum (CRC) does not match");
  return content;
}

std::span<const std::byte> ZipArchive::view(const ZipEntry& entry) const {
  TTC_CHECK(entry.stored, "only stored entries can be viewed in place");
  return file_->bytes().subspan(entry.offset, entry.size);
}

}  // namespace ttc
