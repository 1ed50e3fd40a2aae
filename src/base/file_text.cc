#include "base/file_text.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/regular_file.h"

namespace plimsoll {

std::optional<FileText> read_text(const UniqueFd& file, std::size_t most) {
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0) return std::nullopt;
  if (!S_ISREG(facts.st_mode) || static_cast<std::size_t>(facts.st_size) > most) return std::nullopt;
  FileText out;
  out.modified_ns = std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
  out.text.resize(static_cast<std::size_t>(facts.st_size));
  std::size_t done = 0;
  while (done < out.text.size()) {
    const ssize_t got = ::read(file.get(), out.text.data() + done, out.text.size() - done);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  out.text.resize(done);
  return out;
}

std::optional<FileText> read_text(const std::string& path, std::size_t most) {
  return read_text(open_regular_file(path), most);
}

}  // namespace plimsoll
