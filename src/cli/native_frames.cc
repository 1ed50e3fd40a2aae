#include "cli/native_frames.h"

#include "debuginfo/add_lines.h"
#include "profile/plim_reader.h"
#include "profile/without_native.h"

namespace plimsoll::cli {

void choose_native_frames(profile::Profile& profile, NativeFrames which, Console& console) {
  if (which == NativeFrames::kNone) return profile::leave_out_native(profile);
  if (!profile.modules.empty() && debuginfo::add_lines(profile).is_late)
    console.notice("lines of native functions are missing: reading their debug information took too long");
  if (which == NativeFrames::kEntries) profile::fold_native(profile);
}

Result<profile::Profile> read_with_lines(const std::string& plim, Console& console) {
  Result<profile::Profile> profile = profile::read_plim_file(plim);
  if (profile.ok()) choose_native_frames(profile.value(), NativeFrames::kAll, console);
  return profile;
}

}  // namespace plimsoll::cli
