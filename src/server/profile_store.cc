#include "server/profile_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file_text.h"
#include "base/new_file.h"
#include "base/regular_file.h"
#include "base/write_file.h"
#include "formats/input.h"
#include "os/os.h"
#include "server/http_server.h"

namespace plimsoll::server {
namespace {

constexpr std::size_t kMostOpen = 1000;
constexpr std::string_view kSecretName = ".plimsoll-serve";
constexpr std::array<std::string_view, 14> kEndings = {".plim",  ".prof",    ".vmprof",     ".collapsed", ".folded",
                                                       ".json",  ".json.gz", ".jslb.gz",    ".pb",        ".pb.gz",
                                                       ".pprof", ".heap.gz", ".cpuprofile", ".speedscope"};

bool is_name_of_profile(std::string_view name) {
  const bool is_plain = !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos &&
                        name.find('\0') == std::string_view::npos;
  return is_plain && std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
           return name.size() > ending.size() && name.ends_with(ending);
         });
}

// None if it is no regular file, or not called as a profile is.
std::optional<StoredProfile> profile_at(const std::string& directory, std::string name) {
  struct stat facts {};
  if (!is_name_of_profile(name) || ::lstat((directory + "/" + name).c_str(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return std::nullopt;
  return StoredProfile{std::move(name), facts.st_size, facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec};
}

// Without what a command line begins with that is not the program: the interpreter, and its options.
std::string_view program_of(std::string_view argv) {
  while (!argv.empty()) {
    const std::string_view word = argv.substr(0, argv.find(' '));
    const std::string_view name = word.substr(word.rfind('/') + 1);
    if (!name.empty() && !name.starts_with('-') && !name.starts_with("python") && !name.starts_with("pypy"))
      return name;
    argv.remove_prefix(std::min(word.size() + 1, argv.size()));
  }
  return {};
}

// What files of a command line are called: plain letters, and not hidden.
std::string program_name(std::string_view argv) {
  constexpr std::size_t kLongest = 60;
  std::string name;
  for (const char c : program_of(argv)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                          c == '-' || (c == '.' && !name.empty());
    if (is_plain && name.size() < kLongest) name += c;
  }
  return name.empty() ? "program" : name;
}

// As vmprof's server wrote them.
std::string with_dashes(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) out += '-';
    out += hex[i];
  }
  return out;
}

}  // namespace

std::vector<StoredProfile> ProfileStore::list() const {
  std::vector<StoredProfile> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error))
    if (std::optional<StoredProfile> profile = profile_at(directory_, at->path().filename().string()))
      found.push_back(std::move(*profile));
  std::sort(found.begin(), found.end(), [](const StoredProfile& a, const StoredProfile& b) {
    return a.modified_ns != b.modified_ns ? a.modified_ns > b.modified_ns : a.name < b.name;
  });
  if (found.size() > kMostListed) found.resize(kMostListed);
  return found;
}

std::optional<StoredProfile> ProfileStore::find(std::string_view name) const {
  return profile_at(directory_, std::string(name));
}

Result<std::string> ProfileStore::begin(std::string_view argv) {
  constexpr std::size_t kBytes = 16;
  const Result<std::string> random = os::random_hex(kBytes);
  if (!random.ok()) return random.error();
  if (open_.size() == kMostOpen) open_.pop_front();
  std::string number = with_dashes(random.value());
  open_.push_back({number, program_name(argv) + "-" + number});
  return number;
}

const ProfileStore::Entry* ProfileStore::entry_of(std::string_view number) const {
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const Entry& each) { return each.number == number; });
  return found != open_.end() ? &*found : nullptr;
}

Result<Arriving> ProfileStore::receive() const {
  const Result<std::string> random = os::random_hex(kSecretBytes);
  if (!random.ok()) return random.error();
  std::string path = directory_ + "/.arriving-" + random.value();
  Result<UniqueFd> file = begin_new_file(path);
  if (!file.ok()) return file.error();
  return Arriving{file.take(), std::move(path)};
}

Status ProfileStore::keep(std::string_view entry, Kind kind, const std::string& path) {
  const Entry* const found = entry_of(entry);
  if (found == nullptr) return Error{ErrorKind::kUsage, "there is no such entry"};
  if (kind == Kind::kProfile) {
    const Result<profile::Profile> profile = formats::read_profile_file(path);
    if (!profile.ok()) return Error{ErrorKind::kBadInput, "what was sent is no profile"};
  }
  const std::string name = directory_ + "/" + found->name + (kind == Kind::kProfile ? ".prof" : ".prof.jit");
  if (::rename(path.c_str(), name.c_str()) != 0)
    return Error{ErrorKind::kSystem, std::string("it cannot be kept: ") + std::strerror(errno), errno};
  return Ok{};
}

void ProfileStore::freeze(std::string_view entry) {
  std::erase_if(open_, [&](const Entry& each) { return each.number == entry; });
}

Result<std::string> ProfileStore::secret() const {
  constexpr std::size_t kDigits = 2 * kSecretBytes;
  const std::string path = directory_ + "/" + std::string(kSecretName);
  if (const UniqueFd file = open_regular_file_nofollow(path); file.is_open()) {
    struct stat facts {};
    const std::optional<FileText> kept = read_text(file, kDigits);
    const bool is_ours = ::fstat(file.get(), &facts) == 0 && facts.st_uid == ::geteuid() && (facts.st_mode & 077U) == 0;
    const bool is_whole =
        kept && kept->text.size() == kDigits && kept->text.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (is_ours && is_whole) return kept->text;
  }
  Result<std::string> fresh = os::random_hex(kSecretBytes);
  if (!fresh.ok()) return fresh.error();
  const Result<UniqueFd> file = begin_new_file(path);
  if (!file.ok()) return file.error();
  if (const int error = write_all(file.value().get(), fresh.value()); error != 0)
    return Error{ErrorKind::kSystem, "cannot write " + path + ": " + std::strerror(error), error};
  return fresh;
}

}  // namespace plimsoll::server
