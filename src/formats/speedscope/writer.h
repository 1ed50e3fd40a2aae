// formats/speedscope/writer.h
#pragma once

#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::speedscope {

std::string write(const profile::Profile& profile);

}  // namespace plimsoll::formats::speedscope
