#include "native/modules.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "memory/local.h"
#include "native/loaded_file.h"

namespace plimsoll::native {
namespace {

constexpr std::int64_t kRestless = 500'000'000;       // after something was loaded
constexpr std::int64_t kBetweenMisses = 100'000'000;  // between looks at the mappings because of unknown code
constexpr std::int64_t kBetweenLooks = 50'000'000;    // at another process's mappings
// Of another process: a look takes this part of the time that passes, of which so much can be saved up.
constexpr std::int64_t kLeastShare = 50;
constexpr std::int64_t kMostSaved = 500'000'000;
constexpr std::uint64_t kLargestImage = std::uint64_t{1} << 20U;

// The dynamic linker's list of what is loaded, as one number.
std::uint64_t hash_of_linked() {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15U;
  constexpr int kMost = 100'000;
  const memory::LocalReader memory;
  std::uint64_t hash = 1;
  std::uint64_t at = reinterpret_cast<std::uint64_t>(_r_debug.r_map);
  // Somebody may change the list meanwhile, and free what is in it: then the numbers are wrong, and so differ from
  // those of the next time.
  for (int seen = 0; at != 0 && seen < kMost; ++seen) {
    std::uint64_t words[4];  // l_addr, l_name, l_ld, l_next
    static_assert(offsetof(link_map, l_next) == 3 * sizeof words[0]);
    if (!memory.read(Address{at}, words, sizeof words)) return 0;
    for (const std::uint64_t word : words) hash = (hash ^ word) * kGoldenRatio;
    at = words[3];
  }
  return hash;
}

bool is_same(const os::Mapping& a, const os::Mapping& b) {
  return a.start == b.start && a.inode == b.inode && a.device == b.device && a.file_offset == b.file_offset &&
         a.path == b.path;
}

std::shared_ptr<const Module> module_at(const os::Mapping& first, std::uint64_t end,
                                        const std::vector<CodeRange>& known, RulePool& pool, const LoadedFiles& files,
                                        const Meanwhile& meanwhile) {
  for (const CodeRange& range : known)
    if (range.module != nullptr && range.module->end == end && is_same(range.module->first, first) &&
        !is_replaced(*range.module, files.memory))
      return range.module;
  auto module = std::make_shared<Module>();
  module->first = first;
  module->end = end;
  compile(*module, pool, files, meanwhile);
  return module;
}

// Whether all code is where it was.
bool have_same_code(const std::vector<os::Mapping>& a, const std::vector<os::Mapping>& b) {
  const auto next = [](auto at, auto end) {
    return std::find_if(at, end, [](const os::Mapping& each) { return each.is_executable; });
  };
  auto left = next(a.begin(), a.end());
  auto right = next(b.begin(), b.end());
  while (left != a.end() && right != b.end() && left->end == right->end && is_same(*left, *right)) {
    left = next(left + 1, a.end());
    right = next(right + 1, b.end());
  }
  return left == a.end() && right == b.end();
}

bool is_of_file(const os::Mapping& mapping) { return mapping.inode != 0 || mapping.path == "[vdso]"; }

// A loaded file's mappings, as one follows the other.
class FileMappings {
 public:
  FileMappings(const os::Mapping& first, const ProcessMemory& memory)
      : first_(first), memory_(memory), has_code_(first.is_executable) {}

  // Whether the next mapping is of what was loaded with the first one.
  bool take(const os::Mapping& next) {
    if (!os::are_of_one_file(next, first_) || next.path != first_.path) return false;
    // Where the file begins once more it was loaded again; or a linker that does not align parts in the file (lld) has
    // made it smaller than a page up to there. (What has no code is no module, and may be a device: it is not read.)
    if (next.file_offset == 0 && (!(has_code_ || next.is_executable) || !has_part_at(next))) return false;
    has_code_ = has_code_ || next.is_executable;
    return true;
  }

 private:
  // Whether the headers at the first mapping say that a part of the file belongs where `next` is.
  bool has_part_at(const os::Mapping& next) {
    if (!is_read_) is_read_ = read_headers(memory_, first_.start, headers_);
    const Elf64_Phdr* lowest = header_of(headers_, PT_LOAD);
    if (lowest == nullptr) return false;
    const std::uint64_t slide = slide_of(first_.start, *lowest);
    return std::any_of(headers_.begin(), headers_.end(), [&](const Elf64_Phdr& each) {
      return each.p_type == PT_LOAD && slide + each.p_vaddr - next.start == each.p_offset &&
             each.p_offset < next.end - next.start;
    });
  }

