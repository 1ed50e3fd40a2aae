// jitlog/disassembler.cc: capstone, instruction by instruction.
#include "jitlog/disassembler.h"

#include <memory>
#include <optional>
#include <utility>

#include "jitlog/capstone_library.h"

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
  const Result<const CapstoneLibrary*> library = capstone_library();
  if (!library.ok()) return library.error();
  const CapstoneLibrary& capstone = *library.value();
  csh handle = 0;
  if (const cs_err error = capstone.open(known->arch, known->mode, &handle); error != CS_ERR_OK)
    return Error{ErrorKind::kSystem, std::string("no disassembler: ") + capstone.strerror(error)};
  Disassembler disassembler(capstone, handle);
  capstone.option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
  return disassembler;
}

Disassembler::Disassembler(Disassembler&& other) noexcept
    : capstone_(other.capstone_), handle_(std::exchange(other.handle_, 0)) {}

Disassembler& Disassembler::operator=(Disassembler&& other) noexcept {
  std::swap(capstone_, other.capstone_);
  std::swap(handle_, other.handle_);
  return *this;
}

Disassembler::~Disassembler() {
  if (handle_ != 0) capstone_->close(&handle_);
}

std::vector<Instruction> Disassembler::instructions(std::string_view code, std::uint64_t address) const {
  const auto free_one = [this](cs_insn* one) { capstone_->free(one, 1); };
  const std::unique_ptr<cs_insn, decltype(free_one)> one(capstone_->malloc(handle_), free_one);
  std::vector<Instruction> all;
  if (one == nullptr) return all;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(code.data());
  std::size_t left = code.size();
  std::uint64_t at = address;
  while (left > 0 && capstone_->disasm_iter(handle_, &bytes, &left, &at, one.get())) {
    std::string text(one->mnemonic);
    if (one->op_str[0] != '\0') text.append(" ").append(one->op_str);
    all.push_back({static_cast<std::size_t>(one->address - address), std::move(text)});
  }
  return all;
}

}  // namespace plimsoll::jitlog
