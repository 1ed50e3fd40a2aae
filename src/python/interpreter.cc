#include "python/interpreter.h"

#include <Python.h>
#include <dlfcn.h>
#include <frameobject.h>
#include <pthread.h>

#include <vector>

#include "cpython/code_object.h"
#include "cpython/gil.h"
#include "cpython/walk.h"
#include "memory/local.h"
#include "python/compat.h"
#include "python/tag_binding.h"

namespace plimsoll::python {
namespace {

// The thread state of the calling thread, also while it is detached (in C code that released the GIL).
//
// We ask CPython rather than keep a pointer of our own: CPython clears its answer in the thread itself before it frees
// the state, so it never dangles. The attached state comes first because a thread may switch between the states of
// several interpreters; up to 3.11 that one is global, and is only believed if it names this thread. Both calls are a
// load or two (pthread_getspecific for the second up to 3.14). In a shared libpython a thread-local is found by
// __tls_get_addr, which is two loads more; the first call after a library was loaded that has thread-locals, too,
// brings the thread's table of these up to date, which takes memory if the program has loaded more than a dozen such
// libraries since the thread began.
capture::Interpreter::ThreadState thread_state_of_caller() {
  PyThreadState* attached = attached_thread_state();
  if (kAttachedStateIsOfThread && attached != nullptr) return {address_of(attached), true};
  if (attached != nullptr) {
    std::uint64_t thread_id = 0;
    const bool is_readable = memory::LocalReader{}.load(address_of(&attached->thread_id), thread_id);
    if (is_readable && thread_id == static_cast<std::uint64_t>(::pthread_self())) return {address_of(attached), true};
  }
  return {address_of(PyGILState_GetThisThreadState()), false};
}

// The same, for who can do without that of a detached thread.
Address attached_state_of_caller() {
  if constexpr (kAttachedStateIsOfThread) return address_of(attached_thread_state());
  const capture::Interpreter::ThreadState state = thread_state_of_caller();
  return state.is_attached ? state.address : Address{};
}

// A strong reference.
class Ref {
 public:
  explicit Ref(PyObject* object) : object_(object) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }
  [[nodiscard]] PyObject* get() const { return object_; }
  [[nodiscard]] bool is_null() const { return object_ == nullptr; }

 private:
  PyObject* object_;
};

std::string utf8(PyObject* text) {
  const char* bytes = text != nullptr ? PyUnicode_AsUTF8(text) : nullptr;
  if (bytes == nullptr) PyErr_Clear();
  return bytes != nullptr ? bytes : "";
}

Error layout_error(const cpython::Version& version, const std::string& difference) {
  return Error{ErrorKind::kUnsupported, "this build of Python " + version.text() +
                                            " does not keep its data where Plimsoll expects it (" + difference +
                                            "): it cannot be profiled"};
}

Status check_strings(const cpython::Layout& layout) {
  for (const char* text : {"plain", "M\xc3\xbcller", "\xe2\x88\x91 x", "\xf0\x9f\x9a\xa2 ship"}) {
    const Ref object(PyUnicode_FromString(text));
    std::string found;
    const bool is_read = cpython::read_text(memory::LocalReader{}, layout, address_of(object.get()), found);
    if (!is_read || found != text) return layout_error(layout.version, std::string("string \"") + text + "\"");
  }
  return Ok{};
}

// Whether a frame of ours is one that CPython hides.
bool is_hidden(const cpython::Layout& layout, const cpython::PyFrame& ours) {
  cpython::CodeInfo info;
  return cpython::read_code(memory::LocalReader{}, layout, ours.code, info) && info.is_init_cleanup();
}

// Compares one frame of ours with CPython's view of it.
Status check_frame(const cpython::Layout& layout, const cpython::PyFrame& ours, PyFrameObject* theirs) {
  const Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(theirs)));
  if (address_of(code.get()) != ours.code) return layout_error(layout.version, "code object of a frame");
  cpython::CodeInfo info;
  if (!cpython::read_code(memory::LocalReader{}, layout, ours.code, info))
    return layout_error(layout.version, "unreadable code object");
  const char* name_attribute = layout.code.qualname == cpython::kNoField ? "co_name" : "co_qualname";
  const Ref name(PyObject_GetAttrString(code.get(), name_attribute));
  const Ref file(PyObject_GetAttrString(code.get(), "co_filename"));
  if (info.name != utf8(name.get()) || info.file != utf8(file.get()))
    return layout_error(layout.version, "names of " + utf8(name.get()));
  const auto line = static_cast<std::uint32_t>(std::max(PyFrame_GetLineNumber(theirs), 0));
  const cpython::Location location =
      cpython::locate(layout.line_table_style, info.line_table, info.first_line, ours.position);
  if (ours.position == cpython::kNoPosition || location.line != line)
    return layout_error(layout.version, "line of " + info.name + ": " + std::to_string(location.line) + ", not " +
                                            std::to_string(line));
  return Ok{};
}

