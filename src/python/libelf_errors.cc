// python/libelf_errors.cc: what becomes of libelf's errors in the extension, where libelf is taken from its archive.
//
// That archive can be part of a shared object but for one of its files, elf_error.o: its thread's last error is
// thread-local as it can be in programs only. We never ask for it. Whatever else asks is told that there is none.
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming): libelf's names
extern "C" {
__attribute__((visibility("hidden"))) void __libelf_seterrno(int) {}
__attribute__((visibility("hidden"))) int elf_errno() { return 0; }
__attribute__((visibility("hidden"))) const char* elf_errmsg(int) { return nullptr; }
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
