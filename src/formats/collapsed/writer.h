// formats/collapsed/writer.h
#pragma once

#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::collapsed {

std::string write(const profile::Profile& profile);

}  // namespace plimsoll::formats::collapsed
