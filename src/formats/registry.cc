#include "formats/registry.h"
namespace plimsoll::formats {
const std::vector<Writer>& writers() { static const std::vector<Writer> all; return all; }
}
