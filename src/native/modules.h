// native/modules.h: keeps the ModuleMap of a process up to date: of this one, while signal handlers use it, or of
// another one.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "native/eh_frame.h"
#include "native/loaded_file.h"
#include "native/made_code.h"
#include "native/module_map.h"
#include "native/process_memory.h"
#include "native/symbols.h"

namespace plimsoll::native {

// Compiles the tables of what is loaded, and notices when that changes. current() is for signal handlers; everything
// else is for one thread, which may take its time.
class Modules {
 public:
  Modules() = default;  // of this process
  explicit Modules(os::Pid other) : memory_(other) {}
  // Of a process that has ended: what was loaded, and how a file is opened.
  Modules(const memory::Image& image, std::vector<os::Mapping> mappings, OpenFile open)
      : memory_(image), mappings_(std::move(mappings)), open_(std::move(open)) {}
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;
  ~Modules();

  // What is loaded now. Valid as long as the handler runs that asked. Null before the first refresh.
  [[nodiscard]] const ModuleMap* current() const { return current_.load(std::memory_order_seq_cst); }

  // How often files were found to have been unloaded: until then, an instruction's address has meant one instruction.
  // For any thread.
  [[nodiscard]] std::uint32_t unloads() const { return unloads_.load(std::memory_order_acquire); }

  // Looks whether files were loaded or unloaded since the last call, by walking the dynamic linker's list of them, and
  // every 50 ms by their marks; or whether code was met that is in no file known. If so, a new map is published. Costs
  // a few microseconds if not. Another process's mappings are read whole instead: every 50 ms and when unknown code was
  // met, but so that it takes a fiftieth of the time at most, of which half a second can be saved up. `meanwhile` is
  // called while the tables of a large file are compiled; what it calls may use current(), but not refresh().
  Status refresh(std::int64_t now_ns, const Meanwhile& meanwhile = nullptr);

  // Whether something was loaded a moment ago, and more may follow: then it is worth while to look again soon, as code
  // that is not known yet cannot be unwound.
  [[nodiscard]] bool is_restless(std::int64_t now_ns) const { return now_ns < restless_until_ns_; }

  // Frees maps that no handler can be using any more. Call it when none is running, after a call of refresh.
  void free_retired() { retired_.clear(); }
  [[nodiscard]] bool has_retired() const { return !retired_.empty(); }

  // From now on ModuleMap::is_followed tells the code of a function of the file that has `within` among its code or
  // data. After a call of refresh. False if the file is not there, or has no such name.
  bool follow(Address within, std::string_view function);

  // Since when the files that are known now have been: what was where before is another question.
  [[nodiscard]] std::int64_t known_since_ns() const { return published_ns_; }

  // The file that an address was in at a time since the refresh before the last one; null if there was none.
  [[nodiscard]] std::shared_ptr<const Module> find(Address address, std::int64_t time_ns) const;

  // The file that has an address among its code or data now; null if there is none.
  [[nodiscard]] std::shared_ptr<const Module> module_around(Address address) const;

  // The names of a module's functions: out of its file, or of what the kernel has put into memory. None if they cannot
  // be had.
  [[nodiscard]] SymbolTable symbols_of(const Module& module) const;

  // The process, if it runs.
  [[nodiscard]] std::optional<os::Pid> process() const { return open_ ? std::nullopt : std::optional(memory_.pid()); }

  // A function that was made at run time, by where it begins, and whose maker tells debuggers of it; null if it is
  // none.
  [[nodiscard]] const std::pair<const std::uint64_t, CodeNames::Function>* find_made(Address address) const {
    return made_.find(raw(address));
  }

  // Of another process, as of the last refresh: where the mapping ends that has an address; none if none has.
  [[nodiscard]] std::optional<std::uint64_t> end_of_mapping(Address address) const;

  [[nodiscard]] std::size_t rules() const { return pool_.size(); }

 private:
  using Map = std::shared_ptr<const ModuleMap>;

  [[nodiscard]] bool has_changed(std::int64_t now_ns);
  [[nodiscard]] bool has_missed(std::int64_t now_ns);
  // Whether a file was loaded into the place of another one, of the same name and size, unseen.
  [[nodiscard]] bool has_replaced() const;
  Status refresh_other(std::int64_t now_ns);
  // What there is of code, but for what was made.
  std::vector<CodeRange> ranges_of(const std::vector<os::Mapping>& mappings, const Meanwhile& meanwhile = nullptr);
  void find_descriptors(const std::vector<CodeRange>& ranges);
  [[nodiscard]] UniqueFd open_file(const os::Mapping& first) const;
  bool has_made(std::int64_t now_ns);
  void publish(std::vector<CodeRange> ranges, std::int64_t now_ns);

  const ProcessMemory memory_{};
  RulePool pool_;
  std::atomic<const ModuleMap*> current_{nullptr};
  std::atomic<std::uint32_t> unloads_{0};
  Map newest_, before_;
  std::int64_t published_ns_ = 0;  // newest_ was
  std::vector<Map> retired_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> followed_;
  MadeCodes made_;
  std::uint64_t linked_ = 0;  // a hash of the dynamic linker's list
  std::int64_t next_miss_ns_ = 0, next_bare_ns_ = 0, next_look_ns_ = 0;
  std::int64_t paid_until_ns_ = 0;  // looks at another process are, with the time that passes
  std::int64_t restless_until_ns_ = 0;
  std::vector<os::Mapping> mappings_;  // of another process
  OpenFile open_;                      // of one that has ended
};

// The ranges of executable memory among `mappings`, with compiled tables. Those of `known` that are still there are
// kept. A file may be unloaded meanwhile.
std::vector<CodeRange> code_ranges(const std::vector<os::Mapping>& mappings, const std::vector<CodeRange>& known,
                                   RulePool& pool, const LoadedFiles& files, const Meanwhile& meanwhile = nullptr);

}  // namespace plimsoll::native
