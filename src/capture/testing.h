// capture/testing.h: a made-up interpreter in this process's own memory, for tests only. No product code may include
// it.
//
// The engine reads real memory (memory::LocalReader) through a Layout, so a test may have structures of its own: the
// ones below, which are laid out by offsetof.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "capture/cpu_sampler.h"
#include "capture/sink.h"

namespace plimsoll::capture::testing {

// A str.
struct FakeText {
  const void* type;
  std::uint64_t length;
  std::uint32_t state;  // width 1, compact, ASCII
  char characters[116];
};
// A bytes object.
struct FakeBytes {
  const void* type;
  std::uint64_t size;
  char data[16];
};
// A code object.
struct FakeCode {
  const void* type;
  std::uint64_t units;
  const FakeText* name;
  const FakeText* file;
  const FakeBytes* line_table;
  std::int32_t first_line;
  std::uint8_t bytecode[64];
};
// A frame of the interpreter.
struct FakeFrame {
  const FakeCode* code;
  const FakeFrame* previous;
  const std::uint8_t* instruction;
  std::uint8_t owner;
};
// A thread state, and its neighbours in the list of all.
struct FakeThreadState {
  std::atomic<const FakeFrame*> current_frame{nullptr};
  const FakeThreadState* previous = nullptr;
  const FakeThreadState* next = nullptr;
};

inline constexpr int kFakeCodeType = 0;  // its address is what counts

inline cpython::Layout fake_layout() {
  cpython::Layout layout;
  layout.version = {3, 14, 0};
  layout.frame_style = cpython::FrameStyle::kDirect;
  layout.position_style = cpython::PositionStyle::kInstruction;
  layout.line_table_style = cpython::LineTableStyle::kLocations;
  layout.tstate = {.current_frame = offsetof(FakeThreadState, current_frame),
                   .thread_id = 0,
                   .previous = offsetof(FakeThreadState, previous),
                   .next = offsetof(FakeThreadState, next)};
  layout.frame = {.executable = offsetof(FakeFrame, code),
                  .previous = offsetof(FakeFrame, previous),
                  .position = offsetof(FakeFrame, instruction),
                  .owner = offsetof(FakeFrame, owner),
                  .tlbc_index = cpython::kNoField};
  layout.code = {.filename = offsetof(FakeCode, file),
                 .name = offsetof(FakeCode, name),
                 .qualname = offsetof(FakeCode, name),
                 .first_line = offsetof(FakeCode, first_line),
                 .line_table = offsetof(FakeCode, line_table),
                 .bytecode = offsetof(FakeCode, bytecode),
                 .tlbc = cpython::kNoField};
  layout.object = {.type = offsetof(FakeCode, type), .var_size = offsetof(FakeCode, units)};
  static_assert(offsetof(FakeCode, units) == offsetof(FakeBytes, size), "the size of every object is at one place");
  layout.bytes = {.data = offsetof(FakeBytes, data)};
  layout.unicode = {.state = offsetof(FakeText, state),
                    .length = offsetof(FakeText, length),
                    .ascii_size = offsetof(FakeText, characters),
                    .compact_size = offsetof(FakeText, characters),
                    .kind_shift = 0};
  layout.first_shim_owner = 3;
  return layout;
}

// Memory that holds a code object, and later perhaps another one. Its bytecode is 64 bytes, 16 to a line.
class FakeFunction {
 public:
  static constexpr std::int32_t kBytesPerLine = 16;

  explicit FakeFunction(std::string_view name, std::int32_t first_line = 10, std::string_view file = "/srv/app.py") {
    become(name, first_line, file);
  }
  FakeFunction(const FakeFunction&) = delete;
  FakeFunction& operator=(const FakeFunction&) = delete;

  // The object that was here is gone, and its memory is used for another one.
  void become(std::string_view name, std::int32_t first_line = 10, std::string_view file = "/srv/app.py") {
    put(name_, name);
    put(file_, file);
    line_table_ = {nullptr, 8, "\xef\x00\xef\x02\xef\x02\xef\x02"};  // 8 units each, no columns, 0 or 1 line on
    code_ = {&kFakeCodeType, sizeof code_.bytecode / 2, &name_, &file_, &line_table_, first_line, {}};
  }
  // The memory has been given back, and whatever is there now is not a code object.
  void vanish() { code_ = {}; }

  [[nodiscard]] Address address() const { return address_of(&code_); }
  // A frame of this function, `offset` bytes into it.
  [[nodiscard]] FakeFrame frame(std::size_t offset, const FakeFrame* caller = nullptr) const {
    return {&code_, caller, code_.bytecode + offset, 0};
  }

 private:
  static void put(FakeText& text, std::string_view characters) {
    text = {nullptr, characters.size(), 1U | 8U | 16U, {}};
    std::memcpy(text.characters, characters.data(), characters.size());
  }

  FakeText name_{};
  FakeText file_{};
  FakeBytes line_table_{};
  FakeCode code_{};
};

// The monotonic clock, later than at any call before.
inline std::int64_t later() {
  const std::int64_t start = monotonic_ns();
  std::int64_t now = start;
  while (now == start) now = monotonic_ns();
  return now;
}

// Writes down what it is told: "code 0 main", "sample main:10 inner:12", "forget 0".
class LoggingSink : public SampleSink {
 public:
  void fact(const char*, const std::string&) override {}
  void code(CodeId id, const cpython::CodeInfo& info) override {
    if (id.index() >= names_.size()) names_.resize(id.index() + 1);
    names_[id.index()] = info.name;
    log.push_back("code " + std::to_string(id.index()) + " " + info.name);
  }
  void native_function(CodeId id, const NativeFunction& function) override {
    if (id.index() >= names_.size()) names_.resize(id.index() + 1);
    names_[id.index()] = function.name;
    log.push_back("native " + std::to_string(id.index()) + " " + function.name);
  }
  void forget_code(CodeId id) override { log.push_back("forget " + std::to_string(id.index())); }
  void process(const ProcessInfo& info) override {
    log.push_back("process " + std::to_string(info.number) + " " + info.name);
  }
  void thread(const ThreadInfo&) override {}
  void sample(const Sample& sample) override {
    std::string text = sample.has_python ? "sample" : "native sample";
    if (sample.activity != Activity::kRunning)
      text += " " + std::string(plimsoll::text(sample.activity)) + " " + std::to_string(sample.weight_ns);
    if (sample.is_truncated) text += " ...";
    for (const SampleFrame& frame : sample.frames) {
      const bool is_announced = frame.code.index() < names_.size() && !names_[frame.code.index()].empty();
      text += " " + (is_announced ? names_[frame.code.index()] : "?") + ":" + std::to_string(frame.at.line);
    }
    log.push_back(text);
  }
  void allocation(const Allocation&) override {}
  void release(std::int64_t, const RawRelease&) override {}
  [[nodiscard]] bool knows_stack(std::uint32_t) const override { return false; }
  void exact_allocation(const ExactAllocation&) override {}
  void counter(const char*, const char*, std::int64_t, std::int64_t) override {}
  void marker(const MarkerEvent&) override {}
  [[nodiscard]] bool wants_flush() const override { return false; }
  [[nodiscard]] std::uint32_t code_epoch() const override { return epoch; }
  Status flush(const Totals&, Ending) override { return Ok{}; }

  std::uint32_t epoch = 1;
  std::vector<std::string> log;

 private:
  std::vector<std::string> names_;
};

}  // namespace plimsoll::capture::testing