Status check_stack(const capture::Interpreter& interpreter) {
  const cpython::Layout& layout = interpreter.layout;
  const memory::LocalReader memory;
  if (thread_state_of_caller().address != address_of(PyThreadState_Get()))
    return layout_error(layout.version, "thread state of the calling thread");
  Address frame{};
  std::vector<cpython::PyFrame> ours(4096);
  if (!cpython::current_frame(memory, layout, thread_state_of_caller().address, frame))
    return layout_error(layout.version, "current frame");
  const cpython::Walk walk = cpython::walk_frames(memory, layout, interpreter.code_type, frame, ours);
  if (!cpython::is_proven(walk.stop)) return layout_error(layout.version, cpython::text(walk.stop));
  ours.resize(walk.count);
  std::erase_if(ours, [&](const cpython::PyFrame& found) { return is_hidden(layout, found); });
  Ref theirs(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  std::size_t count = 0;
  for (; count < ours.size() && !theirs.is_null(); ++count) {
    auto* at = reinterpret_cast<PyFrameObject*>(theirs.get());
    PLIMSOLL_TRY(check_frame(layout, ours[count], at));
    theirs = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  const bool agree = count == ours.size() && (theirs.is_null() || walk.stop == cpython::WalkStop::kTruncated);
  if (count == 0 || !agree) return layout_error(layout.version, "depth of the stack");
  return Ok{};
}

}  // namespace

Address word_of_gil(const capture::Interpreter& interpreter) {
  if (kIsFreeThreaded) return {};
  const memory::LocalReader memory;
  const cpython::Layout& layout = interpreter.layout;
  const Address gil = cpython::gil_of(memory, layout, interpreter.runtime,
                                      address_of(PyThreadState_GetInterpreter(PyThreadState_Get())));
  const Address word = offset_by(gil, layout.gil.is_locked);
  Address holder{};
  std::uint32_t is_locked = 0;
  // It is the GIL if it says that the caller has it.
  const bool is_proven = !is_null(gil) &&
                         memory::load_address(memory, offset_by(gil, layout.gil.last_holder), holder) &&
                         holder == address_of(PyThreadState_Get()) && memory.load(word, is_locked) && is_locked == 1;
  return is_proven ? word : Address{};
}

bool has_gil() { return thread_state_of_caller().is_attached; }

cpython::Version own_version() {
  const auto threading = kIsFreeThreaded ? cpython::Version::Threading::kFree : cpython::Version::Threading::kGil;
  return cpython::Version::from_hex(static_cast<std::uint32_t>(running_version()), threading);
}

Result<capture::Interpreter> find_interpreter() {
  PLIMSOLL_TRY(memory::FaultGuard::ensure_installed());
  const Address runtime = address_of(::dlsym(RTLD_DEFAULT, "_PyRuntime"));
  const Result<cpython::Layout> layout = cpython::find_layout(memory::LocalReader{}, own_version(), runtime);
  if (!layout.ok()) return layout.error();
  capture::Interpreter interpreter{layout.value(), address_of(&PyCode_Type), runtime, &thread_state_of_caller, {}};
  PLIMSOLL_TRY(check_strings(interpreter.layout));
  PLIMSOLL_TRY(check_stack(interpreter));
  interpreter.tags = find_tag_source(interpreter.layout);
  interpreter.attached_state_of_caller = &attached_state_of_caller;
  return interpreter;
}

}  // namespace plimsoll::python
