// formats/pprof/writer.h
#pragma once

#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::pprof {

std::string write(const profile::Profile& profile);

}  // namespace plimsoll::formats::pprof
