#include "python/code_hook.h"

#include <Python.h>
#include <sched.h>

#include <atomic>

namespace plimsoll::python {
namespace {

std::atomic<capture::CodeRegistry*> watching_registry{nullptr};
std::atomic<int> running_reports{0};
destructor original_dealloc = nullptr;

// Sequentially consistent, like what whoever takes the registry away does: either that one sees this report, or this
// report sees that the registry is gone.
void dealloc_code(PyObject* code) {
  running_reports.fetch_add(1, std::memory_order_seq_cst);
  if (capture::CodeRegistry* registry = watching_registry.load(std::memory_order_seq_cst))
    registry->on_destroy(address_of(code));
  running_reports.fetch_sub(1, std::memory_order_acq_rel);
  original_dealloc(code);
}

}  // namespace

void watch_code_deaths(capture::CodeRegistry* registry) {
  // Stays in place once installed: somebody else may have stacked a destructor of theirs on ours.
  if (original_dealloc == nullptr) {
    original_dealloc = PyCode_Type.tp_dealloc;
    std::atomic_ref(PyCode_Type.tp_dealloc).store(dealloc_code, std::memory_order_release);
  }
  watching_registry.store(registry, std::memory_order_seq_cst);
  if (registry == nullptr)
    while (running_reports.load(std::memory_order_seq_cst) != 0) ::sched_yield();
}

void watch_code_deaths_after_fork() {
  watching_registry.store(nullptr, std::memory_order_release);
  running_reports.store(0, std::memory_order_release);  // reporters on other threads do not exist here
}

}  // namespace plimsoll::python
