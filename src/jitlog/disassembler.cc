// jitlog/disassembler.cc: capstone, instruction by instruction.
#include "jitlog/disassembler.h"

#include <capstone/capstone.h>

#include <memory>
#include <optional>
#include <utility>

namespace plimsoll::jitlog {
namespace {

// What capstone calls a machine.
struct Machine {
  cs_arch arch;
  cs_mode mode;
};
std::optional<Machine> machine_called(std::string_view name, bool is_32bit) {
  if (name == "aarch64" || name == "arm64") return Machine{CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN};
  if (name == "x86_64" || name == "x86-64" || name == "amd64")
    return Machine{CS_ARCH_X86, is_32bit ? CS_MODE_32 : CS_MODE_64};
  if (name == "x86" || name == "i386" || name == "i686") return Machine{CS_ARCH_X86, CS_MODE_32};
  return std::nullopt;
}

}  // namespace

Result<Disassembler> Disassembler::open(std::string_view machine, bool is_32bit) {
  const std::optional<Machine> known = machine_called(machine, is_32bit);
  if (!known)
    return Error{ErrorKind::kUnsupported, "machine code of \"" + std::string(machine) +
                                              "\" cannot be shown as instructions; that of x86 and aarch64 can"};
  csh handle = 0;
  if (const cs_err error = cs_open(known->arch, known->mode, &handle); error != CS_ERR_OK)
    return Error{ErrorKind::kSystem, std::string("no disassembler: ") + cs_strerror(error)};
  Disassembler disassembler(handle);
  cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
  return disassembler;
}

Disassembler::Disassembler(Disassembler&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}

Disassembler& Disassembler::operator=(Disassembler&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

Disassembler::~Disassembler() {
  if (handle_ != 0) cs_close(&handle_);
}

std::vector<Instruction> Disassembler::instructions(std::string_view code, std::uint64_t address) const {
  const auto free_one = [](cs_insn* one) { cs_free(one, 1); };
  const std::unique_ptr<cs_insn, decltype(free_one)> one(cs_malloc(handle_), free_one);
  std::vector<Instruction> all;
  if (one == nullptr) return all;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(code.data());
  std::size_t left = code.size();
  std::uint64_t at = address;
  while (left > 0 && cs_disasm_iter(handle_, &bytes, &left, &at, one.get())) {
    std::string text(one->mnemonic);
    if (one->op_str[0] != '\0') text.append(" ").append(one->op_str);
    all.push_back({static_cast<std::size_t>(one->address - address), std::move(text)});
  }
  return all;
}

}  // namespace plimsoll::jitlog
