// Globs of parameter names, as they stand in configurations.
#pragma once

#include <string>
#include <string_view>

#include "core/flat.h"

namespace norma {

// Throws Error, naming `key`, for a glob that matches no parameter.
void require_match(std::string_view key, const std::string& glob, const FlatParameters& parameters);

}  // namespace norma
