// formats/zip.cc: minizip, which writes to a string instead of a file.
#include "formats/zip.h"

#include <minizip/zip.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

namespace plimsoll::formats {
namespace {

// What minizip takes for its file.
struct Output {
  std::string bytes;
  std::size_t position = 0;
};

Output& output_of(voidpf opaque) { return *static_cast<Output*>(opaque); }

voidpf open_output(voidpf opaque, const void*, int) { return opaque; }
uLong read_output(voidpf, voidpf, void*, uLong) { return 0; }
uLong write_output(voidpf opaque, voidpf, const void* from, uLong size) {
  Output& output = output_of(opaque);
  output.bytes.resize(std::max(output.bytes.size(), output.position + size));
  std::memcpy(output.bytes.data() + output.position, from, size);
  output.position += size;
  return size;
}
ZPOS64_T tell_output(voidpf opaque, voidpf) { return output_of(opaque).position; }
long seek_output(voidpf opaque, voidpf, ZPOS64_T offset, int origin) {
  Output& output = output_of(opaque);
  ZPOS64_T from = 0;
  if (origin == ZLIB_FILEFUNC_SEEK_CUR) from = output.position;
  if (origin == ZLIB_FILEFUNC_SEEK_END) from = output.bytes.size();
  if (from + offset > output.bytes.size()) return -1;
  output.position = from + offset;
  return 0;
}
int close_output(voidpf, voidpf) { return 0; }
int error_of_output(voidpf, voidpf) { return 0; }

Error failed(std::string_view what) {
  return {ErrorKind::kSystem, "cannot write a zip archive: no memory for " + std::string(what)};
}

tm_zip date_of(std::int64_t realtime_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t k1980 = 315'532'800;
  const std::time_t seconds = std::max(realtime_ns / kSecond, k1980);
  std::tm date{};
  ::gmtime_r(&seconds, &date);
  const auto number = [](int value) { return static_cast<uInt>(value); };
  return {number(date.tm_sec),  number(date.tm_min), number(date.tm_hour),
          number(date.tm_mday), number(date.tm_mon), number(date.tm_year + 1900)};
}

}  // namespace

struct ZipWriter::State {
  Output output;
  zipFile file = nullptr;
  tm_zip date{};
  ~State() {
    if (file != nullptr) ::zipClose(file, nullptr);
  }
};

ZipWriter::ZipWriter(std::int64_t realtime_ns) : state_(std::make_unique<State>()) {
  zlib_filefunc64_def functions{open_output, read_output,  write_output,    tell_output,
                                seek_output, close_output, error_of_output, &state_->output};
  state_->file = ::zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &functions);
  state_->date = date_of(realtime_ns);
}
ZipWriter::ZipWriter(ZipWriter&&) noexcept = default;
ZipWriter& ZipWriter::operator=(ZipWriter&&) noexcept = default;
ZipWriter::~ZipWriter() = default;

Status ZipWriter::add(const std::string& name, std::string_view bytes) {
  constexpr uLong kUtf8Names = 1U << 11U;
  constexpr uLong kMadeByUnix = 3U << 8U;
  constexpr uLong kModeShift = 16, kMode = 0100644;  // a plain file, as the archive's readers on Unix shall make it
  constexpr std::size_t kLargestPlain = 0xffffffffU;
  constexpr std::size_t kPart = std::size_t{1} << 30U;
  if (state_->file == nullptr) return failed("it");
  const zip_fileinfo info{state_->date, 0, 0, kMode << kModeShift};
  const int is_large = bytes.size() >= kLargestPlain ? 1 : 0;
  int state = ::zipOpenNewFileInZip4_64(state_->file, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED,
                                        Z_DEFAULT_COMPRESSION, 0, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY,
                                        nullptr, 0, kMadeByUnix, kUtf8Names, is_large);
  for (; state == ZIP_OK && !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPart)))
    state = ::zipWriteInFileInZip(state_->file, bytes.data(), static_cast<unsigned>(std::min(bytes.size(), kPart)));
  if (state == ZIP_OK) state = ::zipCloseFileInZip(state_->file);
  return state == ZIP_OK ? Status(Ok{}) : Status(failed(name));
}

Result<std::string> ZipWriter::finish() {
  const zipFile file = std::exchange(state_->file, nullptr);  // which zipClose frees, also if it fails
  if (file == nullptr || ::zipClose(file, nullptr) != ZIP_OK) return failed("its list");
  return std::move(state_->output.bytes);
}

std::string safe_zip_name(std::string_view path) {
  constexpr std::size_t kLongest = 200;  // of an element, where systems take 255
  std::string name;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find_first_of("/\\"), path.size());
    std::string element(path.substr(0, std::min(end, kLongest)));
    path.remove_prefix(std::min(path.size(), end + 1));
    std::replace_if(
        element.begin(), element.end(),
        [](char c) {
          const auto byte = static_cast<unsigned char>(c);
          return byte < ' ' || byte >= 0x7f || std::string_view("<>:\"|?*").find(c) != std::string_view::npos;
        },
        '_');
    if (element.empty() || element == "." || element == "..") continue;
    name += (name.empty() ? "" : "/") + element;
  }
  return name.empty() ? "_" : name;
}

}  // namespace plimsoll::formats
