// What a summary says of the program and the machine.
#pragma once

#include "core/config/json.h"

namespace norma {

// {"norma": ..., "compiler": ..., "blas": ...}
[[nodiscard]] config::Json versions_json();
// {"cpu": ..., "cores": ..., "threads": ...}
[[nodiscard]] config::Json host_json();

}  // namespace norma
