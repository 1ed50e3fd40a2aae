// cli/convert.cc: a profile -> the bytes of a foreign format -> a file.
#include "base/write_file.h"
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/exit_code.h"
#include "cli/native_frames.h"
#include "cli/output_path.h"
#include "cli/profile_input.h"
#include "cli/suggest.h"
#include "cli/summary.h"
#include "cli/units.h"
#include "formats/registry.h"

namespace plimsoll::cli {
namespace {

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const formats::Writer& writer : formats::writers()) names.push_back(writer.name);
  return names;
}

class Convert final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "convert"; }
  [[nodiscard]] std::string_view summary() const override { return "Write a profile in a format of another tool"; }
  [[nodiscard]] std::string examples() const override {
    std::string text =
        "  plimsoll convert app.plim -o app.speedscope.json   the format follows from the name\n"
        "  plimsoll convert app.plim -f collapsed -o -        to standard output\n"
        "  plimsoll convert app.plim --tag job=index -o index.pb.gz   only what has this tag\n"
        "\nFormats:\n";
    for (const formats::Writer& writer : formats::writers())
      text += fmt::format("  {:<12} {:<18} {}\n", writer.name, writer.extension, writer.summary);
    text.pop_back();
    return text;
  }

  void add_arguments(CLI::App& app) override {
    input_.add_arguments(app);
    app.add_option("-o,--output", output_, "Where to write; - is standard output")->required()->type_name("OUT");
    app.add_option("--tag", tags_,
                   "Only samples with this tag: NAME or NAME=PATTERN (* and ?); NAME= for those without it")
        ->type_name("TAG")
        ->allow_extra_args(false);
    input_.add_tasks_flag(app);
    CLI::Option* none =
        app.add_flag("--no-native", no_native_, "Without native functions: their time goes to their callers");
    app.add_flag("--fold-native", fold_native_,
                 "Of native functions those by which libraries were entered, as show has them")
        ->excludes(none);
    app.add_option("-f,--format", format_, "One of the formats below; else OUT's ending decides")->type_name("FORMAT");
  }

  Result<int> run(Console& console) override {
    if (output_ == "-" && format_.empty())
      return Error{ErrorKind::kUsage,
                   fmt::format("standard output has no name that tells the format; add -f with one of {}",
                               comma_list(format_names()))};
    const Result<formats::Writer> writer = formats::find_writer(format_, output_);
    if (!writer.ok()) return writer.error();
    if (output_ != "-") PLIMSOLL_TRY(check_not_input(output_, input_.path()));
    Result<Input> input = input_.read(console);
    if (!input.ok()) return input.error();
    if (const std::string_view why = formats::nothing_to_write(writer.value(), input.value().profile); !why.empty()) {
      console.notice(fmt::format("{} {}; nothing was written{}", input_.path(), why,
                                 writer.value().has_time || input.value().profile.has_allocations()
                                     ? ""
                                     : ". Record them with plimsoll run --alloc"));
      return kNoSamples;
    }
    // Few formats can say so, and nobody reads it there.
    if (const profile::Profile& profile = input.value().profile; !profile.complete)
      console.notice(fmt::format("{} ends early: {}", input_.path(), early_end(profile)));
    change_stacks(input.value().profile, console);
    const Selection selection = select(input.value().profile, conditions());
    // What of it the format can hold: there may be time with a tag, and no allocations, and the other way round.
    if (!formats::nothing_to_write(writer.value(), input.value().profile).empty()) {
      const bool is_of_time = writer.value().has_time && selection.session_samples > 0;
      console.notice(is_of_time ? nothing_to_show(input.value().profile, selection, input_.path())
                                : no_allocation_left(input.value().profile, selection.conditions, input_.path()));
      return kNoSamples;
    }
    const Result<std::string> bytes = formats::write_as(writer.value(), input.value().profile, output_);
    if (!bytes.ok()) return bytes.error();
    return write(console, writer.value(), bytes.value());
  }

 private:
  void change_stacks(profile::Profile& profile, Console& console) const {
    choose_native_frames(profile,
                         no_native_     ? NativeFrames::kNone
                         : fold_native_ ? NativeFrames::kEntries
                                        : NativeFrames::kAll,
                         console);
  }
  [[nodiscard]] profile::Filter conditions() const {
    profile::Filter conditions;
    for (const std::string& tag : tags_) conditions.tags.push_back(profile::TagCondition::parse(tag));
    return conditions;
  }

  Result<int> write(Console& console, const formats::Writer& writer, const std::string& bytes) const {
    if (output_ == "-") {
      const bool is_binary = bytes.find('\0') != std::string::npos;
      if (is_binary && console.environment().is_tty)
        return Error{ErrorKind::kUsage,
                     fmt::format("{} is binary and would garble the terminal; use -o FILE or a pipe", writer.name)};
      PLIMSOLL_TRY(console.print(bytes));
      return kFine;
    }
    PLIMSOLL_TRY(write_file(output_, bytes));
    console.notice(
        fmt::format("wrote {} ({}, {})", output_, writer.name, format_bytes(static_cast<std::int64_t>(bytes.size()))));
    return kFine;
  }

  ProfileInput input_;
  std::string output_, format_;
  std::vector<std::string> tags_;
  bool no_native_ = false, fold_native_ = false;
};

}  // namespace

std::unique_ptr<Command> make_convert() { return std::make_unique<Convert>(); }

}  // namespace plimsoll::cli
