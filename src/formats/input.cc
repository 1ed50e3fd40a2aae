// formats/input.cc: finding the reader of bytes.
#include "formats/input.h"

#include <algorithm>

#include "base/file_bytes.h"
#include "formats/foreign_readers.h"
#include "formats/refusals.h"
#include "profile/plim_format.h"
#include "profile/plim_reader.h"

namespace plimsoll::formats {
namespace {

// A compressed profile unpacks to at most this: a small file must not fill the memory.
constexpr std::size_t kLargestUnpacked = std::size_t{4} << 30U;

bool is_plim(std::string_view bytes) { return bytes.starts_with(profile::plim::kMagic); }

Error unknown_format(std::string_view bytes) {
  std::string names;
  for (const Reader& reader : readers()) names += (names.empty() ? "" : ", ") + std::string(reader.name);
  const std::string_view what = bytes.empty() ? "empty, so no profile" : "not a profile that can be read";
  return {ErrorKind::kBadInput, std::string(what) + "; formats are " + names};
}

// Null if there is none.
const Reader* reader_of(std::string_view bytes) {
  const std::vector<Reader>& all = readers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Reader& one) { return one.recognises(bytes); });
  return found == all.end() ? nullptr : &*found;
}

Result<profile::Profile> read_plain(std::string_view bytes) {
  if (const Reader* reader = reader_of(bytes)) return reader->read(bytes);
  return refusal(bytes).value_or(unknown_format(bytes));
}

// A file larger than this is not copied if its reader puts aside what it has read, as the copy would take more memory
// than the profile.
constexpr std::size_t kLargestCopy = std::size_t{256} << 20U;

// An error in a file's bytes names the file.
Result<profile::Profile> named(Result<profile::Profile> profile, const std::string& path) {
  if (profile.ok()) return profile;
  return Error{profile.error().kind, path + ": " + profile.error().message};
}

Result<profile::Profile> read_regular(const RegularFile& file, const std::string& path) {
  if (file.size > kLargestCopy) {
    const Result<MappedFile> mapped = MappedFile::map(file, path);
    if (!mapped.ok()) return mapped.error();
    if (const Reader* reader = reader_of(mapped.value().view()); reader != nullptr && reader->read_file != nullptr)
      return named(reader->read_file(mapped.value()), path);
  }
  const Result<FileBytes> bytes = FileBytes::read(file, path);
  if (!bytes.ok()) return bytes.error();
  return named(read_profile(bytes.value().view()), path);
}

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = [] {
    std::vector<Reader> list = foreign_readers();
    list.insert(list.begin(), {"plim", "Plimsoll's own profiles", is_plim, profile::read_plim});
    return list;
  }();
  return all;
}

Result<profile::Profile> read_profile(std::string_view bytes) {
  if (!is_gzip(bytes)) return read_plain(bytes);
  const Result<Gunzipped> plain = gunzip(bytes, kLargestUnpacked);
  if (!plain.ok()) return plain.error();
  Result<profile::Profile> profile = read_plain(plain.value().bytes);
  if (profile.ok() && !plain.value().is_whole) profile.value().complete = false;
  return profile;
}

Result<Gunzipped> unpacked(std::string bytes) {
  if (!is_gzip(bytes)) return Gunzipped{std::move(bytes), true};
  return gunzip(bytes, kLargestUnpacked);
}

Result<Gunzipped> read_unpacked_file(const std::string& path) {
  const Result<FileBytes> file = FileBytes::read(path);
  if (!file.ok()) return file.error();
  Result<Gunzipped> bytes = unpacked(std::string(file.value().view()));
  if (!bytes.ok()) return Error{bytes.error().kind, path + ": " + bytes.error().message};
  return bytes;
}

Result<profile::Profile> read_profile_file(const std::string& path) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file.ok()) return file.error();
  return read_regular(file.value(), path);
}

}  // namespace plimsoll::formats
