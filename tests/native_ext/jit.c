/* What a program that makes code has for debuggers (the GDB manual, "JIT Compilation Interface"), for
   tests/targets/described_code.py. */
struct descriptor {
  unsigned version, action;
  void *relevant, *first;
};

__attribute__((visibility("default"))) struct descriptor __jit_debug_descriptor = {1, 0, 0, 0};
