// minizip over an AtomicFile. Alignment comes from a filler in the local header's extra field: id "FB", then Zs.
#include "formats/zip_write.h"

#include <zip.h>

#include <algorithm>
#include <exception>

#include "support/error.h"

namespace ttc {

struct ZipWriter::State {
  AtomicFile& file;
  zipFile handle = nullptr;
  std::exception_ptr error;  // C code cannot pass an exception on
};

namespace {

constexpr std::size_t written_header_size = 30, zip64_extra_size = 20, filler_header_size = 4;
constexpr std::uint64_t zip64_limit = 0xFFFFFFFF;

}  // namespace

ZipWriter::ZipWriter(AtomicFile& file) : state_(new State{.file = file, .handle = nullptr, .error = nullptr}) {
  zlib_filefunc64_def functions{};
  functions.opaque = state_.get();
  functions.zopen64_file = [](voidpf opaque, const void*, int) { return opaque; };
  functions.zread_file = [](voidpf, voidpf, void*, uLong) -> uLong { return 0; };
  functions.zwrite_file = [](voidpf, voidpf stream, const void* data, uLong size) -> uLong {
    auto* state = static_cast<State*>(stream);
    try {
      state->file.write(data, size);
      return size;
    } catch (...) {
      state->error = std::current_exception();
      return 0;
    }
  };
  functions.ztell64_file = [](voidpf, voidpf stream) -> ZPOS64_T {
    return static_cast<State*>(stream)->file.position();
  };
  functions.zseek64_file = [](voidpf, voidpf stream, ZPOS64_T offset, int origin) -> long {
    AtomicFile& out = static_cast<State*>(stream)->file;
    const std::uint64_t base = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                               : origin == ZLIB_FILEFUNC_SEEK_CUR ? out.position()
                                                                  : out.size();
    out.seek(base + offset);
    return 0;
  };
  functions.zclose_file = [](voidpf, voidpf) { return 0; };
  functions.zerror_file = [](voidpf, voidpf stream) { return static_cast<State*>(stream)->error ? 1 : 0; };
  state_->handle = zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &functions);
  TTC_CHECK(state_->handle, "minizip cannot start an archive");
}

ZipWriter::~ZipWriter() {
  if (state_->handle) zipClose(state_->handle, nullptr);
}

void ZipWriter::add(const std::string& name, std::string_view content) {
  add(name, std::as_bytes(std::span(content.data(), content.size())));
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> content) {
  const auto check = [&](int status) {
    if (state_->error) std::rethrow_exception(state_->error);
    TTC_CHECK(status == ZIP_OK, "minizip cannot write entry " + name);
  };
  const bool zip64 = content.size() >= zip64_limit;
  const std::uint64_t unfilled =
      state_->file.position() + written_header_size + name.size() + filler_header_size + (zip64 ? zip64_extra_size : 0);
  const std::size_t filler = (alignment - unfilled % alignment) % alignment;
  std::string extra = {'F', 'B', static_cast<char>(filler), '\0'};
  extra.append(filler, 'Z');
  zip_fileinfo info{};
  info.dosDate = (1U << 21) | (1U << 16);  // 1980-01-01: no clock in the bytes
  constexpr unsigned long made_by = 45, utf8_names = 1UL << 11;
  check(zipOpenNewFileInZip4_64(state_->handle, name.c_str(), &info, extra.data(), static_cast<unsigned>(extra.size()),
                                nullptr, 0, nullptr, 0, 0, 0, -15, 8, 0, nullptr, 0, made_by, utf8_names,
                                zip64 ? 1 : 0));
  TTC_CHECK(state_->file.position() % alignment == 0, "a zip entry is not aligned");
  for (std::size_t done = 0; done < content.size();) {
    const auto chunk = std::min<std::size_t>(content.size() - done, 1U << 28);
    check(zipWriteInFileInZip(state_->handle, content.data() + done, static_cast<unsigned>(chunk)));
    done += chunk;
  }
  check(zipCloseFileInZip(state_->handle));
  state_->file.seek(state_->file.size());
}

void ZipWriter::finish() {
  const int status = zipClose(state_->handle, nullptr);
  state_->handle = nullptr;
  if (state_->error) std::rethrow_exception(state_->error);
  TTC_CHECK(status == ZIP_OK, "minizip cannot finish an archive");
}

}  // namespace ttc