  const os::Mapping& first_;
  const ProcessMemory& memory_;
  std::vector<Elf64_Phdr> headers_;
  bool has_code_, is_read_ = false;
};

// Whether code in `before` that was known is not there, or elsewhere, in `after`.
bool lacks_some(const std::vector<CodeRange>& before, const std::vector<CodeRange>& after) {
  return std::any_of(before.begin(), before.end(), [&](const CodeRange& old) {
    const bool was_known = old.module != nullptr || old.made != nullptr;
    return was_known && std::none_of(after.begin(), after.end(), [&](const CodeRange& now) {
             return now.module == old.module && now.made == old.made && now.start == old.start;
           });
  });
}

// Whether some may have been made at run time.
bool has_code_of_no_file(const std::vector<CodeRange>& ranges) {
  constexpr std::uint64_t kKernel = std::uint64_t{1} << 63U;  // where [vsyscall] is
  return std::any_of(ranges.begin(), ranges.end(),
                     [](const CodeRange& each) { return each.module == nullptr && each.start < kKernel; });
}

}  // namespace

std::vector<CodeRange> code_ranges(const std::vector<os::Mapping>& mappings, const std::vector<CodeRange>& known,
                                   RulePool& pool, const LoadedFiles& files, const Meanwhile& meanwhile) {
  std::vector<CodeRange> ranges;
  for (std::size_t i = 0; i < mappings.size();) {
    // A file's mappings follow each other, from its first bytes on; what has no file may lie between them.
    std::size_t next = i + 1;
    std::size_t last = i;
    FileMappings loaded(mappings[i], files.memory);
    for (; next < mappings.size() && is_of_file(mappings[i]); ++next) {
      const bool is_more = loaded.take(mappings[next]);
      if (is_more) last = next;
      if (!is_more && mappings[next].inode != 0) break;
    }
    next = last + 1;
    std::shared_ptr<const Module> module;
    for (std::size_t at = i; at < next; ++at) {
      const os::Mapping& mapping = mappings[at];
      if (!mapping.is_executable) continue;
      if (is_of_file(mappings[i]) && mappings[i].file_offset == 0 && module == nullptr)
        module = module_at(mappings[i], mappings[last].end, known, pool, files, meanwhile);
      ranges.push_back({mapping.start, mapping.end, is_of_file(mapping) ? module : nullptr});
    }
    i = next;
  }
  return ranges;
}

Modules::~Modules() { current_.store(nullptr, std::memory_order_seq_cst); }

bool Modules::has_changed(std::int64_t now_ns) {
  const std::uint64_t linked = hash_of_linked();
  const bool has = newest_ == nullptr || linked != linked_ || linked == 0;
  linked_ = linked;
  const bool is_time = now_ns >= next_look_ns_;
  if (is_time) next_look_ns_ = now_ns + kBetweenLooks;
  return has_missed(now_ns) || has || (is_time && has_replaced());
}

bool Modules::has_replaced() const {
  const Module* last = nullptr;
  for (const CodeRange& range : newest_->ranges()) {
    if (range.module.get() == last || range.module == nullptr) continue;
    last = range.module.get();
    if (is_replaced(*last, memory_)) return true;
  }
  return false;
}

bool Modules::has_missed(std::int64_t now_ns) {
  if (newest_ == nullptr || now_ns < next_miss_ns_ || !newest_->take_missed()) return false;
  next_miss_ns_ = now_ns + kBetweenMisses;
  return true;
}

Status Modules::refresh(std::int64_t now_ns, const Meanwhile& meanwhile) {
  if (open_) {
    if (newest_ == nullptr) publish(ranges_of(mappings_), now_ns);
    return Ok{};
  }
  if (!memory_.is_own()) return refresh_other(now_ns);
  const bool has_made_code = has_made(now_ns);
  if (!has_changed(now_ns) && !has_made_code) return Ok{};
  const Result<std::vector<os::Mapping>> mappings = os::mappings_of(memory_.pid());
  if (!mappings.ok()) return mappings.error();
  publish(ranges_of(mappings.value(), meanwhile), now_ns);
  return Ok{};
}

std::vector<CodeRange> Modules::ranges_of(const std::vector<os::Mapping>& mappings, const Meanwhile& meanwhile) {
  const std::vector<CodeRange> none;
  const LoadedFiles files{memory_, [this](const os::Mapping& first) { return open_file(first); }};
  std::vector<CodeRange> ranges =
      code_ranges(mappings, newest_ != nullptr ? newest_->ranges() : none, pool_, files, meanwhile);
  // Another process may be looked at once only.
  if (!memory_.is_own() && has_code_of_no_file(ranges)) {
    find_descriptors(ranges);
    made_.look(memory_, pool_);
  }
  return ranges;
}

void Modules::find_descriptors(const std::vector<CodeRange>& ranges) {
  made_.find_descriptors(ranges, [this](const Module& module) { return open_file(module.first); });
}

UniqueFd Modules::open_file(const os::Mapping& first) const {
  return open_ ? open_(first) : os::open_mapped_file(memory_.pid(), first);
}

bool Modules::has_made(std::int64_t now_ns) {
  if (newest_ == nullptr) return false;
  if (now_ns >= next_bare_ns_ && newest_->take_bare()) {
    next_bare_ns_ = now_ns + kBetweenMisses;
    find_descriptors(newest_->ranges());
  }
  return made_.look(memory_, pool_);
}

Status Modules::refresh_other(std::int64_t now_ns) {
  const bool is_missed = newest_ != nullptr && now_ns >= paid_until_ns_ && newest_->take_missed();
  if (!is_missed && now_ns < next_look_ns_) return Ok{};
  const std::int64_t used_before_ns = thread_cpu_ns();
  Result<std::vector<os::Mapping>> mappings = os::mappings_of(memory_.pid());
  if (!mappings.ok()) return mappings.error();
  const bool is_news = newest_ == nullptr || !have_same_code(mappings.value(), mappings_) || has_replaced();
  mappings_ = mappings.take();
  const bool has_made_code = has_made(now_ns);
  // Files are loaded one after the other: who has met code of the first one meets that of the next a moment later.
  const std::int64_t used_ns = thread_cpu_ns() - used_before_ns;
  paid_until_ns_ = std::max(paid_until_ns_, now_ns - kMostSaved) + kLeastShare * used_ns;
  next_look_ns_ = std::max(now_ns + kBetweenLooks, paid_until_ns_);
  if (!is_news && !has_made_code) return Ok{};
  publish(ranges_of(mappings_), now_ns);
  free_retired();
  return Ok{};
}

std::optional<std::uint64_t> Modules::end_of_mapping(Address address) const {
  const auto after = std::upper_bound(mappings_.begin(), mappings_.end(), raw(address),
                                      [](std::uint64_t at, const os::Mapping& each) { return at < each.end; });
  if (after == mappings_.end() || raw(address) < after->start) return std::nullopt;
  return after->end;
}

SymbolTable Modules::symbols_of(const Module& module) const {
  if (module.first.inode != 0) return SymbolTable::of_file(open_file(module.first).get());
  std::string image(std::min(module.end - module.first.start, kLargestImage), '\0');
  if (!memory_.read(Address{module.first.start}, image.data(), image.size())) return {};
  return SymbolTable::of_image(image);
}

void Modules::publish(std::vector<CodeRange> ranges, std::int64_t now_ns) {
  ranges = made_.put_into(std::move(ranges));
  const bool has_unloaded = newest_ != nullptr && lacks_some(newest_->ranges(), ranges);
  if (before_ != nullptr) retired_.push_back(before_);
  before_ = newest_;
  newest_ = std::make_shared<const ModuleMap>(std::move(ranges), pool_, followed_);
  published_ns_ = now_ns;
  restless_until_ns_ = now_ns + kRestless;
  current_.store(newest_.get(), std::memory_order_seq_cst);
  if (has_unloaded) unloads_.fetch_add(1, std::memory_order_release);
}

bool Modules::follow(Address within, std::string_view function) {
  const std::shared_ptr<const Module> module = module_around(within);
  if (module == nullptr) return false;
  followed_ = symbols_of(*module).parts_of(function);
  for (auto& [start, end] : followed_) {
    start += module->slide;
    end += module->slide;
  }
  if (!followed_.empty()) publish(newest_->ranges(), published_ns_);
  return !followed_.empty();
}

std::shared_ptr<const Module> Modules::module_around(Address address) const {
  if (newest_ == nullptr) return nullptr;
  for (const CodeRange& range : newest_->ranges())
    if (range.module != nullptr && range.module->first.start <= raw(address) && raw(address) < range.module->end)
      return range.module;
  return nullptr;
}

std::shared_ptr<const Module> Modules::find(Address address, std::int64_t time_ns) const {
  for (const Map& map : {time_ns < published_ns_ && before_ != nullptr ? before_ : newest_, newest_}) {
    const CodeRange* range = map != nullptr ? map->find(raw(address)) : nullptr;
    if (range != nullptr) return range->module;
  }
  return nullptr;
}

}  // namespace plimsoll::native
