#include "native/code_names.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

namespace plimsoll::native {
namespace {

// The hexadecimal number at the beginning of a line, and the space behind it. False if there is none.
bool take_number(std::string_view& line, std::uint64_t& number) {
  if (line.starts_with("0x")) line.remove_prefix(2);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
  if (error != std::errc{} || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

template <typename Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number number{};
  if (offset + sizeof number <= bytes.size()) std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

constexpr std::uint32_t kMagic = 0x4a695444;
constexpr std::size_t kFileHead = 40;  // at least; its size stands at 8
constexpr std::size_t kRecordHead = 16;
enum class Record : std::uint32_t { kLoad, kMove };

void read_record(std::string_view record, CodeNames& names) {
  // struct jr_code_load and jr_code_move, behind their heads and the numbers of process and thread.
  constexpr std::size_t kAddress = 32, kSize = 40, kName = 56, kFrom = 32, kTo = 40, kMovedSize = 48;
  switch (Record{number_at<std::uint32_t>(record, 0)}) {
    case Record::kLoad:
      if (record.size() <= kName) return;
      return names.add(number_at<std::uint64_t>(record, kAddress), number_at<std::uint64_t>(record, kSize),
                       record.substr(kName, record.substr(kName).find('\0')));
    case Record::kMove:
      return names.move(number_at<std::uint64_t>(record, kFrom), number_at<std::uint64_t>(record, kTo),
                        number_at<std::uint64_t>(record, kMovedSize));
  }
}

}  // namespace

void CodeNames::add(std::uint64_t start, std::uint64_t size, std::string_view name) {
  if (size == 0 || start + size < start) return;
  auto at = functions_.lower_bound(start);
  if (at != functions_.begin() && std::prev(at)->second.end > start) --at;
  while (at != functions_.end() && at->first < start + size) at = erase(at);
  name = name.substr(0, kLongestName);
  if (functions_.size() >= kMostNames || name.size() > kMostBytes - bytes_) return;
  functions_.emplace(start, Function{start + size, std::string(name)});
  bytes_ += name.size();
}

std::map<std::uint64_t, CodeNames::Function>::iterator CodeNames::erase(
    std::map<std::uint64_t, Function>::iterator at) {
  bytes_ -= at->second.name.size();
  return functions_.erase(at);
}

void CodeNames::move(std::uint64_t from, std::uint64_t to, std::uint64_t size) {
  const auto found = functions_.find(from);
  if (found == functions_.end()) return;
  const std::string name = found->second.name;
  erase(found);
  add(to, size, name);
}

std::size_t read_perf_map(std::string_view bytes, CodeNames& names) {
  std::size_t done = 0;
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n', done)) {
    std::string_view line = bytes.substr(done, end - done);
    done = end + 1;
    std::uint64_t start = 0, size = 0;
    if (take_number(line, start) && take_number(line, size)) names.add(start, size, line);
  }
  return done;
}

std::size_t read_jitdump(std::string_view bytes, bool& is_begun, CodeNames& names) {
  std::size_t done = 0;
  if (!is_begun) {
    if (bytes.size() < kFileHead) return 0;
    const auto head = number_at<std::uint32_t>(bytes, 8);
    if (number_at<std::uint32_t>(bytes, 0) != kMagic || head < kFileHead) return bytes.size();
    if (bytes.size() < head) return 0;
    is_begun = true;
    done = head;
  }
  while (bytes.size() - done >= kRecordHead) {
    const auto size = number_at<std::uint32_t>(bytes, done + 4);
    if (size < kRecordHead) return bytes.size();  // damaged: what follows cannot be found
    if (size > bytes.size() - done) break;
    read_record(bytes.substr(done, size), names);
    done += size;
  }
  return done;
}

}  // namespace plimsoll::native
